# Capture that is switched off, be it within one transaction, is told with the statement that does it, and stays a problem until the
# table was compared (P21).
use strict;
use warnings;
use OneReplTest;
use PostgreSQL::Test::Utils;
use Test::More;

my $pair = OneReplTest->new(
	track  => [qw(t replaced parted quiet)],
	schema => <<'SQL');
CREATE TABLE t (id int PRIMARY KEY, v text);
CREATE TABLE replaced (id int PRIMARY KEY);
CREATE TABLE quiet (id int PRIMARY KEY);
CREATE TABLE parted (id int PRIMARY KEY) PARTITION BY RANGE (id);
CREATE TABLE part PARTITION OF parted FOR VALUES FROM (0) TO (10);
CREATE FUNCTION nothing() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';
SQL
sub critical { return OneReplTest::journal_count($pair->node_a, level => 'critical', like => shift); }

is(critical('.'), '0', 'tracking tells of nothing');
$pair->a(<<'SQL');
BEGIN; ALTER TABLE quiet DISABLE TRIGGER ALL; ROLLBACK;
CREATE TRIGGER mine AFTER INSERT ON quiet EXECUTE FUNCTION nothing(); ALTER TABLE quiet DISABLE TRIGGER mine; DROP TRIGGER mine ON quiet;
SELECT onerepl_add_table('quiet', lock_pending => true), onerepl_add_table('quiet');
SELECT onerepl_remove_table('quiet'); SELECT onerepl_add_table('quiet');
CREATE TABLE part_2 PARTITION OF parted FOR VALUES FROM (10) TO (20); ALTER TABLE parted DETACH PARTITION part_2; ALTER TABLE parted ATTACH PARTITION part_2 FOR VALUES FROM (10) TO (20);
DROP TABLE part_2;
SQL
is(critical('.'), '0', 'nor do triggers of others, what was rolled back, lock_pending, and partitions that come and go');

my %ways = (
	t => 'BEGIN; ALTER TABLE t DISABLE TRIGGER ALL; INSERT INTO t VALUES (1, $$lost$$); ALTER TABLE t ENABLE ALWAYS TRIGGER "!onerepl_capture"; ALTER TABLE t ENABLE ALWAYS TRIGGER "!onerepl_truncate"; COMMIT',
	replaced => 'BEGIN; CREATE OR REPLACE TRIGGER "!onerepl_capture" AFTER INSERT ON replaced FOR EACH ROW EXECUTE FUNCTION nothing(); INSERT INTO replaced VALUES (1); SELECT onerepl_add_table(\'replaced\'); COMMIT',
	part => 'BEGIN; ALTER TABLE part DISABLE TRIGGER "!onerepl_capture"; INSERT INTO parted VALUES (1); ALTER TABLE part ENABLE ALWAYS TRIGGER "!onerepl_capture"; COMMIT',
);
my %says = (t => 'is disabled \(ALTER TABLE, by', replaced => 'is not the one that onerepl made \(CREATE TRIGGER, by', part => 'is disabled \(ALTER TABLE, by');
for my $table (sort keys %ways)
{
	$pair->a($ways{$table});
	is(critical("changes of table public.$table are not captured: its trigger !onerepl_capture $says{$table}"), '1', "$table: the statement is in the journal");
}
$pair->a('SELECT onerepl.self_check()');
is($pair->a("SELECT string_agg(p.relation::regclass || ' ' || p.kind, ', ' ORDER BY p.relation::regclass::text) FROM onerepl.problem AS p"), 'part uncaptured, t uncaptured',
	'what was right again in the end stays a problem, but what onerepl_add_table made right');
is($pair->a("SELECT bool_and(hint ~ 'onerepl_verify' AND hint ~ 'repair' AND hint ~ 'onerepl_add_table') FROM onerepl.problem"), 't', 'with its cure');
is($pair->a("SELECT problems || ' ' || (what_to_do ~ 'onerepl.problems') FROM onerepl_status()"), '2 true', 'the status shows it');

