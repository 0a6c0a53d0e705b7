# Whose rights (P19): the owner of a replicated table can put his code wherever PostgreSQL takes some. It runs as his, on both sides.
use strict;
use warnings;
use OneReplTest;
use Test::More;

my $pair = OneReplTest->new(schema => <<'SQL');
CREATE ROLE mallory;
CREATE ROLE owner;
CREATE SCHEMA m AUTHORIZATION mallory;
SET ROLE mallory;
-- Whoever runs it with a superuser's rights makes a superuser of mallory.
CREATE FUNCTION m.attack() RETURNS int LANGUAGE plpgsql AS $$
BEGIN
    BEGIN ALTER ROLE mallory SUPERUSER; EXCEPTION WHEN OTHERS THEN NULL; END;
    RETURN 1;
END $$;
CREATE FUNCTION m.one(int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN RETURN m.attack(); END $$;
CREATE DOMAIN m.key AS int CHECK (m.one(VALUE) = 1);
CREATE DOMAIN m.small AS int CHECK (m.one(VALUE) = 1);
CREATE TYPE m.mood AS ENUM ('good', 'bad');
CREATE FUNCTION m.text_of(m.mood) RETURNS text LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN PERFORM m.attack(); RETURN 'x'; END $$;
CREATE CAST (m.mood AS text) WITH FUNCTION m.text_of(m.mood);
CREATE TYPE m.pair AS (a int, b int);
CREATE FUNCTION m.text_of(m.pair) RETURNS text LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN PERFORM m.attack(); RETURN 'x'; END $$;
CREATE CAST (m.pair AS text) WITH FUNCTION m.text_of(m.pair);
CREATE TABLE m.t (id m.key PRIMARY KEY, small m.small DEFAULT m.one(1), mood m.mood, pair m.pair, n int CHECK (m.one(n) = 1),
                  g int GENERATED ALWAYS AS (m.one(n)) STORED);
CREATE INDEX ON m.t (n) WHERE n > m.one(5);
CREATE INDEX ON m.t ((n + m.one(6)));
CREATE TABLE m.moods (mood m.mood PRIMARY KEY, n int);
CREATE INDEX ON m.moods (n) WHERE n > m.one(5);
CREATE TABLE m.parts (id int, v text) PARTITION BY LIST ((id % 2 + m.one(7)));
CREATE TABLE m.odd PARTITION OF m.parts FOR VALUES IN (2);
CREATE TABLE m.even PARTITION OF m.parts FOR VALUES IN (1);
RESET ROLE;
CREATE TABLE hidden (id int PRIMARY KEY, v text);
ALTER TABLE hidden OWNER TO owner;
ALTER TABLE hidden ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY some_rows ON hidden USING (id < 5);
CREATE TABLE plain (id int PRIMARY KEY, v text);
SQL
my ($a, $b) = $pair->nodes;

sub as_mallory { my $sql = shift; return $pair->a("SET ROLE mallory; $sql"); }

sub safe_ok
{
	my $name = shift;
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	is(join(' ', map { $_->safe_psql('postgres', "SELECT rolsuper FROM pg_roles WHERE rolname = 'mallory'") } $a, $b), 'f f',
		"$name: mallory is no superuser on A and B");
	$_->safe_psql('postgres', 'ALTER ROLE mallory NOSUPERUSER') for $a, $b;
	return;
}

sub refreshed
{
	my ($table, $method) = @_;
	$pair->a("SELECT onerepl_refresh('hq', '$table', '$method')");
	OneReplTest::poll_ok($a, "SELECT count(*) = 0 FROM onerepl.refresh WHERE state IN ('waiting', 'running', 'paused', 'sent', 'cancelling')",
		"$table: $method is through");
	is($pair->a("SELECT state FROM onerepl.refresh ORDER BY id DESC LIMIT 1"), 'done', '... and done') or $pair->show_state;
	return;
}

safe_ok('at the start');

# --- rows
for my $table ('m.t', 'm.moods', 'm.parts', 'hidden', 'plain')
{
	$pair->track($table);
	safe_ok("onerepl_add_table $table");
}
as_mallory(<<'SQL');
INSERT INTO m.t (id, small, mood, pair, n) SELECT n, n, 'good', '(1,2)', n FROM generate_series(1, 20) AS n;
UPDATE m.t SET n = n + 1 WHERE id < 5;
DELETE FROM m.t WHERE id = 9;
INSERT INTO m.moods VALUES ('good', 1), ('bad', 10);
INSERT INTO m.parts SELECT n, 'row ' || n FROM generate_series(1, 10) AS n;
DELETE FROM m.parts WHERE id = 3;
SQL
$pair->wait_settled('rows');
is($pair->b("SET ROLE mallory; SELECT count(*) || ' ' || sum(n) FROM m.t"), as_mallory("SELECT count(*) || ' ' || sum(n) FROM m.t"), 'rows are there');
safe_ok('rows');

# --- description: an ordinary owner alters his table
as_mallory('ALTER TABLE m.t ALTER small SET DEFAULT 3');
safe_ok('ALTER TABLE');

# --- verification and refreshes
$pair->verify_equal('m.t', 'm.moods', 'm.parts');
safe_ok('onerepl_verify');
for my $method ('repair', 'empty')
{
	refreshed($_, $method) for 'm.t', 'm.moods', 'm.parts';
	safe_ok("onerepl_refresh, $method");
}
$pair->b("SET onerepl.allow_writes = on; SET ROLE mallory; UPDATE m.t SET n = 99 WHERE id = 3; INSERT INTO m.t (id, n) VALUES (77, 1)");
$pair->a("SELECT onerepl_verify('hq', 'm.t', with_rows => true)");
OneReplTest::poll_ok($b, "SELECT count(*) = 2 FROM onerepl.differing_row WHERE relation = 'm.t'::regclass", 'differences are named');
safe_ok('naming differences');
refreshed('m.t', 'repair');
$pair->verify_equal('m.t');
safe_ok('repair');

# --- filters
$pair->a(q{SELECT onerepl_set_filter('hq', 'm.t', 'n > m.one(1) AND m.one(n) = 1', refresh => 'repair')});
as_mallory("INSERT INTO m.t (id, n) VALUES (100, 50), (101, 0)");
as_mallory("UPDATE m.t SET n = 0 WHERE id = 15");
$pair->wait_settled('filter');
is($pair->b("SET ROLE mallory; SELECT count(*) FROM m.t WHERE id IN (15, 100, 101)"), '1', 'the filter holds');
safe_ok('filters');
$pair->a("SELECT onerepl_set_filter('hq', 'm.t')");
$pair->wait_settled('filter ended');
$pair->verify_equal('m.t');

# --- lock_pending, TRUNCATE
$pair->a("SELECT onerepl_add_table('m.t', true)");
as_mallory('TRUNCATE m.t, m.moods, m.parts');
as_mallory("INSERT INTO m.t (id, n) VALUES (1, 1)");
$pair->wait_settled('TRUNCATE');
is($pair->b('SET ROLE mallory; SELECT count(*) FROM m.t'), '1', 'TRUNCATE is written');
safe_ok('TRUNCATE, lock_pending');

# --- a failing row is described
$pair->b('SET ROLE mallory; ALTER TABLE m.t ADD CONSTRAINT narrow CHECK (n < 1000)');
as_mallory("INSERT INTO m.t (id, mood, n) VALUES (2, 'bad', 5000)");
OneReplTest::poll_ok($b, 'SELECT count(*) = 1 FROM onerepl.failed', 'F');
$pair->b('SELECT * FROM onerepl.failed; SELECT * FROM onerepl.log');
safe_ok('F');
$pair->b('SET ROLE mallory; ALTER TABLE m.t DROP CONSTRAINT narrow');
$pair->b("SELECT onerepl_resolve_all('branch', 'retry')");
$pair->wait_settled('retried');
safe_ok('retry');

# --- row security, forced upon the owner, does not decide what replication sees
$pair->a("INSERT INTO hidden SELECT n, 'row ' || n FROM generate_series(1, 10) AS n");
$pair->wait_identical('hidden');
$pair->b("SET onerepl.allow_writes = on; INSERT INTO hidden VALUES (11, 'surplus'), (12, 'surplus')");
refreshed('hidden', 'repair');
is($pair->b('SELECT count(*) FROM hidden'), '10', 'surplus rows are gone');
$pair->verify_equal('hidden');
$pair->b("SET onerepl.allow_writes = on; INSERT INTO hidden VALUES (11, 'surplus')");
refreshed('hidden', 'empty');
is($pair->b('SELECT count(*) FROM hidden'), '10', '... by method empty, too');
$pair->a('DELETE FROM hidden WHERE id > 8; UPDATE hidden SET v = v || id');
$pair->wait_identical('hidden');

# --- a trigger that waits for the commit sets the role
$pair->b(<<'SQL');
CREATE FUNCTION set_role() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN SET ROLE mallory; SET search_path = m; RETURN NULL; END $$;
CREATE CONSTRAINT TRIGGER late AFTER INSERT ON plain DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION set_role();
ALTER TABLE plain ENABLE ALWAYS TRIGGER late;
SQL
$pair->a("INSERT INTO plain VALUES ($_, 'x')") for 1 .. 3;
$pair->wait_identical('plain');
$pair->wait_settled('a deferred trigger sets the role');
$pair->verify_equal('plain', 'hidden');

# --- the capture function works as the trigger that onerepl_add_table made, only
$pair->a('CREATE ROLE watcher IN ROLE pg_monitor; CREATE SCHEMA w AUTHORIZATION watcher');
$pair->b('CREATE SCHEMA w; CREATE TABLE w.secret (id int)');
my ($state) = OneReplTest::fails($a, <<'SQL');
SET ROLE watcher;
CREATE TABLE w.secret (id int);
CREATE TRIGGER "!onerepl_capture" AFTER INSERT ON w.secret FOR EACH ROW EXECUTE FUNCTION onerepl.onerepl_capture();
INSERT INTO w.secret VALUES (1);
SQL
is($state, '42501', 'a trigger that calls the capture function records nothing');
($state) = OneReplTest::fails($a, <<'SQL');
CREATE TRIGGER another AFTER INSERT ON plain FOR EACH ROW EXECUTE FUNCTION onerepl.onerepl_capture();
INSERT INTO plain VALUES (9, 'twice');
SQL
is($state, '42501', '... nor a second one of a tracked table');
$pair->a('DROP TRIGGER another ON plain');
($state) = OneReplTest::fails($a, <<'SQL');
CREATE TRIGGER one_more BEFORE INSERT ON plain EXECUTE FUNCTION onerepl.onerepl_lock_pending();
INSERT INTO plain VALUES (9, 'twice');
SQL
is($state, '42501', 'nor does one that lets writers take turns');
$pair->a('DROP TRIGGER one_more ON plain');

# --- what is given as a filter is one expression
$pair->a('CREATE TABLE victim (id int); CREATE ROLE operator; GRANT EXECUTE ON FUNCTION onerepl_set_filter TO operator');
for my $rows ('true); DROP TABLE victim; SELECT (true', 'true)); DROP TABLE victim; --', 'true, false', 'true FROM victim', 'true AS x', 'true; DROP TABLE victim',
	'true UNION SELECT true', '(SELECT true)', '', 'id')
{
	($state) = OneReplTest::fails($a, "SET ROLE operator; SELECT onerepl_set_filter('hq', 'plain', \$rows\$$rows\$rows\$)");
	like($state, qr/^(42601|0A000|42804)$/, "no filter: $rows");
}
is($pair->a("SELECT to_regclass('victim') IS NOT NULL"), 't', 'nothing else was executed');
$pair->a("SET ROLE operator; SELECT onerepl_set_filter('hq', 'plain', 'id > 1 -- a comment')");
$pair->a("INSERT INTO plain VALUES (20, 'y'), (0, 'y')");
$pair->wait_settled('a filter with a comment');
is($pair->b('SELECT string_agg(id::text, \',\' ORDER BY id) FROM plain'), '2,3,20', 'the filter holds');

$pair->verify_equal('m.t', 'm.moods', 'm.parts', 'hidden', 'plain');
safe_ok('at the end');
$pair->finish;
done_testing();
