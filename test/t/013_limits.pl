# The log: purged without bloat and without waiting for anybody, measured against its limits, with the policy that was chosen.
use strict;
use warnings;
use OneReplTest;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(sleep time);

my $pair = OneReplTest->new(
	track  => ['t'],
	conf_a => "onerepl.log_retention = '0'\nonerepl.log_warning_size = '4MB'\nonerepl.log_critical_size = '12MB'",
	schema => 'CREATE TABLE t (id serial PRIMARY KEY, v text)');

sub grow { my $count = shift; return $pair->a("INSERT INTO t (v) SELECT repeat(md5(n::text), 20) FROM generate_series(1, $count) AS n"); }
sub log_size { return $pair->a('SELECT log_size FROM onerepl_status()'); }

# --- confirmed records are purged, beside an open transaction
my $reader = $pair->node_a->background_psql('postgres');
$reader->query_safe('BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM t');
for (1 .. 6)
{
	grow(2000);
	sleep 0.5;
}
$pair->wait_identical('t');
$pair->wait_settled('before the purge');
$pair->poll_a('SELECT log_size < 3000000 FROM onerepl_status()', 'confirmed records are purged while a transaction is open', deadline => 75);
$reader->query_safe('COMMIT');
$reader->quit;

# --- what B has not confirmed is never purged; thresholds are told once
$pair->node_b->stop;
grow(8000);
$pair->poll_a("SELECT count(*) > 0 FROM onerepl.journal WHERE level = 'warning' AND message ~ 'log'", 'the warning threshold', deadline => 75);
grow(16000);
$pair->poll_a("SELECT count(*) > 0 FROM onerepl.journal WHERE level = 'critical' AND message ~ 'log'", 'the critical threshold', deadline => 75);
cmp_ok(OneReplTest::journal_count($pair->node_a, level => 'critical'), '<=', 2, 'told once');
grow(10);
pass('writers go on (policy: continue)');
$pair->node_b->start;
$pair->wait_identical('t', { name => 'nothing was lost', deadline => 60 });
$pair->wait_settled('after the flood');

# --- the other policy: capture stops, writers go on, the status says what to do
$pair->a("ALTER SYSTEM SET onerepl.log_limit_policy = 'stop_capture'");
$pair->a("ALTER SYSTEM SET onerepl.log_retention = '1h'");
$pair->a('SELECT pg_reload_conf()');
my $critical = OneReplTest::journal_count($pair->node_a, level => 'critical');

# --- what is confirmed does not stop capture: at the limit it goes, whatever the retention
sub stays_below
{
	my $name = shift;
	$pair->poll_a('SELECT log_size < 12000000 FROM onerepl_status()', "$name: confirmed records go at the limit", deadline => 75);
	return is($pair->a('SELECT capture_stopped FROM onerepl.log_state'), 'f', "$name: and capture goes on");
}
# In all more than the limit. A purge may come between.
for (1 .. 6)
{
	grow(4000);
	$pair->wait_identical('t');
}
stays_below('all confirmed');
is(OneReplTest::journal_count($pair->node_a, level => 'critical'), $critical, 'which is not critical');

# --- what is not does
$pair->node_b->stop;
grow(25000);
$pair->poll_a("SELECT state ~ '^capture stopped' FROM onerepl_status()", 'capture stops at the limit', deadline => 75);
my $begin = time;
grow(1000);
cmp_ok(time - $begin, '<', 10, 'writers go on');
$pair->node_b->start;

# --- the cure, as the status and docs/stopped-links.md have it, holds
$pair->b("SELECT onerepl_restart_link('branch')");
$pair->a("BEGIN; SELECT onerepl_restart_link('hq'); SELECT onerepl_refresh('hq', method => 'repair'); COMMIT");
$pair->wait_identical('t', { name => 'equal again', deadline => 90 });
my $cured = time;
stays_below('after the cure');

# --- and still does a minute and some rounds of the purge later, while the log reaches the limit again and again
for my $round (1 .. 3)
{
	my $rotated = $pair->a('SELECT rotated_at FROM onerepl.log_state');
	do { grow(4000) } while log_size() < 12000000;
	$pair->wait_identical('t', { name => "round $round: equal" });
	stays_below("round $round");
	isnt($pair->a('SELECT rotated_at FROM onerepl.log_state'), $rotated, "round $round: the log was purged");
}
my $stopped = 0;
OneReplTest::wait_for(sub { $stopped = $pair->a('SELECT capture_stopped FROM onerepl.log_state') eq 't'; return $stopped || time - $cured > 60 }, 90);
ok(!$stopped, 'a minute later capture goes on');
grow(10);
$pair->wait_settled('in step', 60);
$pair->verify_equal('t');

$pair->finish;
done_testing();
