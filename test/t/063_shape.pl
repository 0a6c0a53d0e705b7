# Whatever changes the shape of a tracked table has its place in the sequence, whichever command did it and however deep in a cascade;
# what an extension's script does is the extension's (P21).
use strict;
use warnings;
use OneReplTest;
use PostgreSQL::Test::Utils;
use Test::More;

# name => [ tables, set up on both sides, a row, what A does, a row behind it ]
my @cases = (
	[ 'ALTER TYPE ... ATTRIBUTE of a typed table', 'CREATE TYPE ty AS (id int, v text, gone int); CREATE TABLE t OF ty (PRIMARY KEY (id)); CREATE TABLE t_2 OF ty (PRIMARY KEY (id))',
		"INSERT INTO t VALUES (1, 'a', 1); INSERT INTO t_2 VALUES (1, 'b', 2)",
		'ALTER TYPE ty DROP ATTRIBUTE gone CASCADE; ALTER TYPE ty ADD ATTRIBUTE n int CASCADE; ALTER TYPE ty RENAME ATTRIBUTE v TO w CASCADE; ALTER TYPE ty ALTER ATTRIBUTE n TYPE bigint CASCADE',
		"UPDATE t SET w = 'new', n = 5000000000; INSERT INTO t_2 VALUES (2, 'x', 7)" ],
	[ 'DROP DOMAIN CASCADE', 'CREATE DOMAIN d AS int; CREATE TABLE t (id int PRIMARY KEY, gone d, v text)',
		"INSERT INTO t VALUES (1, 2, 'a')", 'DROP DOMAIN d CASCADE', "INSERT INTO t VALUES (2, 'b')" ],
	[ 'DROP TYPE CASCADE, of the key and a default', "CREATE TYPE e AS ENUM ('x', 'y'); CREATE TABLE t (k e PRIMARY KEY, id int, v text DEFAULT 'x'::e::text)",
		"INSERT INTO t VALUES ('x', 1, 'a')", 'DROP TYPE e CASCADE', "INSERT INTO t VALUES (2, 'b'); UPDATE t SET v = 'c'" ],
	[ 'DROP EXTENSION CASCADE', 'CREATE EXTENSION citext; CREATE TABLE t (id int PRIMARY KEY, gone citext, v text)',
		"INSERT INTO t VALUES (1, 'G', 'a')", 'DROP EXTENSION citext CASCADE', "INSERT INTO t VALUES (2, 'b')" ],
	[ 'DROP FUNCTION CASCADE', q{CREATE FUNCTION f(int) RETURNS int IMMUTABLE LANGUAGE sql AS 'SELECT $1 + 1'; CREATE FUNCTION g() RETURNS int LANGUAGE sql AS 'SELECT 5';
		CREATE TABLE t (id int PRIMARY KEY, "ge nerated" int GENERATED ALWAYS AS (f(id)) STORED, v int DEFAULT g(), CONSTRAINT "che ck" CHECK (f(id) > 0))},
		'INSERT INTO t VALUES (1)', 'DROP FUNCTION f CASCADE; DROP FUNCTION g CASCADE', 'INSERT INTO t VALUES (2, 3)' ],
	[ 'DROP OWNED', 'CREATE ROLE owner_of_d_%; CREATE DOMAIN d AS int; ALTER DOMAIN d OWNER TO owner_of_d_%; CREATE TABLE t (id int PRIMARY KEY, v text, gone d)',
		"INSERT INTO t VALUES (1, 'a', 3)", 'DROP OWNED BY owner_of_d_% CASCADE', "INSERT INTO t VALUES (2, 'b')" ],
	[ 'DROP SCHEMA CASCADE', 'CREATE SCHEMA types_%; CREATE DOMAIN types_%.d AS int; CREATE TABLE t (id int PRIMARY KEY, v text, gone types_%.d)',
		"INSERT INTO t VALUES (1, 'a', 3)", 'DROP SCHEMA types_% CASCADE', "INSERT INTO t VALUES (2, 'b')" ],
	[ 'RENAME CONSTRAINT', 'CREATE TABLE t (id int PRIMARY KEY, v int CONSTRAINT c CHECK (v > 0), w int CONSTRAINT u UNIQUE)',
		'INSERT INTO t VALUES (1, 2, 3)', 'ALTER TABLE t RENAME CONSTRAINT c TO d; ALTER TABLE t DROP CONSTRAINT d; ALTER INDEX u RENAME TO "u 2"; ALTER TABLE t DROP CONSTRAINT "u 2"', 'INSERT INTO t VALUES (2, -2, 3)' ],
	[ 'ALTER TABLE of what it inherits from', 'CREATE TABLE parent (id int, gone int); CREATE TABLE t (v text, PRIMARY KEY (id)) INHERITS (parent)',
		"INSERT INTO t VALUES (1, 2, 'a')", 'ALTER TABLE parent ADD extra int DEFAULT 7; ALTER TABLE parent DROP gone; ALTER TABLE parent RENAME extra TO more', "INSERT INTO t VALUES (2, 'b', 8)" ],
	[ 'rules of what it inherits from', 'CREATE TABLE parent (id int, v int CONSTRAINT old CHECK (v > 0), w int NOT NULL DEFAULT 1); CREATE TABLE t (PRIMARY KEY (id)) INHERITS (parent)',
		'INSERT INTO t VALUES (1, 2, 3)', 'ALTER TABLE parent DROP CONSTRAINT old; ALTER TABLE parent ALTER w DROP NOT NULL; ALTER TABLE parent ALTER w DROP DEFAULT; ALTER TABLE parent ALTER v SET DEFAULT 7',
		'ALTER TABLE parent ADD CONSTRAINT new CHECK (v < 100); INSERT INTO t VALUES (2, -2, NULL); INSERT INTO t (id) VALUES (3)' ],
	[ 'DROP TYPE CASCADE with inheritance', "CREATE DOMAIN d AS int; CREATE TABLE t (id int PRIMARY KEY, gone d); CREATE TABLE t_2 (v text, PRIMARY KEY (id)) INHERITS (t)",
		"INSERT INTO t VALUES (1, 2); INSERT INTO t_2 VALUES (2, 3, 'b')", 'DROP DOMAIN d CASCADE', "INSERT INTO t_2 VALUES (3, 'c'); INSERT INTO t VALUES (4)" ],
	[ 'a foreign key that goes with its table', 'CREATE TABLE ref (id int PRIMARY KEY); CREATE TABLE t (id int PRIMARY KEY, r int REFERENCES ref)',
		'INSERT INTO ref VALUES (1); INSERT INTO t VALUES (1, 1)', 'DROP TABLE ref CASCADE', 'INSERT INTO t VALUES (2, 2)' ],
	[ 'ALTER TABLE of a partitioned table', 'CREATE DOMAIN d AS int; CREATE TABLE t (id int PRIMARY KEY, gone d, v text) PARTITION BY RANGE (id); CREATE TABLE part PARTITION OF t FOR VALUES FROM (0) TO (100)',
		"INSERT INTO t VALUES (1, 2, 'a')", 'DROP DOMAIN d CASCADE; ALTER TABLE t ADD n int', "INSERT INTO t VALUES (2, 'b', 3)" ],
);
push @cases,
	[ 'INHERIT', 'CREATE TABLE parent (id int, v int); CREATE TABLE t (id int PRIMARY KEY, v int)',
		'INSERT INTO t VALUES (1, 2)', 'ALTER TABLE t INHERIT parent; ALTER TABLE parent ADD extra int DEFAULT 7; ALTER TABLE parent RENAME v TO w', 'INSERT INTO t VALUES (2, 3, 8)' ],
	[ 'NO INHERIT', 'CREATE TABLE parent (id int, v int, w int CONSTRAINT c CHECK (w > 0)); CREATE TABLE t (PRIMARY KEY (id)) INHERITS (parent); CREATE TABLE t_2 (PRIMARY KEY (id)) INHERITS (parent)',
		'INSERT INTO t VALUES (1, 2, 3); INSERT INTO t_2 VALUES (1, 2, 3)',
		'ALTER TABLE parent RENAME CONSTRAINT c TO d; ALTER TABLE t NO INHERIT parent; ALTER TABLE t DROP CONSTRAINT d; ALTER TABLE parent DROP v', 'INSERT INTO t VALUES (2, 5, -1); INSERT INTO t_2 VALUES (2, 4)' ],
	[ 'NOT OF a type', 'CREATE TYPE ty AS (id int, v int); CREATE TABLE t OF ty (PRIMARY KEY (id)); CREATE TABLE t_2 OF ty (PRIMARY KEY (id))',
		'INSERT INTO t VALUES (1, 2); INSERT INTO t_2 VALUES (1, 2)', 'ALTER TABLE t NOT OF; ALTER TYPE ty DROP ATTRIBUTE v CASCADE', 'INSERT INTO t VALUES (2, 3); INSERT INTO t_2 VALUES (2)' ],
	[ 'OF a type', 'CREATE TYPE ty AS (id int, v int); CREATE TABLE t (id int PRIMARY KEY, v int)',
		'INSERT INTO t VALUES (1, 2)', 'ALTER TABLE t OF ty; ALTER TYPE ty ADD ATTRIBUTE w int CASCADE', 'INSERT INTO t VALUES (2, 3, 4)' ],
	[ 'the same statement again and again', 'CREATE TABLE t (id int PRIMARY KEY, v int)',
		'INSERT INTO t VALUES (1, 2)', 'DO $do$ BEGIN FOR i IN 1 .. 3 LOOP ALTER TABLE t ADD w int DEFAULT 5; ALTER TABLE t RENAME v TO x; ALTER TABLE t RENAME w TO v; ALTER TABLE t DROP x; END LOOP; END $do$', 'INSERT INTO t VALUES (2, 3)' ];
