# P22, P20: a turn of the sender that fails loses no answer and rests; a link that can work is in step again.
use strict;
use warnings;
use OneReplTest;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(sleep);

my $pair = OneReplTest->new(
	track  => [ 't', 'broken' ],
	proxy  => { slow => 1, delay => '0.1:0.3' },
	conf   => "onerepl.max_in_flight = 2",
	schema => 'CREATE TABLE t (id int PRIMARY KEY, v text); CREATE TABLE broken (id int PRIMARY KEY, v text)');
$pair->a("INSERT INTO t VALUES (0, 'first')");
$pair->wait_identical('t');

# Numbers of an error that the sender met.
sub errors_in_log
{
	my $like = shift;
	my @lines = slurp_file($pair->node_a->logfile) =~ /^.*(?:LOG|ERROR):.*$like.*$/mg;
	return scalar @lines;
}

# --- errors while answers come
# Statements of the sender wait for a lock and are cancelled, whichever it is, while bodies are on their way.
sub disturb
{
	my ($table, $from) = @_;
	my $before = errors_in_log('canceling statement');
	my $lock = $pair->node_a->background_psql('postgres');
	$lock->query_safe("BEGIN; LOCK TABLE onerepl.$table IN ACCESS EXCLUSIVE MODE");
	for my $n (1 .. 40)
	{
		$pair->a("INSERT INTO t VALUES ($from + $n, 'while it fails')");
		$pair->a(<<'SQL');
SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE backend_type = 'onerepl sender' AND wait_event_type = 'Lock'
SQL
		sleep 0.05;
		# A moment without the lock now and then, so that bodies leave and their answers come under it.
		$lock->query_safe("COMMIT; SELECT pg_sleep(0.05); BEGIN; LOCK TABLE onerepl.$table IN ACCESS EXCLUSIVE MODE") if $n % 3 == 0;
	}
	$lock->query_safe('COMMIT');
	$lock->quit;
	cmp_ok(errors_in_log('canceling statement'), '>', $before, "turns of the sender failed, locked: $table");
	return;
}
my $from = 1000;
for my $table (qw(batch sent_progress contact))
{
	disturb($table, $from += 1000);
	# An outage of B: after it a body goes only when none is on its way.
	$pair->node_b->stop('fast');
	$pair->a("INSERT INTO t VALUES ($from, 'while B is away')");
	$pair->poll_a('SELECT last_error IS NOT NULL FROM onerepl_status()', 'A notices that B is away');
	$pair->node_b->start;
	$pair->wait_identical('t', { name => "answers got lost nowhere, locked: $table" });
	$pair->wait_settled("locked: $table");
}

$pair->calm_proxy;

# --- records that cannot be formed
$pair->a("SELECT onerepl_pause('hq'); INSERT INTO broken VALUES (1, 'unreadable for a while');"
	  . "CREATE TABLE saved AS SELECT * FROM onerepl.description WHERE relation = 'broken'::regclass");
$pair->a("DELETE FROM onerepl.description WHERE relation = 'broken'::regclass");
# A sender that has been there before remembers it.
$pair->a("SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE backend_type = 'onerepl sender'; SELECT onerepl_resume('hq')");
$pair->poll_a(q{SELECT last_error LIKE 'records cannot be sent: %' FROM onerepl_status()}, 'the status tells what fails')
  or $pair->show_state;
my $contact = q{SELECT (SELECT last_contact FROM onerepl_status()) > '%s'};
my $begin = $pair->a('SELECT clock_timestamp()');
my $errors = errors_in_log('onerepl: ');
OneReplTest::poll_ok($_, sprintf($contact, $begin) , 'contact goes on meanwhile, on ' . $_->name) for $pair->nodes;
is($pair->a(q{SELECT last_error LIKE 'records cannot be sent: %' FROM onerepl_status()}), 't', 'and the status still tells it');
is($pair->a('SELECT state FROM onerepl_status()'), 'records cannot be sent', 'as the state of the link');
$pair->poll_a("SELECT clock_timestamp() > '$begin'::timestamptz + interval '5 s'", 'five seconds later');
cmp_ok(errors_in_log('onerepl: '), '<', $errors + 20, 'the sender rests between its tries');
is(OneReplTest::journal_count($pair->node_a, level => 'critical', like => 'records cannot be sent: '), '1', 'the journal has it once');
$pair->a('INSERT INTO onerepl.description SELECT * FROM saved');
$pair->wait_identical('t', 'broken', { name => 'mended, it goes on' }) or $pair->show_state;
$pair->poll_a("SELECT state = 'in step' AND last_error IS NULL FROM onerepl_status()", 'and the status says so')
  or $pair->show_state;

$pair->finish;
done_testing();
