# onerepl_verify: exact while both sides are in use; one changed byte is found, named and mended, and nothing else is rewritten.
use strict;
use warnings;
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
	OneReplTest::poll_ok($pair->node_a, "SELECT count(*) = 0 FROM onerepl.refresh WHERE state IN ('waiting', 'running', 'paused', 'sent', 'cancelling')",
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
OneReplTest::poll_ok($pair->node_a, "SELECT count(*) = 0 FROM onerepl.refresh WHERE state IN ('waiting', 'running', 'sent')", 'repaired');
$pair->wait_identical('v');
is($pair->b('SELECT count(*) FROM before AS o LEFT JOIN v USING (id) WHERE v.xmin::text IS DISTINCT FROM o.x'), '0', 'nothing else was rewritten');
verify('afterwards', "'v'");
is($pair->b('SELECT count(*) FROM onerepl.differences'), '0', 'no difference is left');

# --- a missing row, a surplus row, a table without key, a key of strings
$pair->b("SET onerepl.allow_writes = on; DELETE FROM nokey WHERE ctid = (SELECT min(ctid) FROM nokey); INSERT INTO names VALUES ('zz', 0)");
verify('all');
is($pair->b("SELECT string_agg(relation || ' ' || rows_here - rows_remote, ', ' ORDER BY relation) FROM onerepl.differences"), 'public.names 1, public.nokey -1',
	'rows too many and too few');
is($pair->b('SELECT count(*) FROM onerepl.failure'), '0', 'a difference is no failure');

$pair->finish;
done_testing();
