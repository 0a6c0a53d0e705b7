# onerepl_verify: exact while both sides are in use; one changed byte is found, named and mended, and nothing else is rewritten.
use strict;
use warnings;
use IPC::Run ();
use OneReplTest;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(sleep);

my $pair = OneReplTest->new(track => [ 'v', 'names', 'nokey' ], schema => <<'SQL');
CREATE TABLE v (id int PRIMARY KEY, a text, b numeric, c timestamptz, d float8, g int GENERATED ALWAYS AS (length(a)) STORED);
CREATE TABLE names (name text PRIMARY KEY, n int);
CREATE TABLE nokey (a int, b text);
SQL
$pair->b('ALTER TABLE nokey DROP b; ALTER TABLE nokey ADD z int, ADD b text; ALTER TABLE nokey DROP z');
$pair->a(<<'SQL');
INSERT INTO v SELECT n, 'row ' || n, n / 3.0, '2020-01-01'::timestamptz + n * interval '1 min', n / 7.0 FROM generate_series(1, 20000) AS n;
INSERT INTO names SELECT chr(65 + n % 57) || n, n FROM generate_series(1, 3000) AS n;
INSERT INTO nokey SELECT n % 7, NULLIF(n % 5, 0)::text FROM generate_series(1, 300) AS n;
SQL
$pair->wait_identical('v', 'names', 'nokey');

sub verify
{
	my ($name, @arguments) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	$pair->a("SELECT onerepl_verify('hq'" . join('', map { ", $_" } @arguments) . ')');
	$pair->poll_a("SELECT count(*) = 0 FROM onerepl.refresh WHERE state IN ('waiting', 'running', 'paused', 'sent', 'cancelling')",
		"$name: done") or $pair->show_state('v');
	return;
}

my $load = "$PostgreSQL::Test::Utils::tmp_check/load.sql";
append_to_file($load, <<'SQL');
\set id random(1, 30000)
\set other random(1, 30000)
INSERT INTO v VALUES (:id, 'new') ON CONFLICT (id) DO UPDATE SET a = v.a || '.';
UPDATE v SET b = b + 1 WHERE id BETWEEN :other AND :other + 5;
DELETE FROM v WHERE id = :other + 7;
INSERT INTO names VALUES ('x' || :id, 1) ON CONFLICT (name) DO UPDATE SET n = names.n + 1;
SQL
my $client = OneReplTest::start_pgbench($pair->node_a, '-c', '2', '-T', '60', '-R', '200', '-f', $load);
sleep 0.5;
verify('in use', 'chunk_rows => 700', 'rows_per_second => 20000');
is($pair->b('SELECT sum(differences) FROM onerepl.verified'), '0', 'equal while in use');
is($pair->b('SELECT bool_and(complete) FROM onerepl.verified'), 't', 'and complete');
cmp_ok($pair->b("SELECT chunks FROM onerepl.verified WHERE relation = 'v'::regclass"), '>=', 25, 'in chunks');
$client->kill_kill;
eval { $client->finish };
$pair->wait_settled('quiet');

# --- one byte
$pair->b("SET onerepl.allow_writes = on; UPDATE v SET a = 'Row' || substr(a, 4) WHERE id = (SELECT min(id) FROM v WHERE id > 7000 AND a LIKE 'row%')");
$pair->b("CREATE TABLE before AS SELECT id, xmin::text AS x FROM v WHERE a NOT LIKE 'Row%'");
verify('one byte', "'v'", 'chunk_rows => 1000');
is($pair->b('SELECT count(*) FROM onerepl.differences'), '1', 'one chunk differs');
is($pair->b(q{SELECT bool_and(key_from[1]::int < (SELECT id FROM v WHERE a LIKE 'Row%') AND key_to[1]::int >= (SELECT id FROM v WHERE a LIKE 'Row%')) FROM onerepl.differences}),
	't', 'the right one');
is($pair->b("SELECT count(*) FROM onerepl.journal WHERE level = 'critical' AND message ~ 'table public.v differs'"), '1', 'and the journal tells');
$pair->a("SELECT onerepl_refresh('hq', 'v', 'repair')");
$pair->poll_a("SELECT count(*) = 0 FROM onerepl.refresh WHERE state IN ('waiting', 'running', 'sent')", 'repaired');
$pair->wait_identical('v');
is($pair->b('SELECT count(*) FROM before AS o LEFT JOIN v USING (id) WHERE v.xmin::text IS DISTINCT FROM o.x'), '0', 'nothing else was rewritten');
verify('afterwards', "'v'");
is($pair->b('SELECT count(*) FROM onerepl.differences'), '0', 'no difference is left');

