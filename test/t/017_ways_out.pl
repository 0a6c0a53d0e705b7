# Administrators and users in trouble: what goes wrong beside the protocol is told, has a way out, and makes nothing differ in silence.
use strict;
use warnings;
use OneReplTest;
use PostgreSQL::Test::Utils;
use Test::More;

my $pair = OneReplTest->new(
	track  => ['t'],
	conf_b => 'onerepl.receivers = 3',
	schema => <<'SQL');
CREATE TABLE t (id int PRIMARY KEY, v text);
CREATE TABLE other (id int PRIMARY KEY, v text);
CREATE ROLE own LOGIN;
GRANT CREATE ON SCHEMA public TO own;
SQL

sub on_b { my $sql = shift; return $pair->b("SET onerepl.allow_writes = on; $sql"); }
sub state_of_b { return $pair->b('SELECT state FROM onerepl_status()'); }
sub b_becomes { my ($wanted, $name) = @_; return $pair->poll_b("SELECT state ~ '$wanted' FROM onerepl_status()", $name); }

# --- P8: a tracked table of B is closed before its first change
$pair->a("SELECT onerepl_add_table('other')");
ok( OneReplTest::wait_for(sub { (OneReplTest::fails($pair->node_b, 'INSERT INTO other VALUES (1)'))[0] eq '25006' }, 20),
	'a table that is tracked is read-only on B at once');

# --- a table that B does not have: skipping a refresh, and verifying
$pair->a("CREATE TABLE missing (id int PRIMARY KEY); INSERT INTO missing VALUES (1); SELECT onerepl_add_table('missing', initial => 'refresh')");
b_becomes('^failed', 'a refresh of a table that is not there fails');
ok( OneReplTest::wait_for(
		sub {
			$pair->b("SELECT onerepl_resolve_all('branch', 'skip')");
			return $pair->b('SELECT count(*) FROM onerepl.failed') == 0 && $pair->a('SELECT written_to = numbered_to FROM onerepl_status()') eq 't';
		},
		30),
	'and can be skipped');
$pair->a("SELECT onerepl_verify('hq', 'missing')");
$pair->poll_b("SELECT count(*) FROM onerepl.journal WHERE message LIKE '%missing cannot be verified%' AND level = 'critical'",
	'a verification tells that it is not there', wanted => '1');
$pair->a("INSERT INTO t VALUES (1, 'after it')");
$pair->wait_identical('t', { name => 'and the link goes on' });
$pair->a("SELECT onerepl_remove_table('missing')");

# --- an application that adds partitions without being a superuser
for my $node ($pair->nodes)
{
	$node->safe_psql('postgres', 'SET ROLE own; CREATE TABLE parts (id int PRIMARY KEY, v text) PARTITION BY RANGE (id)');
}
$pair->b('SET ROLE own; CREATE TABLE parts_all PARTITION OF parts DEFAULT');
$pair->a("SELECT onerepl_add_table('parts')");
$pair->a('SET ROLE own; CREATE TABLE parts_1 PARTITION OF parts FOR VALUES FROM (0) TO (100); INSERT INTO parts VALUES (1, $$new$$)');
$pair->wait_identical('parts', { name => 'the owner of a tracked table adds a partition' });

# --- overwrite cannot invent values that were not sent
$pair->a("INSERT INTO t VALUES (2, (SELECT string_agg(md5(n::text), '') FROM generate_series(1, 1000) AS n))");
$pair->wait_identical('t');
on_b('DELETE FROM t WHERE id = 2');
$pair->a("CREATE TABLE wide (id int PRIMARY KEY, n int, v text); ALTER TABLE wide ALTER v SET STORAGE EXTERNAL");
$pair->b('CREATE TABLE wide (id int PRIMARY KEY, n int, v text)');
$pair->a("SELECT onerepl_add_table('wide'); INSERT INTO wide VALUES (1, 0, repeat('x', 30000))");
$pair->wait_identical('wide');
on_b('DELETE FROM wide');
$pair->a('UPDATE wide SET n = 1');
b_becomes('^failed', 'an update of a missing row');
$pair->b("SELECT onerepl_resolve_all('branch', 'overwrite')");
$pair->poll_b("SELECT count(*) FROM onerepl.failed WHERE detail LIKE '%leaves out large values%' AND resolution IS NULL",
	'overwrite says why it cannot help', wanted => '1');
