# Every kind of change reaches B; both sides tell where they stand; a commit does not wait for Ti.
use strict;
use warnings;
use OneReplTest;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(time);

my $pair = OneReplTest->new(
	track  => [ 'item', 'kinds', '"Odd name"', 'keyless' ],
	schema => <<'SQL');
CREATE TABLE item (id int PRIMARY KEY, name text, price numeric(12,2), at timestamptz DEFAULT now());
INSERT INTO item SELECT n, 'old ' || n, n, '2020-01-01' FROM generate_series(1, 10) AS n;   -- state I
CREATE TYPE colour AS ENUM ('red', 'green');
CREATE TYPE pair AS (x int, y text);
CREATE DOMAIN positive AS int CHECK (VALUE > 0);
CREATE TABLE kinds (id int8 PRIMARY KEY, b bool, s int2, f4 float4, f8 float8, n numeric, t text, c char(5), v varchar(9),
    raw bytea, d date, ti time, tz timestamptz, ts timestamp, iv interval, u uuid, j json, jb jsonb, ip inet, net cidr,
    mac macaddr, bits bit(5), vb varbit, ints int[], texts text[], r int4range, mr int4multirange, e colour, es colour[],
    p pair, pos positive, money_ money, x xml, pt point, poly polygon, ts_v tsvector, ts_q tsquery, nm name, ch "char", reg regclass,
    g int GENERATED ALWAYS AS (id * 2) STORED);
CREATE TABLE "Odd name" ("Key ""quoted""" text, "second" int, "value" text, PRIMARY KEY ("second", "Key ""quoted"""));
CREATE TABLE keyless (code text NOT NULL, v int);
CREATE UNIQUE INDEX keyless_code ON keyless (code);
ALTER TABLE keyless REPLICA IDENTITY USING INDEX keyless_code;
SQL

my @tables = ('item', 'kinds', '"Odd name"', 'keyless');

# --- insert, update, delete
$pair->a("INSERT INTO item (id, name, price) SELECT n, 'new ' || n, n / 3.0 FROM generate_series(11, 500) AS n");
$pair->a("UPDATE item SET name = name || ' changed', price = NULL WHERE id % 7 = 0");
$pair->a("DELETE FROM item WHERE id % 11 = 0");
$pair->a("UPDATE item SET id = id + 1000 WHERE id < 5");
$pair->a(q{INSERT INTO "Odd name" VALUES ('a', 1, 'x'), ('b''"', 2, NULL); UPDATE "Odd name" SET "value" = 'y' WHERE second = 2});
$pair->a("INSERT INTO keyless VALUES ('a', 1), ('b', 2); UPDATE keyless SET code = 'c' WHERE code = 'a'; DELETE FROM keyless WHERE code = 'b'");
$pair->wait_identical('item', '"Odd name"', 'keyless', { name => 'insert, update, delete, changed keys' });

# --- types; the writer's session settings must not matter
$pair->a(<<'SQL');
SET DateStyle = 'German'; SET IntervalStyle = 'iso_8601'; SET TimeZone = 'Asia/Kolkata'; SET extra_float_digits = -10;
SET bytea_output = 'escape'; SET lc_monetary = 'C'; SET search_path = pg_catalog;
INSERT INTO public.kinds VALUES (1, true, -32768, 'NaN', 0.1::float8 + 0.2::float8, 1e100 / 3, E'tab\t newline\n \\ quote''',
    'ab', 'varchar', '\x00ff10', '0044-03-15 BC', '23:59:59.999999', '4713-01-01 BC 00:00:00+00', '294276-12-31 23:59:59.999999',
    '-1 mon 5 days -00:00:00.000001', gen_random_uuid(), '{"a":  1}', '{"b": [1, null]}', '::1/64', '10.0.0.0/8', '08:00:2b:01:02:03',
    B'10101', B'1', '{{1,NULL},{3,4}}', '{"a,b",NULL,"NULL",""}', '[1,5)', '{[1,2),[5,9)}', 'green', '{red,green}',
    ROW(1, 'a"b'), 5, 12.34, '<a/>', '(1.5,-2)', '((0,0),(1,1),(0,1))', 'a:1 b:2A', 'a & !b', 'somename', 'x', 'pg_class');