# --- on request the rows and columns by name; a range of keys is mended, and the rest of the table is not even read
sub counts { return $pair->b("SELECT count(*) FILTER (WHERE difference = 'different'), count(*) FILTER (WHERE difference = 'missing'), count(*) FILTER (WHERE difference = 'surplus') FROM onerepl.differing_rows"); }
$pair->b("SET onerepl.allow_writes = on;
    UPDATE v SET a = 'spoilt', d = NULL WHERE id = (SELECT min(id) FROM v WHERE id >= 4500);
    DELETE FROM v WHERE id = (SELECT min(id) FROM v WHERE id >= 4600); INSERT INTO v (id, b) VALUES (-4700, 1);
    UPDATE names SET n = -1 WHERE name = (SELECT min(name) FROM names)");
verify('rows', 'NULL', 'with_rows => true');
is(counts(), '2|1|1', 'rows that differ, are missing, are too many');
is($pair->b("SELECT string_agg(concat_ws(' ', difference, key[1]::int > 4499, columns), ', ' ORDER BY difference) FROM onerepl.differing_rows WHERE relation = 'public.v'"),
	'different t {a,d}, missing t, surplus f', 'by key and columns');
is($pair->b("SELECT key[1] = (SELECT min(name) FROM names) AND columns = '{n}' FROM onerepl.differing_rows WHERE relation = 'public.names'"), 't', 'by a key of strings');
is($pair->b("SELECT count(*) FROM onerepl.journal WHERE message ~ 'rows of table public.v that differ: .*a, d'"), '1', 'the journal names them');
verify('range', "'v'", 'with_rows => true', "key_from => '{4000}'", "key_to => '{5000}'");
is($pair->b("SELECT count(*) || ' ' || string_agg(difference, ' ' ORDER BY difference) FROM onerepl.differing_rows WHERE relation = 'public.v'"), '2 different missing', 'of a range');
is(scalar((OneReplTest::fails($pair->node_a, "SELECT onerepl_refresh('hq', 'v', key_from => '{1}')"))[0]), '22023', 'a range is never emptied');
is(scalar((OneReplTest::fails($pair->node_a, "SELECT onerepl_refresh('hq', 'v', 'repair', key_from => '{1,2}')"))[0]), '22023', 'a key of one column');

# The statements that the journal gives, range by range.
verify('ranges', "'v'", 'chunk_rows => 1000');
is($pair->b("SELECT count(*) FROM onerepl.differences WHERE relation = 'public.v'"), '2', 'two ranges differ');
$pair->b("DROP TABLE before; CREATE TABLE before AS SELECT id, xmin::text AS x, ctid AS c FROM v");
my @mend = split /\n/, $pair->b("SELECT replace(substring(hint from 'onerepl_refresh.*?\\)'), 'link', '''hq''') FROM onerepl.journal
    WHERE level = 'critical' AND first IN (SELECT n FROM onerepl.differences WHERE relation = 'public.v') ORDER BY id");
for my $statement (@mend)
{
	$pair->a("SELECT $statement");
	$pair->poll_a("SELECT count(*) = 0 FROM onerepl.refresh WHERE state IN ('waiting', 'running', 'sent')", "mended: $statement");
}
cmp_ok($pair->a("SELECT sum(rows_done) FROM (SELECT rows_done FROM onerepl.refresh ORDER BY id DESC LIMIT 2) AS r"), '<=', 2001, 'only those ranges were read');
$pair->wait_identical('v', { name => 'ranges are mended' });
is($pair->b('SELECT count(*) FROM before AS o LEFT JOIN v USING (id) WHERE v.ctid IS DISTINCT FROM o.c OR v.xmin::text IS DISTINCT FROM o.x'), '2', 'nothing else was rewritten');
is($pair->b("SELECT state FROM onerepl.refresh_window WHERE relation = 'v'::regclass"), 'done', 'and the table is complete');

# A table that is not complete does not become so because a part of it is mended.
$pair->a("SELECT onerepl_refresh('hq', 'v', 'repair', chunk_rows => 100, rows_per_second => 10)");
$pair->poll_b("SELECT state = 'filling' FROM onerepl.refresh_window WHERE relation = 'v'::regclass", 'filling');
$pair->a("SELECT onerepl_refresh_cancel('hq', 'v')");
$pair->poll_b("SELECT state = 'cancelled' FROM onerepl.refresh_window WHERE relation = 'v'::regclass", 'cancelled');
$pair->a("SELECT onerepl_refresh('hq', 'v', 'repair', key_from => '{1}', key_to => '{10}')");
$pair->poll_a("SELECT count(*) = 0 FROM onerepl.refresh WHERE state IN ('waiting', 'running', 'sent', 'cancelling')", 'a part of it');
is($pair->b("SELECT state FROM onerepl.refresh_window WHERE relation = 'v'::regclass"), 'cancelled', 'and it is not complete still');
$pair->a("SELECT onerepl_refresh('hq', NULL, 'repair')");
$pair->poll_b("SELECT bool_and(state = 'done') FROM onerepl.refresh_window", 'all are complete');

# --- a missing row, a surplus row, a table without key, a key of strings
$pair->b("SET onerepl.allow_writes = on; DELETE FROM nokey WHERE ctid = (SELECT min(ctid) FROM nokey); INSERT INTO names VALUES ('zz', 0)");
verify('all');
is($pair->b("SELECT string_agg(relation || ' ' || rows_here - rows_remote, ', ' ORDER BY relation) FROM onerepl.differences"), 'public.names 1, public.nokey -1',
	'rows too many and too few');
is($pair->b('SELECT count(*) FROM onerepl.failure'), '0', 'a difference is no failure');

# --- when, in which order, and how fast: a time of its own, the places of two tables, the default throttle while A is in use
$pair->a("SELECT onerepl_verify('hq', 'v', priority => 2), onerepl_verify('hq', 'names', priority => 1), onerepl_verify('hq', 'nokey', start_at => now() + interval '1 s')");
$pair->poll_a("SELECT count(*) = 0 FROM onerepl.refresh WHERE state IN ('waiting', 'running', 'paused', 'sent', 'cancelling')", 'three verifications');
is($pair->a("SELECT string_agg(name, ' ' ORDER BY lid_end) FROM (SELECT * FROM onerepl.refresh ORDER BY id DESC LIMIT 3) AS r WHERE start_at IS NULL"),
	'public.names public.v', 'in the order of their places');
is($pair->a("SELECT started_at >= start_at FROM onerepl.refresh ORDER BY id DESC LIMIT 1"), 't', 'and not before its time');
is($pair->b("SELECT string_agg(concat_ws(' ', relation, state, percent), ', ' ORDER BY relation) FROM onerepl.refresh_progress WHERE method = 'verify'"),
	'public.names done 100, public.nokey done 100, public.v done 100', 'the central shows the progress');

# A part that could not be compared (a foreign partition was ahead) is not equal. As apply notes it:
for my $part ("false, '{}', '{100}', '100', '100', true", "true, '{100}', '{}', '', '', NULL")
{
	$pair->b("SELECT onerepl.note_verified((SELECT id FROM onerepl.link), 'v'::regclass, 1000000, 1, $part, 'public.v')");
}
is($pair->b("SELECT state FROM onerepl.refresh_progress WHERE method = 'verify' AND relation = 'public.v'"), 'incomplete', 'a part was not compared');
is(OneReplTest::journal_count($pair->node_b, like => 'equal, but for 1 chunks that were not compared'), 1, 'and the journal says so');

my $rests = "SELECT r.not_before > b.made_at FROM onerepl.refresh AS r JOIN onerepl.batch AS b ON b.last = r.lid_end ORDER BY r.id DESC LIMIT 1";
is($pair->a($rests), 'f', 'a share of 100 percent: no rest behind a chunk');
$pair->a('ALTER SYSTEM SET onerepl.refresh_share = 1'); $pair->a('SELECT pg_reload_conf()');
my $client_at_work = IPC::Run::start([ 'psql', '-XAtq', '-d', $pair->node_a->connstr('postgres'), '-c', 'SELECT pg_sleep(60)' ], '>', '/dev/null', '2>', '/dev/null');
$pair->poll_a("SELECT count(*) = 1 FROM pg_stat_activity WHERE query = 'SELECT pg_sleep(60)'", 'somebody uses the server');
verify('throttled', "'v'");
is($pair->a($rests), 't', 'a share of 1 percent: a rest');
verify('as fast as was said', "'v'", 'rows_per_second => 1000000000000');
is($pair->a($rests), 'f', 'unless a speed was given');
$client_at_work->kill_kill;

$pair->finish;
done_testing();
