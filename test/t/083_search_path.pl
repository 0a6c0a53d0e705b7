# A function that is called while B writes and knows its names from the search path: the hint of the failure says why they are unknown and
# what to do, and that is the cure.
use strict;
use warnings;
use OneReplTest;
use PostgreSQL::Test::Utils;
use Test::More;

my $pair = OneReplTest->new(
	track  => [ 'by_check', 'by_index', 'by_column', 'by_type', 'by_table' ],
	schema => <<'SQL');
CREATE TYPE mood AS ENUM ('good', 'bad');
CREATE TABLE known (v int); INSERT INTO known VALUES (1);
CREATE FUNCTION inner_one(int) RETURNS int IMMUTABLE LANGUAGE sql AS 'SELECT $1';
CREATE FUNCTION calls_function(v int) RETURNS int IMMUTABLE LANGUAGE plpgsql AS 'BEGIN RETURN inner_one(v); END';
CREATE FUNCTION names_type(v int) RETURNS int IMMUTABLE LANGUAGE plpgsql AS 'BEGIN PERFORM ''good''::mood; RETURN v; END';
CREATE FUNCTION reads_table(v int) RETURNS int IMMUTABLE LANGUAGE plpgsql AS 'BEGIN RETURN (SELECT k.v FROM known AS k LIMIT 1); END';
CREATE TABLE by_check (id int PRIMARY KEY);
CREATE TABLE by_index (id int PRIMARY KEY);
CREATE TABLE by_column (id int PRIMARY KEY);
CREATE TABLE by_type (id int PRIMARY KEY);
CREATE TABLE by_table (id int PRIMARY KEY);
SQL
$pair->b(<<'SQL');
ALTER TABLE by_check ADD CHECK (calls_function(id) > 0);
CREATE INDEX ON by_index (calls_function(id));
ALTER TABLE by_column ADD made int GENERATED ALWAYS AS (calls_function(id)) STORED;
ALTER TABLE by_type ADD CHECK (names_type(id) > 0);
ALTER TABLE by_table ADD CHECK (reads_table(id) > 0);
SQL

for ([ 'by_check', '42883', 'calls_function' ], [ 'by_type', '42704', 'names_type' ], [ 'by_table', '42P01', 'reads_table' ],
	[ 'by_index', '42883', 'calls_function' ], [ 'by_column', '42883', 'calls_function' ])
{
	my ($table, $sqlstate, $function) = @$_;
	$pair->b("ALTER FUNCTION $function RESET search_path");
	$pair->a("INSERT INTO $table VALUES (1)");
	$pair->poll_b("SELECT count(*) = 1 AND min(sqlstate) = '$sqlstate' FROM onerepl.failed", "$table: it fails with $sqlstate");
	like($pair->b('SELECT hint FROM onerepl.failed'), qr/search_path = pg_catalog alone: .*ALTER FUNCTION \.\.\. SET search_path/, "$table: the hint says where B looks");
	$pair->b("ALTER FUNCTION $function SET search_path = public");
	$pair->b("SELECT onerepl_resolve('branch', n, 'retry') FROM onerepl.failed");
	$pair->wait_identical('by_check', 'by_type', 'by_table', { name => "$table: and the cure cures it" });
	$pair->wait_settled($table);
}
$pair->verify_equal('by_check', 'by_type', 'by_table', 'by_index', 'by_column');

# Another unknown name has no such hint.
$pair->b('ALTER TABLE by_check RENAME TO away');
$pair->a('INSERT INTO by_check VALUES (2)');
$pair->poll_b("SELECT count(*) = 1 FROM onerepl.failed WHERE sqlstate = '42P01' AND hint !~ 'search_path'", 'a missing table is told as one');
$pair->finish;
done_testing();
