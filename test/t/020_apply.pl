# Apply (src/apply) between two servers: values of many types bit by bit, tables that B has in another shape, partitions,
# tables without a key, deferrable constraints, foreign keys in any order, generated and identity columns, triggers of B.
use strict;
use warnings;
use OneReplTest;
use PostgreSQL::Test::Utils;
use Test::More;

my $pair = OneReplTest->new(schema => <<'SQL');
CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy');
CREATE DOMAIN positive AS int CHECK (VALUE > 0);
CREATE TYPE pair AS (a int, b text);
CREATE TABLE types (
    id int PRIMARY KEY, b bool, i2 int2, i8 int8, f4 float4, f8 float8, n numeric, n2 numeric(10, 2), c char(5),
    v varchar(10), t text, by bytea, d date, ti time, tz timetz, ts timestamp, tstz timestamptz, iv interval, u uuid,
    j json, jb jsonb, x xml, ia int[], ta text[], r int4range, mr nummultirange, inet inet, cidr cidr, mac macaddr,
    pt point, poly polygon, bi bit(3), vb varbit, m mood, ma mood[], p positive, cp pair, ts_v tsvector, mny money,
    rc regclass, lsn pg_lsn);
CREATE TABLE swap (id int PRIMARY KEY DEFERRABLE, u int UNIQUE DEFERRABLE INITIALLY DEFERRED, v text,
    r int4range, EXCLUDE USING gist (r WITH &&) DEFERRABLE);
CREATE TABLE nokey (a int, b text);
CREATE TABLE part (id int, k text, v text, PRIMARY KEY (id, k)) PARTITION BY LIST (k);
CREATE TABLE part_a PARTITION OF part FOR VALUES IN ('a');
CREATE TABLE part_b PARTITION OF part FOR VALUES IN ('b');
CREATE TABLE parent (id int PRIMARY KEY);
CREATE TABLE child (id int PRIMARY KEY, p int REFERENCES parent ON DELETE CASCADE);
CREATE TABLE computed (id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, a int, b int GENERATED ALWAYS AS (a * 2) STORED);
CREATE TABLE big (id int PRIMARY KEY, t text, n int);
SQL

# B's own shapes: other orders of columns, further ones, other types that take the same text, an index over lower(t).
$pair->b(<<'SQL');
DROP TABLE big;
CREATE TABLE big (extra text DEFAULT 'of B', n int8, t varchar, id int8 PRIMARY KEY, made timestamptz NOT NULL DEFAULT now());
CREATE TABLE seen (what text);
CREATE FUNCTION see() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN INSERT INTO public.seen VALUES (TG_OP || ' ' || COALESCE(NEW.id, OLD.id)); RETURN NULL; END $$;
CREATE TRIGGER see AFTER INSERT OR UPDATE OR DELETE ON parent FOR EACH ROW EXECUTE FUNCTION see();
ALTER TABLE parent ENABLE ALWAYS TRIGGER see;
SQL
$pair->track(qw(types swap nokey part parent child computed big));

# ---------------------------------------------------------------- types
$pair->a(<<'SQL');
SET DateStyle = 'SQL, DMY'; SET IntervalStyle = 'sql_standard'; SET TimeZone = 'Asia/Kathmandu'; SET extra_float_digits = 0;
SET bytea_output = 'escape'; SET xmloption = 'document';
INSERT INTO types VALUES (1, true, -7, 9223372036854775807, 0.1, 0.1::float8 + 0.2, 'NaN', 12.345, 'ab', 'xyz', 'ünï', '\000\001\377',
    '0044-03-15 BC', '12:34:56.789', '12:34:56+05:45', '2020-02-29 23:59:59.999999', '2020-02-29 23:59:59.999999+14', '-1 day +2:03:04',
    '00000000-0000-0000-0000-00000000000f', '{"a" :  1}', '{"b": [1, 2.50]}', '<a>b</a>', '{1,NULL,3}', '{"a b","c,d",NULL,""}', '[1,5)',
    '{[1,2),(3,4]}', '10.0.0.1/8', '10.0.0.0/8', '08:00:2b:01:02:03', '(1.5,-2)', '((0,0),(1,1),(1,0))', B'101', B'10101', 'happy',
    '{sad,ok}', 5, '(1,"a,b")', 'a:1 b:2', 12.34, 'types', '16/B374D848');