INSERT INTO public.kinds (id, f4, f8, n, tz, d) VALUES (2, '-Infinity', 1e-307, 'Infinity', 'infinity', '-infinity');
SQL
$pair->wait_identical('kinds', { name => 'values of many types are the same, bit for bit' });

# --- large values, unchanged ones left out
$pair->a(<<'SQL');
INSERT INTO kinds (id, t) SELECT 100, string_agg(md5(n::text), '') FROM generate_series(1, 20000) AS n;
UPDATE kinds SET s = 5 WHERE id = 100;
UPDATE kinds SET b = false WHERE id IN (1, 100);
SQL
$pair->wait_identical('kinds', { name => 'large values, and updates that leave them alone' });

# --- a column more, with a default that old rows get without a rewrite
for my $node ($pair->nodes)
{
	$node->safe_psql('postgres', "SET onerepl.allow_writes = on; ALTER TABLE item ADD extra int DEFAULT 42; ALTER TABLE item DROP price");
}
$pair->a("UPDATE item SET name = 'after the column' WHERE id = 20; INSERT INTO item (id, name) VALUES (5000, 'x')");
$pair->wait_identical('item', { name => 'a column added and one dropped on both sides' });

# --- truncate
$pair->a('TRUNCATE item; INSERT INTO item (id, name) VALUES (1, \'first after\')');
$pair->wait_identical(@tables, { name => 'truncate' });

# --- states, log, status
$pair->wait_settled('after all changes');
$pair->poll_b('SELECT written_to = numbered_to FROM onerepl_status()', 'B: S = M');
is($pair->a('SELECT numbered_to FROM onerepl_status()'), $pair->b('SELECT written_to FROM onerepl_status()'), 'M_a = S_b');
is($pair->a('SELECT count(*), min(n), max(n) = count(*) FROM onerepl.log'),
	$pair->a("SELECT numbered_to || '|1|t' FROM onerepl_status()"), 'numbers from 1 without a gap');
is($pair->a("SELECT DISTINCT state FROM onerepl.log"), 'C', 'all records are confirmed on A');
is($pair->b("SELECT DISTINCT state FROM onerepl.log"), 'R', 'all records are received on B');
is($pair->a("SELECT state FROM onerepl_object_state('item', '1')"), 'C', 'state of an object that was changed');
is($pair->b("SELECT state FROM onerepl_object_state('item', '1')"), 'R', 'the same object on B');
is($pair->a("SELECT state FROM onerepl_object_state('item', '777777')"), 'I', 'state of an object that was never changed');
OneReplTest::nothing_told($pair->node_a, 'nothing to tell on A');
OneReplTest::nothing_told($pair->node_b, 'nothing to tell on B');

# --- the guard of B (P8)
my ($state, $message) = OneReplTest::fails($pair->node_b, "INSERT INTO item (id) VALUES (99)");
isnt($state, '00000', "B refuses a write: $state $message");
($state) = OneReplTest::fails($pair->node_b, 'TRUNCATE item');
isnt($state, '00000', 'B refuses TRUNCATE');
is($pair->b("SET onerepl.allow_writes = on; UPDATE item SET name = name; SELECT 'done'"), 'done', 'an administrator may lift it');
($state) = OneReplTest::fails($pair->node_b,
	"CREATE ROLE writer; GRANT ALL ON item TO writer; SET ROLE writer; SET onerepl.allow_writes = on; DELETE FROM item");
isnt($state, '00000', 'nobody else may');

# --- a commit wakes the sender
$pair->a("ALTER SYSTEM SET onerepl.send_interval = '10min'; SELECT pg_reload_conf()");
sleep 1;
my $begin = time;
$pair->a("INSERT INTO item (id, name) VALUES (2, 'quick')");
$pair->poll_b("SELECT count(*) FROM item WHERE id = 2", 'a commit does not wait for Ti',
	wanted => '1', deadline => 5);
note sprintf 'seen after %.3f s', time - $begin;
is($pair->a("INSERT INTO item (id, name) VALUES (3, 'waited for'); SELECT onerepl_wait('hq', '10 s')"), 't', 'onerepl_wait');
is($pair->b('SELECT count(*) FROM item WHERE id = 3'), '1', 'and then the change is on B');

$pair->finish;
done_testing();