if (`$ENV{PG_BINDIR}/postgres --version` =~ / (\d+)/ && $1 >= 17)
{
	push @cases, [ 'SET EXPRESSION', 'CREATE TABLE t (id int PRIMARY KEY, v int, g int GENERATED ALWAYS AS (v * 2) STORED)', 'INSERT INTO t VALUES (1, 1)',
		'ALTER TABLE t ALTER g SET EXPRESSION AS (v * 100)', 'INSERT INTO t VALUES (2, 2)' ];
}

sub of_case { my ($i, $sql) = @_; $sql =~ s/%/$i/g; return "SET search_path = s$i, public; $sql"; }
my $pair = OneReplTest->new(schema => join '; ', 'CREATE SCHEMA mine', map { "CREATE SCHEMA s$_; " . of_case($_, $cases[$_][1]) . '; RESET search_path' } 0 .. $#cases);
OneReplTest::apply_statements($pair->node_b);
my @tables = map { my $i = $_; $cases[$i][1] =~ /t_2/ ? ("s$i.t", "s$i.t_2") : ("s$i.t") } 0 .. $#cases;
$pair->track(@tables);

# Columns, defaults and constraints.
sub shape
{
	my ($node, $table) = @_;
	return $node->safe_psql('postgres', <<"SQL");
SELECT (SELECT string_agg(concat_ws(' ', attname, format_type(atttypid, atttypmod), pg_get_expr(adbin, adrelid), attnotnull), ', ' ORDER BY attname)
          FROM pg_attribute LEFT JOIN pg_attrdef ON adrelid = attrelid AND adnum = attnum WHERE attrelid = '$table'::regclass AND attnum > 0 AND NOT attisdropped)
    || '; ' || coalesce((SELECT string_agg(conname || ' ' || pg_get_constraintdef(oid), ', ' ORDER BY conname) FROM pg_constraint WHERE conrelid = '$table'::regclass), '')
SQL
}

# --- with all in one queue, in transactions with rows before and behind
$pair->a("SELECT onerepl_pause('hq')");
for my $i (0 .. $#cases)
{
	my (undef, undef, $before, $change, $behind) = @{ $cases[$i] };
	$pair->a(of_case($i, "$before; BEGIN; $change; $behind; COMMIT"));
}
$pair->a("SELECT onerepl_resume('hq'); SELECT onerepl_wait('hq', '30 s')");
is($pair->b('SELECT string_agg(relation || message, $$;$$) FROM onerepl.failed'), '', 'nothing failed') or $pair->show_state;
for my $i (0 .. $#cases)
{
	for my $table (grep { /^s$i\./ } @tables)
	{
		is(shape($pair->node_b, $table), shape($pair->node_a, $table), "$cases[$i][0]: $table has the same shape");
		$pair->wait_identical($table, { name => "$cases[$i][0]: and the same rows", deadline => 5 });
	}
}
$pair->verify_equal(@tables);

# --- where nothing is executed it is told
$pair->b("SELECT onerepl_set_ddl('branch', 'stop')");
$pair->a(of_case(1, "CREATE DOMAIN d2 AS int; ALTER TABLE t ADD told d2"));
$pair->b(of_case(1, 'ALTER TABLE t ADD told int'));
$pair->a(of_case(1, "DROP DOMAIN d2 CASCADE; INSERT INTO t VALUES (3, 'c')"));
$pair->a("SELECT onerepl_wait('hq', '30 s')");
is(OneReplTest::journal_count($pair->node_b, like => 'the remote changed its table s1.t: ALTER TABLE s1.t DROP COLUMN IF EXISTS told'), '1', 'a cascade is told where it is not executed');
$pair->b(of_case(1, 'ALTER TABLE t DROP told'));

# --- event triggers of others, whose names sort early
OneReplTest::apply_statements($pair->node_b);
$pair->a(<<'SQL');
SELECT onerepl_add_schema('mine', new_tables => true);
CREATE FUNCTION mine.adds() RETURNS event_trigger LANGUAGE plpgsql AS $$
DECLARE made record;
BEGIN
    FOR made IN SELECT * FROM pg_event_trigger_ddl_commands() WHERE command_tag = 'CREATE TABLE' AND object_identity LIKE 'mine.nested%' LOOP
        EXECUTE format('ALTER TABLE %s ADD added_by_trigger text DEFAULT $x$x$x$', made.object_identity);
    END LOOP;
END $$;
CREATE FUNCTION mine.adds_again() RETURNS event_trigger LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (SELECT FROM pg_event_trigger_dropped_objects() WHERE object_identity = 'mine.nested.again') THEN
        ALTER TABLE mine.nested ADD again text;
    END IF;
END $$;
CREATE EVENT TRIGGER a_first ON ddl_command_end WHEN TAG IN ('CREATE TABLE') EXECUTE FUNCTION mine.adds();
CREATE EVENT TRIGGER a_drop ON sql_drop WHEN TAG IN ('ALTER TABLE') EXECUTE FUNCTION mine.adds_again();
CREATE TABLE mine.nested (id int PRIMARY KEY, again int);
INSERT INTO mine.nested VALUES (1, 2, 'a');
ALTER TABLE mine.nested DROP again;
INSERT INTO mine.nested VALUES (2, 'b', 'c');
SQL
$pair->a("SELECT onerepl_wait('hq', '30 s')");
is($pair->b("SELECT coalesce(to_regclass('mine.nested')::text, 'missing')"), 'mine.nested', 'a table that an event trigger alters is made') or $pair->show_state;
is(shape($pair->node_b, 'mine.nested'), shape($pair->node_a, 'mine.nested'), 'with what the trigger did, in its order');
$pair->wait_identical('mine.nested', { deadline => 5 });
$pair->a("SELECT onerepl_execute_ddl('CREATE TABLE mine.nested_given (id int PRIMARY KEY)'); INSERT INTO mine.nested_given VALUES (1, 'a')");
$pair->a("SELECT onerepl_wait('hq', '30 s')");
is(shape($pair->node_b, 'mine.nested_given'), shape($pair->node_a, 'mine.nested_given'), 'what the trigger did about a statement that was given to both sides, too');
$pair->wait_identical('mine.nested_given', { deadline => 5 });
$pair->a('DROP EVENT TRIGGER a_first; DROP EVENT TRIGGER a_drop');

# --- an extension's script. What it does is done by an event trigger here, amid the script of an extension that is there.
$pair->a('CREATE TABLE mine.settings (id int PRIMARY KEY); CREATE TABLE mine.ours (id int PRIMARY KEY)');
$pair->a(<<'SQL');
CREATE FUNCTION mine.script() RETURNS event_trigger LANGUAGE plpgsql AS $$
BEGIN
    IF to_regclass('mine.of_extension') IS NULL AND EXISTS (SELECT FROM pg_event_trigger_ddl_commands() WHERE in_extension) THEN
        CREATE TABLE mine.of_extension (id int PRIMARY KEY, v public.seg);
        INSERT INTO mine.of_extension VALUES (1, '1 .. 2');
        ALTER TABLE mine.of_extension ADD w int;
    END IF;
END $$;
CREATE EVENT TRIGGER script ON ddl_command_end WHEN TAG IN ('CREATE OPERATOR') EXECUTE FUNCTION mine.script();
SQL
$pair->a("CREATE EXTENSION seg SCHEMA public; INSERT INTO mine.ours VALUES (1)");
is($pair->a("SELECT deptype FROM pg_depend WHERE objid = 'mine.of_extension'::regclass AND refclassid = 'pg_extension'::regclass"), 'e', 'the table is the extension\'s');
$pair->a("DROP EVENT TRIGGER script; SELECT onerepl_wait('hq', '30 s')");
is($pair->a("SELECT count(*) FROM onerepl.tracked WHERE relation = 'mine.of_extension'::regclass"), '0', 'a table of an extension is not tracked');
is($pair->b('SELECT count(*) FROM mine.ours'), '1', 'what comes behind the extension arrives') or $pair->show_state;
is(OneReplTest::journal_count($pair->node_a, level => 'warning', like => 'CREATE EXTENSION seg: what its script did does not travel; its tables are not tracked'), '1', 'the journal says what does not travel');
$pair->a("SELECT onerepl_add_schema('mine', new_tables => true)");
is($pair->a("SELECT count(*) FROM onerepl.tracked WHERE relation = 'mine.of_extension'::regclass"), '0', 'nor with its schema');
$pair->b('CREATE EXTENSION seg SCHEMA public; CREATE TABLE mine.of_extension (id int PRIMARY KEY, v seg, w int)');
$pair->a("SELECT onerepl_add_table('mine.of_extension', initial => 'refresh'); UPDATE mine.of_extension SET w = 5");
$pair->wait_identical('mine.of_extension', { name => 'but by its name' });
# What is made an extension's at B is out of the link's reach from then on (P18), and in it again when it is not any more.
$pair->a('INSERT INTO mine.ours VALUES (3)');
$pair->wait_identical('mine.ours');
$pair->b('ALTER EXTENSION seg ADD TABLE mine.ours');
$pair->a('INSERT INTO mine.ours VALUES (2)');
OneReplTest::poll_ok($pair->node_b, "SELECT string_agg(sqlstate, ',') FROM onerepl.failed", 'a table that has become an extension\'s', wanted => '42501');
$pair->b("ALTER EXTENSION seg DROP TABLE mine.ours; SELECT onerepl_resolve_all('branch', 'retry')");
$pair->wait_identical('mine.ours', { name => 'and is not any more' });
$pair->verify_equal(@tables, qw(mine.nested mine.nested_given mine.ours mine.of_extension));
is($pair->b('SELECT count(*) FROM onerepl.failed'), '0', 'nothing is in F');
$pair->finish;
done_testing();