INSERT INTO types (id) VALUES (2);
INSERT INTO types (id, f8, n, ts, d) VALUES (3, '-Infinity', '1e-100', 'infinity', '-infinity');
UPDATE types SET t = 'changed', ma = '{happy}' WHERE id = 1;
SQL
$pair->wait_identical('types');
for my $column (qw(f8 n ts d tz iv rc))
{
	my $sql = "SET extra_float_digits = 3; SELECT string_agg(coalesce($column\::text, '-'), '|' ORDER BY id) FROM types";
	is($pair->b($sql), $pair->a($sql), "values of $column");
}

# ---------------------------------------------------------------- deferrable constraints
$pair->a(<<'SQL');
INSERT INTO swap SELECT g, g, 'v' || g, int4range(g * 10, g * 10 + 10) FROM generate_series(1, 5) AS g;
BEGIN;
UPDATE swap SET id = id + 1;
UPDATE swap SET u = CASE u WHEN 1 THEN 2 ELSE 1 END WHERE u IN (1, 2);
SET CONSTRAINTS ALL DEFERRED;
UPDATE swap SET r = '[20,30)' WHERE v = 'v1';
UPDATE swap SET r = '[10,20)' WHERE v = 'v2';
COMMIT;
SQL
$pair->wait_identical('swap');

# ---------------------------------------------------------------- without a key
$pair->a(<<'SQL');
INSERT INTO nokey VALUES (1, 'x'), (1, 'x'), (1, 'x'), (NULL, NULL), (2, NULL);
DELETE FROM nokey WHERE ctid = (SELECT ctid FROM nokey WHERE a = 1 LIMIT 1);
UPDATE nokey SET b = 'y' WHERE ctid = (SELECT ctid FROM nokey WHERE a = 1 LIMIT 1);
UPDATE nokey SET a = 0 WHERE a IS NULL;
SQL
$pair->wait_identical('nokey');

# ---------------------------------------------------------------- partitions
$pair->a(<<'SQL');
INSERT INTO part SELECT g, CASE g % 2 WHEN 0 THEN 'a' ELSE 'b' END, 'v' FROM generate_series(1, 20) AS g;
UPDATE part SET k = 'b' WHERE id = 2;
UPDATE part SET v = 'w' WHERE id > 10;
DELETE FROM part WHERE id IN (3, 4);
INSERT INTO part_a VALUES (100, 'a', 'direct');
SQL
$pair->wait_identical('part', 'part_a', 'part_b');

# ---------------------------------------------------------------- foreign keys, triggers of B
$pair->a(<<'SQL');
INSERT INTO parent VALUES (1), (2), (3);
INSERT INTO child SELECT g, g % 3 + 1 FROM generate_series(1, 9) AS g;
DELETE FROM parent WHERE id = 2;
BEGIN;
TRUNCATE parent, child;
INSERT INTO parent VALUES (7);
COMMIT;
SQL
$pair->wait_identical('parent', 'child');
is($pair->b("SELECT string_agg(what, ',' ORDER BY what) FROM seen"), 'DELETE 2,INSERT 1,INSERT 2,INSERT 3,INSERT 7',
	'a trigger that is enabled ALWAYS fires for applied rows');

# ---------------------------------------------------------------- generated and identity columns
$pair->a('INSERT INTO computed (a) VALUES (1), (2), (3); UPDATE computed SET a = 20 WHERE a = 2; DELETE FROM computed WHERE a = 1');
$pair->wait_identical('computed');

# ---------------------------------------------------------------- another shape on B, values out of line
$pair->a(<<'SQL');
INSERT INTO big SELECT g, string_agg(md5(g::text || h), ''), g FROM generate_series(1, 5) AS g, generate_series(1, 1000) AS h GROUP BY g;
UPDATE big SET n = n + 100;
UPDATE big SET id = 50 WHERE id = 5;
SQL
my $same = 'SELECT md5(string_agg(id || t || n, chr(10) ORDER BY id)) FROM big';
$pair->poll_b($same, 'a table of another shape', wanted => $pair->a($same));
is($pair->b("SELECT count(*) FROM big WHERE extra = 'of B' AND made IS NOT NULL"), '5', 'defaults of B');

# ---------------------------------------------------------------- the guard
for my $sql ('INSERT INTO nokey VALUES (1)', 'UPDATE big SET n = 1', 'DELETE FROM parent', 'TRUNCATE nokey',
	"INSERT INTO part VALUES (1, 'a')", "INSERT INTO part_a VALUES (1, 'a')", 'COPY nokey FROM PROGRAM $$true$$')
{
	my ($state) = OneReplTest::fails($pair->node_b, $sql);
	is($state, '25006', "refused on B: $sql");
}
is($pair->b('SELECT count(*) FROM onerepl.failed'), '0', 'nothing failed');
$pair->finish;
done_testing();
