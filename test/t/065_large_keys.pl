# Values that name rows are in each record, wherever A stores them: keys, unique columns, partition keys and what filters look at,
# out of line, survive updates of other columns.
use strict;
use warnings;
use OneReplTest;
use Test::More;

my @tables = qw(tk url uq identity parts whole filtered);
my $pair = OneReplTest->new(track => \@tables, schema => <<'SQL');
CREATE FUNCTION long(n int, size int) RETURNS text LANGUAGE sql IMMUTABLE AS
	$$SELECT left(string_agg(md5((n * 1000 + i)::text), ''), size) FROM generate_series(1, size / 32 + 1) AS i$$;
CREATE TABLE tk (k text PRIMARY KEY, v int);
ALTER TABLE tk ALTER k SET STORAGE EXTERNAL;
CREATE TABLE uq (id int PRIMARY KEY, u text UNIQUE, v int);
ALTER TABLE uq ALTER u SET STORAGE EXTERNAL;
CREATE TABLE identity (u text NOT NULL, v int);
ALTER TABLE identity ALTER u SET STORAGE EXTERNAL;
CREATE UNIQUE INDEX identity_u ON identity (u);
ALTER TABLE identity REPLICA IDENTITY USING INDEX identity_u;
CREATE TABLE parts (region text, id int, v int) PARTITION BY LIST (left(region, 1));
CREATE TABLE parts_a PARTITION OF parts (PRIMARY KEY (id)) FOR VALUES IN ('a');
CREATE TABLE parts_b PARTITION OF parts (PRIMARY KEY (id)) FOR VALUES IN ('b');
ALTER TABLE parts_a ALTER region SET STORAGE EXTERNAL;
CREATE TABLE whole (id int PRIMARY KEY, c text, v int);
ALTER TABLE whole ALTER c SET STORAGE EXTERNAL;
CREATE FUNCTION text_of(whole) RETURNS text LANGUAGE sql IMMUTABLE AS 'SELECT md5(row($1.*)::text)';
CREATE UNIQUE INDEX ON whole (text_of(whole));
CREATE TABLE filtered (id int PRIMARY KEY, f text, v int);
ALTER TABLE filtered ALTER f SET STORAGE EXTERNAL;
SELECT string_agg(format('c%s text', n), ', ') AS columns FROM generate_series(1, 50) AS n \gset
CREATE TABLE url (k text PRIMARY KEY, v int, :columns);
SQL
$pair->a("SELECT onerepl_set_filter('hq', 'filtered', 'f > ''''', refresh => NULL)");

$pair->a(<<'SQL');
INSERT INTO tk SELECT long(n, 2500), 1 FROM generate_series(1, 3) AS n;
INSERT INTO url SELECT long(n, 700), 1 FROM generate_series(1, 3) AS n;
UPDATE url SET (c1, c2, c3, c4, c5, c6, c7, c8, c9, c10, c11, c12, c13, c14, c15, c16, c17, c18, c19, c20, c21, c22, c23, c24, c25)
	= (SELECT long(1, 64), long(2, 64), long(3, 64), long(4, 64), long(5, 64), long(6, 64), long(7, 64), long(8, 64), long(9, 64), long(10, 64),
	long(11, 64), long(12, 64), long(13, 64), long(14, 64), long(15, 64), long(16, 64), long(17, 64), long(18, 64), long(19, 64), long(20, 64),
	long(21, 64), long(22, 64), long(23, 64), long(24, 64), long(25, 64));
INSERT INTO uq SELECT n, long(n, 2500), 1 FROM generate_series(1, 3) AS n;
INSERT INTO identity SELECT long(n, 2500), 1 FROM generate_series(1, 3) AS n;
INSERT INTO parts SELECT 'a' || long(n, 2500), n, 1 FROM generate_series(1, 3) AS n;
INSERT INTO whole SELECT n, long(n, 2500), 1 FROM generate_series(1, 3) AS n;
INSERT INTO filtered SELECT n, long(n, 2500), 1 FROM generate_series(1, 3) AS n;
SQL
cmp_ok($pair->a("SELECT pg_relation_size(reltoastrelid) FROM pg_class WHERE oid = '$_'::regclass"), '>', 0, "$_: out of line")
  for qw(tk url uq identity parts_a whole filtered);