# --- the cure, as it is told
$pair->a("SELECT onerepl_wait('hq', '30 s'); SELECT onerepl_verify('hq', 't'), onerepl_verify('hq', 'parted')");
$pair->poll_b('SELECT count(DISTINCT relation) FROM onerepl.differences', 'verify finds what was lost', wanted => '2');
$pair->poll_a("SELECT count(*) FROM onerepl.refresh WHERE state IN ('waiting', 'running', 'paused', 'sent', 'cancelling')", 'and ends', wanted => '0');
$pair->a("SELECT onerepl_refresh('hq', '$_', 'repair'); SELECT onerepl_add_table('$_')") for qw(t parted replaced);
$pair->wait_identical(qw(t parted replaced));
$pair->a('SELECT onerepl.self_check()');
is($pair->a('SELECT problems FROM onerepl_status()'), '0', 'and it is over');
$pair->poll_a("SELECT count(*) FROM onerepl.refresh WHERE state IN ('waiting', 'running', 'paused', 'sent', 'cancelling')", 'repaired', wanted => '0');
$pair->verify_equal(qw(t parted replaced quiet));

# --- whatever session_replication_role says, rows and statements are captured, and what switches capture off is told
my $told = critical('.');
OneReplTest::apply_statements($pair->node_b);
for my $role ('replica', 'local')
{
	$pair->a("SET session_replication_role = $role; INSERT INTO t VALUES (100 + length('$role'), 'of $role'); ALTER TABLE t ADD $role int; UPDATE t SET $role = 1");
	$pair->wait_identical('t', { name => "session_replication_role = $role" });
	is(critical('.'), $told++, '... with nothing to tell');
	$pair->a("SET session_replication_role = $role; BEGIN; ALTER TABLE t DISABLE TRIGGER \"!onerepl_capture\"; ALTER TABLE t ENABLE ALWAYS TRIGGER \"!onerepl_capture\"; COMMIT; SELECT onerepl_add_table('t')");
	$pair->a('SELECT onerepl.self_check()');
	is(critical('.'), $told, '... until capture is switched off');
}

# --- the event triggers that would tell, switched off and on again within one transaction
for my $way ('ALTER EVENT TRIGGER "!onerepl_schema" DISABLE', 'ALTER EVENT TRIGGER "!onerepl_drop" ENABLE', 'ALTER EVENT TRIGGER "!onerepl_schema" RENAME TO zzz')
{
	my ($name) = $way =~ /"(.*?)"/;
	my $back = $way =~ /RENAME/ ? "ALTER EVENT TRIGGER zzz RENAME TO \"$name\"" : "ALTER EVENT TRIGGER \"$name\" ENABLE ALWAYS";
	$pair->a("BEGIN; $way; ALTER TABLE t DISABLE TRIGGER ALL; INSERT INTO t VALUES ($told, 'lost'); ALTER TABLE t ENABLE ALWAYS TRIGGER \"!onerepl_capture\"; ALTER TABLE t ENABLE ALWAYS TRIGGER \"!onerepl_truncate\"; $back; COMMIT");
	cmp_ok(critical("event trigger $name is (disabled|missing).*\\(ALTER EVENT TRIGGER, by"), '>', 0, "told with the statement: $way") or $pair->show_state;
	$told++;
	$pair->a("SELECT onerepl.self_check()");
}
if ($pair->a("SELECT current_setting('server_version_num')::int") >= 170000)
{
	$pair->a('SET event_triggers = off; ALTER TABLE t ADD unseen int; ALTER TABLE t DROP unseen');
	is(critical('event_triggers is off.*\(ALTER TABLE, by'), '1', 'told with the first statement that is not seen');
}
$pair->a("SELECT onerepl_refresh('hq', 't', 'repair'); SELECT onerepl_add_table('t')");
$pair->wait_identical('t', { name => 'repaired again' });
$pair->poll_a("SELECT count(*) FROM onerepl.refresh WHERE state IN ('waiting', 'running', 'paused', 'sent', 'cancelling')", 'through', wanted => '0');
$pair->verify_equal(qw(t parted replaced quiet));
$pair->finish;
done_testing();
