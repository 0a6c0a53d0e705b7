# The disk of the central is full, really: both sides say so, writers of the remote go on, and nothing is lost when there is room again.
# First the disk of a table, then that of what the central keeps for itself.
use strict;
use warnings;
use OneReplTest;
use PostgreSQL::Test::Utils;
use Test::More;

plan skip_all => 'needs a small disk, which only root can make (test/lib/unprivileged)' unless $ENV{ONEREPL_SMALL_DISK};
my $disk = $ENV{ONEREPL_SMALL_DISK};
my $pair = OneReplTest->new(schema => 'CREATE TABLE t (id int PRIMARY KEY, v text)', track => ['t']);
$pair->b("CREATE TABLESPACE small LOCATION '$disk'");
$pair->a("INSERT INTO t VALUES (0, 'first')");
$pair->wait_identical('t');

# Nothing is left on it but what the server has already.
sub fill
{
	open my $file, '>', "$disk/filler" or die $!;
	binmode $file;
	1 while syswrite $file, "\0" x 65536;
	close $file;
	return;
}

my $id = 0;
sub grow { my $last = $id + 3000; $pair->a(sprintf "INSERT INTO t SELECT n, repeat(md5(n::text), 30) FROM generate_series(%d, %d) AS n", $id + 1, $last); return $id = $last; }

sub full_ok
{
	my ($name, $state_of_a) = @_;
	fill();
	grow();
	$pair->poll_b("SELECT state = 'put off' AND last_error ~ 'No space left on device.*SQLSTATE 53100' FROM onerepl_status()", "$name: B says it");
	$pair->poll_a("SELECT state = '$state_of_a' FROM onerepl_status()", "$name: A says $state_of_a");
	grow();
	pass("$name: A's writers go on");
	unlink "$disk/filler";
	$pair->wait_identical('t', { name => "$name: room again, and all goes on", deadline => 60 });
	OneReplTest::poll_ok($_, "SELECT state = 'in step' AND last_error IS NULL FROM onerepl_status()", "$name: in step, " . $_->name) for $pair->nodes;
	$pair->verify_equal('t');
	return;
}

$pair->b('ALTER TABLE t SET TABLESPACE small');
full_ok('the disk of a table', 'running');
$pair->b('ALTER TABLE t SET TABLESPACE pg_default');
$pair->b("ALTER TABLE onerepl.$_ SET TABLESPACE small") for 'waiting', 'received';
full_ok('the disk of the queue', 'the central takes nothing just now');
$pair->finish;
done_testing();
