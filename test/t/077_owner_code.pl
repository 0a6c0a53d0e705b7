# Whose rights each kind of code runs with that the owner of a table can have PostgreSQL evaluate (P19): the code itself notes who it runs as.
# 059 tries to make him a superuser by it.
use strict;
use warnings;
use OneReplTest;
use Test::More;

my $pair = OneReplTest->new(schema => <<'SQL');
CREATE ROLE mallory;
CREATE ROLE lodger;
CREATE SCHEMA m AUTHORIZATION mallory;
GRANT CREATE ON SCHEMA public TO mallory;
GRANT CREATE, USAGE ON SCHEMA m TO lodger;
GRANT CREATE ON DATABASE postgres TO mallory;
SET ROLE mallory;
CREATE TABLE m.ran (what text, who name);
GRANT INSERT ON m.ran TO PUBLIC;
CREATE FUNCTION m.note(what text) RETURNS int LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO m.ran VALUES (what, current_user);
    RETURN 1;
EXCEPTION WHEN OTHERS THEN
    RETURN 1;
END $$;
CREATE FUNCTION m.one(what text, n int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN RETURN m.note(what); END $$;
CREATE FUNCTION m.notes() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM m.note(tg_argv[0]); RETURN NEW; END $$;
CREATE DOMAIN m.small AS int CHECK (m.one('domain', VALUE) = 1);
CREATE TYPE m.pair AS (a m.small, b int);
CREATE TABLE m.t (
    id int PRIMARY KEY, n int CHECK (m.one('check', n) = 1), pair m.pair,
    g int GENERATED ALWAYS AS (m.one('generated column', n)) STORED,
    EXCLUDE USING btree ((id + m.one('exclusion', n)) WITH =) WHERE (m.one('exclusion predicate', n) = 1)
);
CREATE INDEX ON m.t (n) WHERE n > m.one('index predicate', 5);
CREATE STATISTICS m.s ON m.one('statistics', n), n FROM m.t;
CREATE RULE r AS ON DELETE TO m.t DO ALSO SELECT m.note('rule');
CREATE POLICY p ON m.t USING (m.note('policy') = 1);
ALTER TABLE m.t ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY, ENABLE ALWAYS RULE r;
CREATE TABLE m.hashed (id int, v text) PARTITION BY HASH ((id + m.one('hash', id)));
CREATE TABLE m.hashed_0 PARTITION OF m.hashed FOR VALUES WITH (MODULUS 2, REMAINDER 0);
CREATE TABLE m.hashed_1 PARTITION OF m.hashed FOR VALUES WITH (MODULUS 2, REMAINDER 1);
CREATE TABLE m.let (id int, v text) PARTITION BY RANGE (id);
RESET ROLE;
SET ROLE lodger;
CREATE TABLE m.room (id int, v text);
CREATE INDEX ON m.room (m.one('index of a partition', id));
RESET ROLE;
ALTER TABLE m.let ATTACH PARTITION m.room FOR VALUES FROM (0) TO (100);
CREATE TABLE of_super (id int PRIMARY KEY, g int GENERATED ALWAYS AS (m.one('a superuser''s table', id)) STORED);
SQL
my ($a, $b) = $pair->nodes;
sub as_mallory { my $sql = shift; return $pair->a("SET ROLE mallory; $sql"); }
# What was noted since the last time, and for whom.
sub ran
{
	my ($node) = @_;
	return $node->safe_psql('postgres', "WITH gone AS (DELETE FROM m.ran RETURNING *) SELECT string_agg(DISTINCT what || ': ' || who, ', ' ORDER BY what || ': ' || who) FROM gone");
}

sub refreshed
{
	my ($table, $method) = @_;
	$pair->a("SELECT onerepl_refresh('hq', '$table', '$method')");
	OneReplTest::poll_ok($a, "SELECT state NOT IN ('waiting', 'running', 'paused', 'sent', 'cancelling') FROM onerepl.refresh ORDER BY id DESC LIMIT 1", "$table: $method is through");
	return $pair->a('SELECT state FROM onerepl.refresh ORDER BY id DESC LIMIT 1');
}

# --- what only B has
$pair->b(<<'SQL');
SET ROLE mallory;
ALTER TABLE m.t ADD here int DEFAULT m.note('default');
CREATE TRIGGER t BEFORE INSERT ON m.t FOR EACH ROW EXECUTE FUNCTION m.notes('trigger');
ALTER TABLE m.t ENABLE ALWAYS TRIGGER t;
SQL
ran($_) for $a, $b;

# --- tracking
$pair->track('m.t', 'm.hashed', 'm.let', 'of_super');
unlike(ran($a), qr/: (?!mallory)/, 'A, tracking: nothing ran but as the owner');
is(ran($b), '', 'B: nothing ran');

# --- rows
as_mallory("INSERT INTO m.t SELECT n, n, format('(%s,2)', n)::m.pair FROM generate_series(1, 10) AS n; UPDATE m.t SET n = n + 1 WHERE id < 3; DELETE FROM m.t WHERE id = 9");
as_mallory("INSERT INTO m.hashed SELECT n, 'x' FROM generate_series(1, 10) AS n; UPDATE m.hashed SET v = 'y' WHERE id < 3; INSERT INTO m.let VALUES (1, 'in'); UPDATE m.let SET v = 'still in'");
$pair->wait_settled('rows');
is($pair->b('SET ROLE mallory; SET row_security = on; ALTER TABLE m.t NO FORCE ROW LEVEL SECURITY; SELECT count(*) FROM m.t'), '9', 'rows are there');
$pair->b('SET ROLE mallory; ALTER TABLE m.t FORCE ROW LEVEL SECURITY');
is(ran($b), 'check: mallory, default: mallory, domain: mallory, exclusion predicate: mallory, exclusion: mallory, generated column: mallory, hash: mallory, '
	. 'index of a partition: lodger, index predicate: mallory, trigger: mallory', 'B, rows: all code of the owner runs as the owner, that of a partition\'s as his; rules and policies do not run');
ran($a);

# --- refreshes and verifications read on A and write on B
for my $table ('m.t', 'm.hashed', 'm.let')
{
	is(refreshed($table, $_), 'done', "$table: $_ is done") for 'repair', 'empty';
}
$pair->b('SET onerepl.allow_writes = on; ALTER TABLE m.t DISABLE ROW LEVEL SECURITY; INSERT INTO m.t VALUES (77, 1, NULL); UPDATE m.t SET n = 50 WHERE id = 4; ALTER TABLE m.t ENABLE ROW LEVEL SECURITY');
ran($b);
is(refreshed('m.t', 'repair'), 'done', 'a repair that deletes is done');
$pair->verify_equal('m.t', 'm.hashed', 'm.let');
my ($on_a, $on_b) = map { ran($_) } $a, $b;
is($on_a, 'index predicate: mallory', 'A, refreshes and verifications: constants of predicates are evaluated as the owner, and nothing else');
unlike($on_b, qr/: (?!mallory)/, 'B, refreshes and verifications: nothing ran but as the owner');
unlike("$on_a$on_b", qr/policy/, '... and no policies');
like($on_b, qr/check: mallory.*rule: mallory/, '... but other code, and a rule ENABLE ALWAYS about rows that are deleted');

# --- statistics objects
$pair->b('SET ROLE mallory; ANALYZE m.t');
unlike(ran($b), qr/: (?!mallory)/, 'expressions of statistics run as the owner');
is(refreshed('m.t', 'repair'), 'done', 'with statistics at hand');
unlike(ran($_), qr/: (?!mallory)/, '... nothing ran but as the owner') for $a, $b;

# --- a superuser's table
$pair->a('INSERT INTO of_super VALUES (1)');
$pair->wait_settled('a superuser\'s table');
is(ran($b), "a superuser's table: postgres", 'code of a superuser\'s table runs as the superuser');

# --- event triggers are superusers': they run as who executes the statement
$pair->b(<<'SQL');
CREATE FUNCTION seen() RETURNS event_trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM m.note('event trigger'); END $$;
CREATE EVENT TRIGGER seen ON ddl_command_end EXECUTE FUNCTION seen();
ALTER EVENT TRIGGER seen ENABLE ALWAYS;
SELECT onerepl_set_ddl('branch', 'apply');
SQL
ran($b);
as_mallory('ALTER TABLE m.hashed ADD w int DEFAULT 7');
$pair->wait_settled('a statement');
is(ran($b), 'event trigger: mallory', 'event triggers of B run as who executes a told statement');
$pair->b('DROP EVENT TRIGGER seen');

# --- what only superusers make
for my $sql ('CREATE OPERATOR CLASS m.o FOR TYPE int USING btree AS FUNCTION 1 m.one(text, int)', 'CREATE FOREIGN DATA WRAPPER w', 'CREATE EVENT TRIGGER e ON ddl_command_end EXECUTE FUNCTION m.notes()',
	'CREATE TYPE m.base (INPUT = int4in, OUTPUT = int4out, LIKE = int)', "LOAD 'onerepl'", 'CREATE CAST (int AS m.pair) WITHOUT FUNCTION')
{
	my ($state) = OneReplTest::fails($b, "SET ROLE mallory; $sql");
	is($state, '42501', "not for an owner: $sql");
}
my ($state) = OneReplTest::fails($a, "SET ROLE mallory; CREATE PUBLICATION p FOR TABLE m.t WHERE (m.one('publication', n) = 1)");
is($state, '0A000', 'filters of publications call no functions of users');

# --- an owner who gave up his rights
as_mallory('REVOKE SELECT ON m.hashed FROM mallory');
is(refreshed('m.hashed', 'repair'), 'failed', 'an owner without SELECT: a refresh fails');
like($pair->a('SELECT string_agg(message, $$;$$) FROM onerepl.journal WHERE at > now() - interval $$1 minute$$'), qr/permission denied for table hashed/, '... and says why');
as_mallory('GRANT SELECT ON m.hashed TO mallory');
is(refreshed('m.hashed', 'repair'), 'done', 'with it again, it is done');

# --- names of the remote in a dump of B
my $made = PostgreSQL::Test::Utils::tempdir() . '/made';
my $evil = "x\n\\! touch $made\n--";
$pair->b("SELECT onerepl_set_ddl('branch', 'stop')");
$_->safe_psql('postgres', qq{CREATE TABLE "$evil" (id int PRIMARY KEY)}) for $pair->nodes;
$pair->track(qq{"$evil"});
$pair->a(qq{INSERT INTO "$evil" VALUES (1); COMMENT ON TABLE "$evil" IS '$evil'; ALTER TABLE "$evil" ADD "$evil" int; INSERT INTO "$evil" VALUES (2)});
OneReplTest::poll_ok($b, 'SELECT count(*) FROM onerepl.failed', 'a row with a column that B lacks', wanted => '1');
$pair->b(qq{DROP TABLE "$evil"});
my $dump = PostgreSQL::Test::Utils::tempdir() . '/dump.sql';
$b->command_ok([ 'pg_dump', '-f', $dump, 'postgres' ], 'B is dumped');
$b->safe_psql('postgres', 'CREATE DATABASE restored');
$b->command_ok([ 'psql', '-qX', '-f', $dump, '-d', 'restored' ], '... and restored');
ok(!-e $made, 'names that the remote chose execute nothing there');

$b->stop('fast');
$a->stop('fast');
done_testing();
