# Whatever keeps B from taking what comes is put off, told once, and told as what it is on both sides (P22).
use strict;
use warnings;
use OneReplTest;
use PostgreSQL::Test::Utils;
use Test::More;

my $pair = OneReplTest->new(schema => 'CREATE TABLE t (id int PRIMARY KEY)', track => ['t']);
$pair->a('INSERT INTO t VALUES (0)');
$pair->wait_identical('t');

# Each body leaves a note in onerepl.contact; there the errors are.
sub breaks
{
	my ($sqlstate, $message) = @_;
	$pair->b(<<"SQL");
CREATE OR REPLACE FUNCTION breaks() RETURNS trigger LANGUAGE plpgsql AS \$\$ BEGIN RAISE '$message' USING ERRCODE = '$sqlstate'; END \$\$;
CREATE TRIGGER breaks BEFORE INSERT OR UPDATE ON onerepl.contact FOR EACH ROW EXECUTE FUNCTION breaks();
ALTER TABLE onerepl.contact ENABLE ALWAYS TRIGGER breaks;
SQL
	return;
}

my $n = 0;
for ([ '53100', 'no space is left' ], [ '55P03', 'a lock is held' ], [ '23514', 'something else is broken' ])
{
	my ($sqlstate, $message) = @$_;
	my $log_at = -s $pair->node_b->logfile;
	breaks($sqlstate, $message);
	$pair->a('INSERT INTO t VALUES (' . ++$n . ')');
	$pair->poll_a(
		"SELECT state = 'the central takes nothing just now' AND last_error LIKE '%$message (SQLSTATE $sqlstate)%' FROM onerepl_status()", "$sqlstate: A says what B says");
	$pair->poll_b(
		"SELECT state = 'put off' AND last_error LIKE '$message (SQLSTATE $sqlstate)' FROM onerepl_status()", "$sqlstate: B says it, too");
	$pair->poll_a("SELECT last_contact < clock_timestamp() - interval '4.5 s' FROM onerepl_status()", "$sqlstate: it lasts");
	is($pair->a("SELECT state FROM onerepl_status()"), 'the central takes nothing just now', "$sqlstate: which is not called no contact");
	is(scalar(() = slurp_file($pair->node_b->logfile, $log_at) =~ /what the remote sends is put off: $message/g), 1, "$sqlstate: it is once in B's log");
	$pair->b('DROP TRIGGER breaks ON onerepl.contact');
	$pair->wait_identical('t', { name => "$sqlstate: all goes on when the cause is gone" });
	is(OneReplTest::journal_count($pair->node_b, like => "put off: $message .SQLSTATE $sqlstate"), '1', "$sqlstate: it is once in B's journal");
	$pair->poll_b("SELECT state = 'in step' AND last_error IS NULL FROM onerepl_status()", "$sqlstate: B is in step again");
	$pair->poll_a("SELECT state = 'in step' AND last_error IS NULL FROM onerepl_status()", "$sqlstate: A, too");
}

# --- nobody sends: what fails while B looks by itself is told, too
$pair->node_a->stop;
$pair->b(<<'SQL');
CREATE FUNCTION no_journal() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'the journal is broken' USING ERRCODE = '53100'; END $$;
CREATE TRIGGER breaks BEFORE INSERT ON onerepl.journal_entry FOR EACH ROW EXECUTE FUNCTION no_journal();
ALTER TABLE onerepl.journal_entry ENABLE ALWAYS TRIGGER breaks;
SQL
$pair->poll_b(
	"SELECT state = 'put off' AND last_error = 'the journal is broken (SQLSTATE 53100)' FROM onerepl_status()", 'B says what keeps it from looking');
$pair->b('DROP TRIGGER breaks ON onerepl.journal_entry');
$pair->node_a->start;
OneReplTest::poll_ok($_, "SELECT state = 'in step' AND last_error IS NULL FROM onerepl_status()", 'in step again: ' . $_->name) for $pair->nodes;
$pair->finish;
done_testing();
