# Refreshes (Part III): tables are filled while they are in use, through a bad channel and kills; then both sides are identical.
use strict;
use warnings;
use OneReplTest;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(sleep);

my $schema = <<'SQL';
CREATE TABLE small (id int PRIMARY KEY, v text);
CREATE TABLE kinds (a text, b int, c numeric, d timestamptz, e bytea, f jsonb, g int[], h text GENERATED ALWAYS AS (a || 'x') STORED,
                    PRIMARY KEY (a, b));
CREATE TABLE nokey (a int, b text);
CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy');
CREATE TABLE moods (m mood, n int, t text, PRIMARY KEY (m, n));
SQL

my $pair = OneReplTest->new(schema => $schema);

# Everything is complete at the central and confirmed at the remote.
sub wait_done
{
	my ($name, $deadline) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	$pair->poll_a("SELECT count(*) = 0 FROM onerepl.refresh WHERE state IN ('waiting', 'running', 'paused', 'sent', 'cancelling')",
		"$name: done", deadline => $deadline // 60) or $pair->show_state;
	return;
}

# --- a new table, filled from the start
$pair->a("INSERT INTO small SELECT n, 'row ' || n FROM generate_series(1, 1000) AS n");
$pair->b("INSERT INTO small VALUES (5000, 'stale'), (1, 'stale')");
$pair->a("SELECT onerepl_add_table('small', initial => 'refresh')");
$pair->a("UPDATE small SET v = 'changed' WHERE id = 7; DELETE FROM small WHERE id = 8; UPDATE small SET id = 2000 WHERE id = 9");
wait_done('a new table');
$pair->wait_identical('small', { name => 'a new table is filled' });
is($pair->b("SELECT state || ' ' || (rows_done >= 999) FROM onerepl.refresh_window"), 'done true', 'the central tells that it is complete');
is($pair->a("SELECT state || ' ' || percent || ' ' || (lid_end > lid_start) FROM onerepl.refresh_progress"), 'done 100 true', 'and the remote');
is($pair->a('SELECT count(*) FROM onerepl.chunk'), '0', 'confirmed chunks are gone');


# --- keys of several columns, of strings, of types that travel as text; no key; in chunks of few rows
$pair->a(<<'SQL');
INSERT INTO kinds SELECT chr(97 + n % 26) || repeat(chr(65 + n % 7), n % 4), n, n / 7.0, '2020-01-01'::timestamptz + n * interval '1 hour',
    decode(md5(n::text), 'hex'), jsonb_build_object('n', n), ARRAY[n, n + 1] FROM generate_series(1, 700) AS n;
INSERT INTO kinds (a, b, c) VALUES ('', 0, 'NaN'), ('ä', 1, NULL), ('Ä', 1, 0), ('with "quotes", \ and {braces}', 2, 1), ('  ', 2, 2);
INSERT INTO nokey SELECT n % 10, repeat('x', n % 50) FROM generate_series(1, 500) AS n;
INSERT INTO nokey VALUES (NULL, NULL), (NULL, NULL);
INSERT INTO moods SELECT m, n, repeat('long ', 1000) || random() FROM unnest(enum_range(NULL::mood)) AS m, generate_series(1, 40) AS n;
SQL
$pair->b("INSERT INTO nokey VALUES (77, 'stale'); INSERT INTO kinds (a, b) VALUES ('zzz', 9), ('a', 26)");
$pair->track('kinds', 'nokey', 'moods');
is($pair->a("SELECT onerepl_refresh('hq', 'kinds', chunk_rows => 50) + onerepl_refresh('hq', 'nokey') + onerepl_refresh('hq', 'moods', chunk_rows => 7)"),
	'3', 'three refreshes are requested');
wait_done('all kinds');
$pair->wait_identical('kinds', 'nokey', 'moods', { name => 'keys of all kinds, and none' });
cmp_ok($pair->a("SELECT chunks FROM onerepl.refresh WHERE name = 'public.kinds'"), '>=', 14, 'in many chunks');

# --- repair: equal rows are not rewritten; stale ones are replaced, missing ones come, surplus ones go
sub spoil
{
	$pair->b(<<'SQL');
SET onerepl.allow_writes = on;
UPDATE kinds SET c = -1 WHERE b IN (100, 200);
DELETE FROM kinds WHERE b IN (300, 301);
INSERT INTO kinds (a, b) VALUES ('aaaa', 100000), ('a', -5), ('zzzzzz', 1), ('Zz', 7);
UPDATE moods SET t = t || 'x' WHERE n = 5;
INSERT INTO moods VALUES ('sad', 99), ('happy', -1);
DELETE FROM moods WHERE m = 'ok' AND n > 35;
CREATE TABLE IF NOT EXISTS kinds_before AS SELECT xmin::text AS x, ctid AS c, a, b FROM kinds;
TRUNCATE kinds_before;
INSERT INTO kinds_before SELECT xmin::text, ctid, a, b FROM kinds WHERE b NOT IN (100, 200, 100000, -5) AND a NOT IN ('zzzzzz', 'Zz');
SQL
	return;
}
spoil();
isnt($pair->b('SELECT count(*) FROM kinds'), $pair->a('SELECT count(*) FROM kinds'), 'the tables differ');
$pair->a("SELECT onerepl_refresh('hq', 'kinds', 'repair', chunk_rows => 50), onerepl_refresh('hq', 'moods', 'repair', chunk_rows => 9)");
wait_done('repair');
$pair->wait_identical('kinds', 'moods', { name => 'repaired' });
is($pair->b("SELECT count(*) FROM kinds_before AS o LEFT JOIN kinds AS k USING (a, b) WHERE k.xmin::text IS DISTINCT FROM o.x OR k.ctid <> o.c"),
	'0', 'equal rows were left alone');

# --- a chunk that cannot be written is F, and waits
$pair->b("ALTER TABLE small ADD CONSTRAINT short CHECK (length(v) < 7) NOT VALID");
$pair->a("SELECT onerepl_refresh('hq', 'small')");
$pair->poll_b("SELECT operation = 'refresh' AND relation = 'public.small' AND sqlstate = '23514' FROM onerepl.failed", 'a chunk in F');
$pair->b("ALTER TABLE small DROP CONSTRAINT short; SELECT onerepl_resolve_all('branch', 'retry')");
wait_done('after F');
$pair->wait_identical('small', { name => 'written after all' });

# --- pause, resume, cancel; a table that others refer to
$pair->b('CREATE TABLE child (id int REFERENCES small); INSERT INTO child VALUES (1)');
$pair->a("SELECT onerepl_refresh('hq', 'small', chunk_rows => 10, rows_per_second => 100)");
$pair->poll_b("SELECT state = 'filling' FROM onerepl.refresh_window WHERE relation = 'small'::regclass", 'filling');
is($pair->a("SELECT onerepl_refresh_pause('hq', 'small')"), '1', 'paused');
sleep 1;
my $rows = $pair->b("SELECT rows_done FROM onerepl.refresh_window WHERE relation = 'small'::regclass");
sleep 1;
is($pair->b("SELECT rows_done FROM onerepl.refresh_window WHERE relation = 'small'::regclass"), $rows, 'nothing moves');
is(scalar((OneReplTest::fails($pair->node_a, "SELECT onerepl_refresh('hq', 'small')"))[0]), '55006', 'one refresh of a table at a time');
is($pair->a("SELECT onerepl_refresh_resume('hq', 'small')"), '1', 'resumed');
$pair->poll_b("SELECT rows_done > $rows FROM onerepl.refresh_window WHERE relation = 'small'::regclass", 'it goes on');
is($pair->a("SELECT onerepl_refresh_cancel('hq', 'small')"), '1', 'cancelled');
$pair->poll_b("SELECT state = 'incomplete' FROM onerepl_status()", 'the central tells that a table is not complete');
$pair->poll_a("SELECT state = 'cancelled' FROM onerepl.refresh_progress ORDER BY started_at DESC LIMIT 1", 'and the remote that it was cancelled');
$pair->a("UPDATE small SET v = 'tolerant'");
$pair->a("SELECT onerepl_refresh('hq')");
wait_done('all tables');
$pair->wait_identical('small', 'kinds', 'nokey', 'moods', { name => 'a refresh of all tables' });
is($pair->b('SELECT count(*) FROM onerepl.failure'), '0', 'no failure');
$pair->poll_b("SELECT state = 'in step' FROM onerepl_status()", 'in step again');

# --- the remote's table is dropped meanwhile
$pair->a("CREATE TABLE gone (id int PRIMARY KEY)"); $pair->b("CREATE TABLE gone (id int PRIMARY KEY)");
$pair->a("INSERT INTO gone SELECT generate_series(1, 100);
          BEGIN; SELECT onerepl_add_table('gone', initial => 'refresh'); SELECT onerepl_refresh_pause('hq', 'gone'); COMMIT");
$pair->a("DROP TABLE gone; SELECT onerepl_refresh_resume('hq')");
$pair->poll_a("SELECT state = 'failed' FROM onerepl.refresh_progress WHERE relation = 'public.gone'", 'a dropped table is told');

# --- P9's cure: a new start of the link with a refresh, in one transaction
$pair->b("SELECT onerepl_restart_link('branch')");
$pair->b("DROP TABLE child; SET onerepl.allow_writes = on; DELETE FROM small WHERE id < 100; UPDATE kinds SET c = 7 WHERE b = 7");
$pair->a("BEGIN; SELECT onerepl_restart_link('hq'); SELECT onerepl_refresh('hq', method => 'repair'); COMMIT; UPDATE small SET v = 'new' WHERE id < 300");
wait_done('a new start');
$pair->wait_identical('small', 'kinds', 'nokey', 'moods', { name => 'a new start with a refresh' });

$pair->finish;
done_testing();
