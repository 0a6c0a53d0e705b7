# A told statement means on B what it meant on A, whatever either session's settings are that the lexer, the parser, the analysis and
# input functions read (P21).
use strict;
use warnings;
use OneReplTest;
use PostgreSQL::Test::Utils;
use Test::More;

my $pair = OneReplTest->new(schema => 'CREATE SCHEMA mine; ' . join ' ', map { "CREATE TABLE t$_ (id int PRIMARY KEY, b bytea); INSERT INTO t$_ VALUES (1, '\\x0a');" } 1 .. 9);
OneReplTest::apply_statements($pair->node_b);
$pair->track(map { "t$_" } 1 .. 9);

sub is_the_same
{
	my ($name, @tables) = @_;
	$pair->a("SELECT onerepl_wait('hq', '30 s')");
	$pair->wait_identical(@tables, { name => $name });
	for my $table (@tables)
	{
		is($pair->b("SELECT string_agg(pg_get_expr(adbin, adrelid), ' ' ORDER BY adnum) FROM pg_attrdef WHERE adrelid = '$table'::regclass"),
			$pair->a("SELECT string_agg(pg_get_expr(adbin, adrelid), ' ' ORDER BY adnum) FROM pg_attrdef WHERE adrelid = '$table'::regclass"), "$name: the defaults too");
	}
	return;
}

# --- B reads strings otherwise
my @for_all_of_b = (
	"standard_conforming_strings = off", "backslash_quote = off", "transform_null_equals = on", "default_text_search_config = 'pg_catalog.german'",
	"xmlbinary = hex", "datestyle = 'SQL, DMY'", "array_nulls = off", "xmloption = document");
$pair->b("ALTER DATABASE postgres SET $_") for @for_all_of_b;
$pair->node_b->restart;
OneReplTest::wait_up($pair->node_b);
# The workers have them; the sessions of this test that compare do not.
$pair->poll_a('SELECT bool_and(written_to = numbered_to) FROM onerepl_status()', 'B is back');
$pair->b('ALTER DATABASE postgres RESET ALL');
$pair->a(q(ALTER TABLE t1 ADD p text DEFAULT 'C:\new', ADD q bool DEFAULT (NULL = NULL), ADD v tsvector DEFAULT to_tsvector('die Katzen, the cats'),
  ADD x text DEFAULT xmlelement(name e, '\x00ff'::bytea)::text, ADD d date DEFAULT '01/02/2020', ADD l text[] DEFAULT '{NULL,a}'));
is_the_same('settings of B', 't1');
is($pair->b('SELECT p FROM t1'), 'C:\new', 'the string is what A gave');

# --- A's session does
$pair->a(q(SET standard_conforming_strings = off; SET escape_string_warning = off;
ALTER TABLE t2 ADD p text DEFAULT 'C:\\\\new\ttab', ADD q text DEFAULT 'it\\'s'));
is_the_same('strings with escapes', 't2');
# The text is lexed as a whole, before a SET in it acts.
my $connection = $pair->node_a->connstr('postgres');
IPC::Run::run([ 'psql', '-X', '-v', 'ON_ERROR_STOP=1', '-d', $connection, '-c', q(SET standard_conforming_strings = off; ALTER TABLE t3 ADD p text DEFAULT 'C:\new'; ALTER TABLE t3 ADD q text DEFAULT 'D:\new') ]);
is_the_same('a SET in the same text', 't3');
is($pair->b('SELECT p || q FROM t3'), 'C:\newD:\new', 'which comes too late for its strings');
$pair->a(q(SET transform_null_equals = on; SET default_text_search_config = 'pg_catalog.english'; SET xmlbinary = hex; SET array_nulls = off; SET xmloption = document;
SET lc_monetary = 'C'; SET datestyle = 'SQL, DMY'; SET timezone = 'Asia/Tokyo'; SET intervalstyle = sql_standard;
ALTER TABLE t4 ADD q bool DEFAULT (current_date IS NULL = NULL), ADD v tsvector DEFAULT to_tsvector('cats'), ADD x text DEFAULT xmlelement(name e, '\x00ff'::bytea)::text,
  ADD l text[] DEFAULT '{NULL,a}', ADD d date DEFAULT '01/02/2020', ADD s timestamptz DEFAULT '2020-01-01 00:00', ADD i interval DEFAULT '-1 2:03:04', ADD m money DEFAULT '1.50'));
is_the_same('settings of the session', 't4');

# --- the administrator's statements, and functions with bodies that are not checked
$pair->a(q(SET standard_conforming_strings = off; SET escape_string_warning = off; SET check_function_bodies = off;
SELECT onerepl_execute_ddl($x$ALTER TABLE t5 ADD p text DEFAULT 'a\tb'; CREATE FUNCTION mine.later() RETURNS int LANGUAGE sql AS 'SELECT id FROM mine.not_yet -- it\'s'$x$)));
is_the_same('onerepl_execute_ddl', 't5');
is($pair->b("SELECT prosrc FROM pg_proc WHERE proname = 'later'"), q(SELECT id FROM mine.not_yet -- it's), 'with a body that is not checked');

# --- a statement of a function keeps what it was when it was read
$pair->a(q(CREATE FUNCTION mine.adds(relation text) RETURNS void LANGUAGE plpgsql AS $f$BEGIN ALTER TABLE t6 ADD p text DEFAULT 'x\ty'; END$f$;
BEGIN; SELECT mine.adds('t6'); ROLLBACK; SET standard_conforming_strings = off; SELECT mine.adds('t6')));
is_the_same('a statement that was read before', 't6');

# --- a default that gives another value there
$pair->a('ALTER TABLE t7 ADD made timestamptz NOT NULL DEFAULT now(); TRUNCATE t8; ALTER TABLE t8 ADD made timestamptz DEFAULT now(); ALTER TABLE t9 ADD made timestamptz, ALTER made SET DEFAULT now(), ADD n int DEFAULT 5');
$pair->a('SELECT onerepl.self_check()');
is($pair->a("SELECT string_agg(relation || ' ' || kind, ', ') FROM onerepl.problems WHERE relation IN ('public.t7', 'public.t8', 'public.t9')"), 'public.t7 rewritten',
	'now() as the default of a new column is told: it is another time on B');
$pair->a("SELECT onerepl_wait('hq', '30 s'); SELECT onerepl_refresh('hq', 't7', 'repair'); SELECT onerepl_add_table('t7'); SELECT onerepl.self_check()");
is_the_same('now(), repaired', 't7', 't8', 't9');

is(OneReplTest::journal_count($pair->node_a, level => 'critical', like => 'sequence|link|failed') . OneReplTest::journal_count($pair->node_b, level => 'critical') . $pair->b('SELECT count(*) FROM onerepl.failed'), '000', 'nothing failed');
$pair->verify_equal(map { "t$_" } 1 .. 9);
$pair->finish;
done_testing();