$pair->b("SELECT onerepl_resolve_all('branch', 'skip')");
$pair->a("SELECT onerepl_refresh('hq', 'wide', 'repair'), onerepl_refresh('hq', 't', 'repair')");
$pair->wait_identical('t', 'wide', { name => 'skip and repair do' });

# --- a failure that only COMMIT shows: no record of the transaction alone is to blame
$pair->b(<<'SQL');
CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN IF NEW.v = 'refused' THEN RAISE 'not this one'; END IF; RETURN NULL; END $$;
CREATE CONSTRAINT TRIGGER refuse AFTER INSERT ON t DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION refuse();
ALTER TABLE t ENABLE ALWAYS TRIGGER refuse;
SQL
$pair->a("INSERT INTO t VALUES (10, 'refused'), (11, 'beside it')");
b_becomes('^failed', 'a deferred trigger of B refuses');
my ($n) = $pair->b('SELECT n FROM onerepl.failed WHERE at_commit');
my ($sqlstate, $message) = OneReplTest::fails($pair->node_b, "SELECT onerepl_resolve('branch', $n, 'overwrite')");
is($sqlstate, '22023', "overwrite is refused: $message");
$pair->b("SELECT onerepl_resolve('branch', $n, 'skip')");
$pair->poll_a('SELECT written_to = numbered_to FROM onerepl_status()', 'skip leaves out the whole transaction');
is($pair->b('SELECT count(*) FROM t WHERE id IN (10, 11)'), 0, 'nothing of it is written');
is(OneReplTest::journal_count($pair->node_b, level => 'critical', like => 'a whole transaction, of link .* will be skipped'), 1, 'the journal says so');
$pair->b('DROP TRIGGER refuse ON t');
$pair->a('DELETE FROM t WHERE id IN (10, 11)');
b_becomes('^failed', 'what is missing now is told');
$pair->b("SELECT onerepl_resolve_all('branch', 'overwrite')");
$pair->wait_identical('t');

# --- a lock on B: not F, and the status says what it is
{
	my $holder = $pair->node_b->background_psql('postgres');
	$holder->query_safe('BEGIN; LOCK TABLE t IN ACCESS EXCLUSIVE MODE');
	$pair->a("INSERT INTO t VALUES (20, 'waits')");
	b_becomes('^put off$', 'a table that is locked puts writing off');
	like($pair->b('SELECT last_error FROM onerepl_status()'), qr/55P03/, 'last_error says why');
	$holder->quit;
	$pair->wait_identical('t', { name => 'and it goes on by itself' });
	ok(OneReplTest::wait_for(sub { state_of_b() eq 'in step' }, 20), 'the status is good again');
}

# --- a table that is dropped on B while it is being filled does not stay in the status for ever
$pair->a("CREATE TABLE gone (id int PRIMARY KEY); INSERT INTO gone SELECT generate_series(1, 50)");
$pair->b('CREATE TABLE gone (id int PRIMARY KEY)');
$pair->a("SELECT onerepl_add_table('gone', initial => 'refresh'), onerepl_refresh_pause('hq', 'gone')");
$pair->wait_settled('a refresh is begun');
$pair->a("SELECT onerepl_remove_table('gone')");
$pair->wait_settled('and cancelled');
on_b('DROP TABLE gone');
ok(OneReplTest::wait_for(sub { state_of_b() eq 'in step' }, 20), 'its remains are not in the status') or $pair->show_state;