# Once with what is already there, once after the unique value has changed hands.
$pair->a("UPDATE $_ SET v = 2") for @tables;
$pair->wait_identical(@tables);
$pair->a("UPDATE $_ SET v = v + 1") for @tables;
$pair->a(<<'SQL');
BEGIN;
UPDATE uq SET u = long(9, 2500) WHERE id = 1;
UPDATE uq SET u = long(1, 2500) WHERE id = 2;
UPDATE uq SET v = 7 WHERE id = 2;
UPDATE uq SET u = long(2, 2500) WHERE id = 1;
UPDATE uq SET v = 8;
COMMIT;
BEGIN;
UPDATE parts SET region = 'b' || long(1, 2500) WHERE id = 1;
UPDATE parts SET v = 9;
COMMIT;
DELETE FROM tk WHERE k = long(1, 2500);
UPDATE tk SET v = 5, k = k || 'x' WHERE k = long(2, 2500);
UPDATE tk SET v = 6;
SQL
$pair->wait_identical(@tables);
$pair->wait_settled;
$pair->verify_equal(@tables);
is($pair->b('SELECT count(*) FROM onerepl.failed'), '0', 'nothing failed');

# What an index looks at as a whole row is in the record as a whole: a row that B lacks can be made of it.
$pair->b('SET onerepl.allow_writes = on; DELETE FROM whole WHERE id = 2');
$pair->a('UPDATE whole SET v = 10 WHERE id = 2');
$pair->poll_b('SELECT sqlstate FROM onerepl.failed', 'a row that B lacks is F', wanted => 'P0002');
$pair->b("SELECT onerepl_resolve_all('branch', 'overwrite')");
$pair->wait_identical('whole');

# Types for internal use take nothing in, neither bytes nor text. A table that has such a column is not tracked; if it gets one, the
# values travel as text, for a column of text.
$pair->a(<<'SQL');
CREATE TABLE measured (a int DEFAULT 5, b int);
INSERT INTO measured SELECT n % 10, n % 5 FROM generate_series(1, 1000) AS n;
CREATE STATISTICS measured_s (ndistinct, dependencies, mcv) ON a, b FROM measured;
ANALYZE measured;
CREATE TABLE refused (id int PRIMARY KEY, n pg_ndistinct);
CREATE TABLE internals (id int PRIMARY KEY, c "char");
SQL
$pair->b('CREATE TABLE internals (id int PRIMARY KEY, n text, d text, m text, t text, c "char")');
my ($refused) = OneReplTest::fails($pair->node_a, "SELECT onerepl_add_table('refused')");
is($refused, '0A000', 'a table of such a type is not tracked');
$pair->track('internals');
$pair->a(<<'SQL');
ALTER TABLE internals ADD n pg_ndistinct, ADD d pg_dependencies, ADD m pg_mcv_list, ADD t pg_node_tree;
INSERT INTO internals SELECT 1, 'x', d.stxdndistinct, d.stxddependencies, d.stxdmcv, (SELECT adbin FROM pg_attrdef WHERE adrelid = 'measured'::regclass)
	FROM pg_statistic_ext AS s JOIN pg_statistic_ext_data AS d ON d.stxoid = s.oid WHERE s.stxname = 'measured_s';
INSERT INTO internals VALUES (2, '');
UPDATE internals SET c = 'y';
SQL
is($pair->a('SELECT count(*) FROM internals WHERE n IS NOT NULL AND d IS NOT NULL AND m IS NOT NULL AND t IS NOT NULL'), '1', 'values of internal types');
ok(OneReplTest::wait_for(sub {
	my ($on_a, $on_b) = map { $_->safe_psql('postgres', 'SELECT id, c, md5(n::text), md5(d::text), md5(m::text), md5(t::text) FROM internals ORDER BY id') } $pair->nodes;
	return $on_a eq $on_b; }, 40), 'their values are there as text') or $pair->show_state('internals');

# A type whose own binary form is refused where it is empty travels as text: the central's column may be text.
$pair->a('CREATE TABLE queries (id int PRIMARY KEY, q tsquery, qs tsquery[])');
$pair->b('CREATE TABLE queries (id int PRIMARY KEY, q text, qs tsquery[])');
$pair->track('queries');
$pair->a(q{INSERT INTO queries VALUES (1, '', ARRAY['', 'a & b']::tsquery[]), (2, 'x:AB* <2> !y', '{}'), (3, NULL, NULL)});
$pair->wait_identical('queries');
$pair->wait_settled;
$pair->verify_equal(@tables, 'queries', 'internals');
$pair->finish;
done_testing();