# --- capture stopped at the log's limit, with a transaction open over the new start
{
	$pair->node_a->safe_psql('postgres', "ALTER SYSTEM SET onerepl.log_limit_policy = 'stop_capture'");
	$pair->node_a->safe_psql('postgres', "ALTER SYSTEM SET onerepl.log_critical_size = '300kB'");
	$pair->node_a->reload;
	$pair->a("SELECT onerepl_pause('hq')");
	$pair->a("INSERT INTO t SELECT n, repeat(md5(n::text), 30) FROM generate_series(1000, 4000) AS n");
	$pair->poll_a('SELECT capture_stopped FROM onerepl.log_state', 'capture is stopped', deadline => 120);
	my $open = $pair->node_a->background_psql('postgres');
	$open->query_safe("BEGIN; INSERT INTO t VALUES (30, 'not captured')");
	$pair->node_a->safe_psql('postgres', "ALTER SYSTEM SET onerepl.log_critical_size = 0");
	$pair->node_a->reload;
	$pair->b("SELECT onerepl_restart_link('branch')");
	my $restart = $pair->node_a->background_psql('postgres');
	$restart->query_until(qr/begun/,
		"\\echo begun\nBEGIN; SELECT onerepl_restart_link('hq'), onerepl_refresh('hq', method => 'repair'); COMMIT;\n");
	$pair->poll_a(
		"SELECT count(*) > 0 FROM pg_stat_activity WHERE query LIKE '%onerepl_restart_link%' AND wait_event_type = 'Lock'",
		'the new start waits for a transaction that was not captured');
	$open->query_safe("INSERT INTO t VALUES (31, 'not captured either'); COMMIT");
	$open->quit;
	$restart->quit;
	$pair->a("SELECT onerepl_resume('hq')");
	$pair->wait_identical('t', { name => 'nothing of it is missing', deadline => 60 });
	ok(OneReplTest::wait_for(sub { state_of_b() eq 'in step' }, 60), 'and only then B is in step');
}

# --- replication data that somebody has damaged
$pair->a("SELECT onerepl_pause('hq'); INSERT INTO t VALUES (35, 'unreadable for a while'); CREATE TABLE saved AS SELECT * FROM onerepl.description WHERE relation = 't'::regclass");
$pair->a("DELETE FROM onerepl.description WHERE relation = 't'::regclass");
# A sender that has been there before remembers it.
$pair->a("SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE backend_type = 'onerepl sender'; SELECT onerepl_resume('hq')");
$pair->poll_a(q{SELECT count(*) FROM onerepl.journal WHERE level = 'critical' AND message LIKE 'records cannot be sent: %'}, 'is told in the journal, once', wanted => '1') or $pair->show_state;
like($pair->a('SELECT last_error FROM onerepl_status()'), qr/^records cannot be sent: /, 'and in the status');
$pair->a('INSERT INTO onerepl.description SELECT * FROM saved');
$pair->wait_identical('t', { name => 'mended, it goes on' }) or $pair->show_state;

# --- settings that take effect on reload
is(scalar OneReplTest::workers($pair->node_b, 'receiver'), 3, 'three receivers');
$pair->node_b->append_conf('postgresql.conf', 'onerepl.receivers = 1');
$pair->node_b->reload;
ok(OneReplTest::wait_for(sub { OneReplTest::workers($pair->node_b, 'receiver') == 1 }, 30), 'a reload makes them fewer');
$pair->node_a->append_conf('postgresql.conf', "onerepl.databases = ''");
$pair->node_a->reload;
ok(OneReplTest::wait_for(sub { OneReplTest::workers($pair->node_a, 'sender') == 0 }, 30), 'a reload ends the workers of a database');
$pair->node_a->append_conf('postgresql.conf', "onerepl.databases = 'postgres'");
$pair->node_a->reload;
$pair->a("INSERT INTO t VALUES (40, 'again')");
$pair->wait_identical('t', { name => 'and starts them again' });

# --- secrets are not for those who may read all data
$pair->b('CREATE ROLE auditor LOGIN; GRANT pg_read_all_data TO auditor');
is($pair->b('SET ROLE auditor; SELECT count(*) FROM onerepl.link_key'), 0, 'pg_read_all_data does not read secrets');
$pair->b('GRANT pg_monitor TO auditor');
is($pair->b('SET ROLE auditor; SELECT count(*) FROM onerepl_status()'), 1, 'a monitor sees the status');
like($pair->b('SET ROLE auditor; SELECT count(*) FROM onerepl.refresh_progress'), qr/^\d+$/, 'and the progress of refreshes');

$pair->finish;
done_testing();
