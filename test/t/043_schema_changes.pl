# Schema changes on A, with unsent records in the log from before them: they decode right, and B is told in the right place;
# it stops until its table fits, or executes what A executed.
use strict;
use warnings;
use OneReplTest;
use PostgreSQL::Test::Utils;
use Test::More;

my @cases = (
	# name, what is done on A
	[ 'add a column', 'ALTER TABLE t ADD note text' ],
	[ 'add a column with a default', "ALTER TABLE t ADD kind text NOT NULL DEFAULT 'plain', ADD n2 int" ],
	[ 'drop a column', 'ALTER TABLE t DROP gone' ],
	[ 'rename a column', 'ALTER TABLE t RENAME a TO "A new"' ],
	[ 'retype a column', 'ALTER TABLE t ALTER b TYPE bigint, ALTER c TYPE varchar(200)' ],
	[ 'retype with an expression', 'ALTER TABLE t ALTER d TYPE text USING (d * 2)::text' ],
	[ 'a default', "ALTER TABLE t ALTER c SET DEFAULT 'from the default'" ],
	[ 'change the key', 'ALTER TABLE t DROP CONSTRAINT t_pkey, ADD PRIMARY KEY (b, id)' ],
	[ 'rename the table', 'ALTER TABLE t RENAME TO u' ],
	[ 'move the table', 'ALTER TABLE t SET SCHEMA other' ],
	[ 'rename it twice, and add a column', 'ALTER TABLE t RENAME TO u; ALTER TABLE u ADD x int; ALTER TABLE u RENAME TO v' ],
	[ 'VACUUM FULL', 'VACUUM FULL t' ],
	[ 'CLUSTER', 'CLUSTER t USING t_pkey' ],
	[ 'a new enum value', "ALTER TYPE mood ADD VALUE 'sad'; ALTER TABLE t ALTER m SET DEFAULT 'ok'", "ALTER TYPE mood ADD VALUE 'sad'" ],
);

my $pair = OneReplTest->new(schema => join "\n", 'CREATE SCHEMA other;', map { table_sql($_) } 0 .. $#cases);
OneReplTest::apply_statements($pair->node_b);

sub table_sql
{
	my $i = shift;
	return <<"SQL";
CREATE SCHEMA s$i; SET search_path = s$i;
CREATE TYPE mood AS ENUM ('ok', 'bad');
CREATE TABLE t (id int PRIMARY KEY, a text, b int NOT NULL, c varchar(20), d int, gone text, m mood, big text);
RESET search_path;
SQL
}

# The columns that the table has before and after.
sub content
{
	my ($node, $i) = @_;
	return $node->safe_psql('postgres', <<"SQL");
SELECT string_agg(table_schema || '.' || table_name || ':' || x, ',') FROM information_schema.tables,
    LATERAL (SELECT regexp_replace(query_to_xml(format('SELECT * FROM %I.%I ORDER BY id', table_schema, table_name), true, false, '')::text,
        '\\s+', ' ', 'g') AS x) AS q
 WHERE table_schema = 's$i' OR (table_schema = 'other' AND $i = 9)
SQL
}

# --- records from before each change are in the log and cannot be sent yet
$pair->track("s$_.t") for 0 .. $#cases;
$pair->a("SELECT onerepl_pause('hq')");
for my $i (0 .. $#cases)
{
	my (undef, $change, $alone) = @{ $cases[$i] };
	my $fill = "INSERT INTO t SELECT n, 'a' || n, n, 'c' || n, n, 'g' || n, 'bad', repeat(md5(n::text), 200) FROM generate_series(%d, %d) AS n;";
	$pair->a("SET search_path = s$i; " . sprintf($fill, 1, 50) . ' UPDATE t SET a = upper(a) WHERE id < 20; DELETE FROM t WHERE id = 7');
	$pair->a("SET search_path = s$i; UPDATE t SET d = d + 1 WHERE id = 8; UPDATE t SET id = 1000 + id WHERE id = 9");
	$pair->b("SET search_path = s$i; $alone") if $alone;
	# In the transaction of changes before it and after it, where it may be.
	my $inside = $change =~ /^ALTER TABLE/ ? 'BEGIN; UPDATE t SET c = id::text WHERE id = 10;' : '';
	my $name = $i == 8 ? 'u' : $i == 9 ? 'other.t' : $i == 10 ? 'v' : 't';
	my $after = "UPDATE $name SET c = 'after', big = big WHERE id BETWEEN 11 AND 14; DELETE FROM $name WHERE id = 15;"
	  . "INSERT INTO $name (id, b, big) VALUES (2001, 2, 'new'), (2002, 3, repeat('x', 10000)); UPDATE $name SET id = id + 5000 WHERE id = 16;";
	$pair->a("SET search_path = s$i;\n$_;") for $inside ? "$inside $change; $after COMMIT" : (split(/; /, $change), $after);
}
$pair->a("SELECT onerepl_resume('hq'); SELECT onerepl_wait('hq', '30 s')");
for my $i (0 .. $#cases)
{
	my $there = content($pair->node_a, $i);
	like($there, qr/2002/, "$cases[$i][0]: the rows are there");
	is(content($pair->node_b, $i), $there, "$cases[$i][0]: the records of before and after are right");
}
is($pair->b('SELECT count(*) FROM onerepl.failed'), '0', 'nothing failed');
is(OneReplTest::journal_count($pair->node_b, level => 'critical'), '0', 'nothing critical on B');
is($pair->b("SELECT string_agg(conrelid::regclass || ' ' || pg_get_constraintdef(oid), ';') FROM pg_constraint WHERE conrelid = 's7.t'::regclass AND contype = 'p'"),
	's7.t PRIMARY KEY (b, id)', 'the key changed on B too');

# --- guarded under its new name, too
my ($state) = OneReplTest::fails($pair->node_b, 'DELETE FROM other.t');
is($state, '25006', 'a table that was moved is still read-only');

# --- the administrator's own statements, in their place
$pair->a(<<'SQL');
CREATE SCHEMA mine; SET search_path = s0, public;
BEGIN; UPDATE t SET a = 'before' WHERE id = 1;
SELECT onerepl_execute_ddl($$CREATE INDEX t_a ON t (a); COMMENT ON TABLE t IS 'as on A'; ALTER TABLE t RENAME TO renamed; ALTER TABLE renamed ADD more int$$);
UPDATE renamed SET more = 5 WHERE id = 1; COMMIT;
ALTER TABLE renamed ADD still int; UPDATE renamed SET still = 6 WHERE id = 1;
SQL
$pair->a("SELECT onerepl_wait('hq', '30 s')");
is($pair->b("SELECT a || more || still || obj_description('s0.renamed'::regclass) || to_regclass('s0.t_a') FROM s0.renamed WHERE id = 1"),
	'before56as on As0.t_a', 'onerepl_execute_ddl, and ALTER TABLE behind it');
for my $bad ('UPDATE s1.t SET a = 1', 'DO $x$BEGIN END$x$', 'COMMIT', 'TRUNCATE s1.t', '')
{
	($state) = OneReplTest::fails($pair->node_a, "SELECT onerepl_execute_ddl(\$y\$$bad\$y\$)");
	is($state, '22023', "not taken: '$bad'");
}
($state) = OneReplTest::fails($pair->node_a, 'SELECT onerepl_execute_ddl($$CREATE TABLE s1.t (x int)$$)');
is($state, '42P07', 'what fails here fails, and goes nowhere');

# --- what only concerns A is not told
my $before = $pair->a('SELECT max(n) FROM onerepl.log');
$pair->a('ALTER TABLE s1.t SET (fillfactor = 50); ALTER TABLE s1.t ALTER c SET STATISTICS 5; ALTER TABLE s1.t CLUSTER ON t_pkey; CREATE TABLE untracked (x int); ALTER TABLE untracked ADD y int');
$pair->a("SELECT onerepl_wait('hq', '30 s')");
is($pair->a('SELECT max(n) FROM onerepl.log'), $before, 'storage, statistics and other tables make no record');

# --- new tables of a schema
$pair->a("CREATE TABLE mine.unwanted (id int); SELECT onerepl_add_schema('mine', true); SELECT onerepl_remove_table('mine.unwanted')");
$pair->b('CREATE SCHEMA mine; CREATE TABLE mine.made (id int, md5 text)');
OneReplTest::apply_statements($pair->node_b);
$pair->a(<<'SQL');
ALTER TABLE mine.unwanted ADD x int;
BEGIN; CREATE TABLE mine.new (id serial PRIMARY KEY, v text, w text UNIQUE); INSERT INTO mine.new (v) VALUES ('at once'); COMMIT;
CREATE TABLE mine.parts (id int PRIMARY KEY) PARTITION BY RANGE (id); CREATE TABLE mine.part PARTITION OF mine.parts FOR VALUES FROM (1) TO (10);
INSERT INTO mine.parts VALUES (1), (2);
CREATE TABLE mine.made AS SELECT n AS id, md5(n::text) FROM generate_series(1, 100) AS n; ALTER TABLE mine.made ADD PRIMARY KEY (id);
CREATE UNLOGGED TABLE mine.short_lived (id int);
INSERT INTO mine.made VALUES (101, 'x');
SQL
is($pair->a("SELECT string_agg(relation::text, ' ' ORDER BY relation::text) FROM onerepl.tracked WHERE relation::text ~ 'mine'"),
	'mine.made mine.new mine.parts', 'new tables of the schema are tracked');
$pair->poll_b("SELECT coalesce(to_regclass('mine.new')::text, '-') || coalesce(to_regclass('mine.part')::text, '-')", 'and made on B', wanted => 'mine.newmine.part');
$pair->wait_identical('mine.new', 'mine.parts', 'mine.made', { name => 'with their rows, those of a query copied' });
is(OneReplTest::journal_count($pair->node_a, like => 'new table mine.short_lived is not tracked: it is an unlogged'), '1', 'one that cannot be tracked is told');

# --- DROP TABLE is told
$pair->a("INSERT INTO mine.new (v) VALUES ('last words'); DROP TABLE mine.new");
$pair->a("SELECT onerepl_wait('hq', '30 s')");
is($pair->b("SELECT count(*) FROM mine.new WHERE v = 'last words'"), '1', 'what was captured before DROP TABLE arrives');
is(OneReplTest::journal_count($pair->node_a, like => 'tracked table mine.new was dropped'), '1', 'A tells of the drop');
is(OneReplTest::journal_count($pair->node_b, like => 'the remote dropped its table mine.new'), '1', 'and B');

# --- a link that executes nothing stops, and says why
$pair->b("SELECT onerepl_set_ddl('branch', 'stop')");
$pair->a('SET search_path = s1; ALTER TABLE t ADD fresh int; UPDATE t SET fresh = 1 WHERE id = 1');
$pair->poll_b("SELECT string_agg(sqlstate || ' ' || message, ';') FROM onerepl.failed", 'a column that B lacks stops the link',
	wanted => '42703 column "fresh" of relation "t" does not exist');
is(OneReplTest::journal_count($pair->node_b, like => 'the remote changed its table s1.t: ALTER TABLE t ADD fresh int'), '1', 'the journal says what A did');
$pair->b("ALTER TABLE s1.t ADD fresh int");
$pair->b("SELECT onerepl_resolve('branch', n, 'retry') FROM onerepl.failed");
$pair->poll_b('SELECT fresh FROM s1.t WHERE id = 1', 'B goes on when its table fits', wanted => '1');
$pair->a('SET search_path = s1, public; SELECT onerepl_execute_ddl($$CREATE INDEX t_fresh ON t (fresh)$$); UPDATE t SET fresh = 2 WHERE id = 1');
$pair->poll_b("SELECT string_agg(operation || ' ' || sqlstate, ';') FROM onerepl.failed", 'a statement that a link does not execute is F', wanted => 'statement 55000');
$pair->b("SELECT onerepl_resolve('branch', n, 'skip') FROM onerepl.failed");
$pair->poll_b('SELECT fresh FROM s1.t WHERE id = 1', 'it can be skipped', wanted => '2');
($state) = OneReplTest::fails($pair->node_b, "SELECT onerepl_set_ddl('branch', 'sometimes')");
is($state, '22023', 'an unknown choice is refused');

# --- a statement that fails on B
OneReplTest::apply_statements($pair->node_b);
$pair->b("CREATE INDEX only_here ON s2.t (a)");
$pair->a('SET search_path = s2, public; SELECT onerepl_execute_ddl($$CREATE INDEX only_here ON t (b)$$); UPDATE t SET c = $$x$$ WHERE id = 1');
$pair->poll_b("SELECT string_agg(sqlstate || ' ' || row, ';') FROM onerepl.failed", 'a statement that fails on B is F', wanted => '42P07 CREATE INDEX only_here ON t (b)');
$pair->b("DROP INDEX s2.only_here; SELECT onerepl_resolve('branch', n, 'retry') FROM onerepl.failed");
$pair->poll_b('SELECT c FROM s2.t WHERE id = 1', 'and is executed when the way is free', wanted => 'x');

# --- with the rights of the owner of B's table
$pair->b("CREATE ROLE alice; GRANT ALL ON SCHEMA s3 TO alice; ALTER TABLE s3.t OWNER TO alice; CREATE TABLE s3.ref (id int PRIMARY KEY)");
$pair->a('SET search_path = s3; CREATE TABLE ref (id int PRIMARY KEY); ALTER TABLE t ADD ref int REFERENCES ref');
$pair->poll_b("SELECT string_agg(sqlstate || ' ' || relation, ';') FROM onerepl.failed", 'a captured statement has the rights of the table\'s owner', wanted => '42501 s3.t');
$pair->b("GRANT REFERENCES, SELECT ON s3.ref TO alice; SELECT onerepl_resolve('branch', n, 'retry') FROM onerepl.failed");
$pair->poll_b("SELECT count(*) FROM pg_constraint WHERE conrelid = 's3.t'::regclass AND contype = 'f'", 'and goes through when they are enough', wanted => '1');

# --- two tables change their names
$pair->b("SELECT onerepl_set_ddl('branch', 'stop')");
$pair->a('CREATE TABLE one (id int PRIMARY KEY, v text); CREATE TABLE two (id int PRIMARY KEY, v text)');
$pair->b('CREATE TABLE one (id int PRIMARY KEY, v text); CREATE TABLE two (id int PRIMARY KEY, v text)');
$pair->track('one', 'two');
$pair->a("INSERT INTO one VALUES (1, 'one'); INSERT INTO two VALUES (1, 'two')");
my @swap = ('ALTER TABLE one RENAME TO three', 'ALTER TABLE two RENAME TO one', 'ALTER TABLE three RENAME TO two');
my $swap = join '; ', 'BEGIN', @swap, 'COMMIT';
$pair->a("$swap; UPDATE one SET v = v || ' is one'; UPDATE two SET v = v || ' is two'");
$pair->poll_b("SELECT string_agg(operation || ' ' || sqlstate || ' ' || detail, ';' ORDER BY n) FROM onerepl.failed", 'told only: rows of one are not written to the other',
	wanted => "statement 42P01 $swap[0];statement 42P07 $swap[1]") or $pair->show_state;
is($pair->b('SELECT message FROM onerepl.failed ORDER BY n LIMIT 1'), 'the remote renamed its table public.one to public.three, which is not here', 'and it is said why');
like($pair->b('SELECT hint FROM onerepl.failed ORDER BY n LIMIT 1'), qr/^Rename the tables here.*skip/, 'and what to do');
$pair->b("$swap; SELECT onerepl_resolve_all('branch', 'skip')");
$pair->wait_identical('one', 'two', { name => 'renamed on B too, it goes on' });
OneReplTest::apply_statements($pair->node_b);
$pair->a("INSERT INTO one VALUES (2, 'before'); $swap; INSERT INTO one VALUES (3, 'behind'); UPDATE two SET v = v || ' is two again'");
$pair->wait_identical('one', 'two', { name => 'and where statements are executed, by itself' });
is($pair->b("SELECT string_agg(v, ';' ORDER BY id) FROM two"), 'two is one is two again;before is two again', 'each with its rows');

# --- partitions are each database's own; those that the administrator gives to both sides come before their rows
my $parts = 'CREATE TABLE parts (id int PRIMARY KEY, v text) PARTITION BY RANGE (id); CREATE TABLE parts_1 PARTITION OF parts FOR VALUES FROM (0) TO (10); CREATE TABLE late (id int PRIMARY KEY, v text)';
$_->safe_psql('postgres', $parts) for $pair->nodes;
OneReplTest::apply_statements($pair->node_b);
$pair->track('parts');
$pair->a(<<'SQL');
INSERT INTO parts VALUES (1, 'one'); INSERT INTO late VALUES (11, 'eleven'), (12, 'twelve');
BEGIN; INSERT INTO parts VALUES (2, 'before'); UPDATE late SET v = upper(v) WHERE id = 12; SELECT onerepl_execute_ddl($$ALTER TABLE parts ATTACH PARTITION late FOR VALUES FROM (10) TO (20)$$);
INSERT INTO parts VALUES (13, 'behind'); DELETE FROM parts WHERE id = 11; COMMIT;
SQL
$pair->wait_identical('parts', { name => 'ATTACH PARTITION' }) or $pair->show_state;
is($pair->b('SELECT count(*) FROM late'), '2', 'executed on B');
$pair->a("BEGIN; UPDATE parts SET v = 'x' WHERE id = 12; SELECT onerepl_execute_ddl('ALTER TABLE parts DETACH PARTITION parts_1'); INSERT INTO parts VALUES (14, 'y'); COMMIT");
$pair->wait_identical('parts', { name => 'DETACH PARTITION' }) or $pair->show_state;

# --- a table that is called otherwise on B: nothing is executed on it, and the record says what to do
$pair->a('CREATE TABLE orders (id int PRIMARY KEY, v text)');
$pair->b("CREATE TABLE all_orders (branch text, id int, v text, PRIMARY KEY (branch, id)); CREATE TABLE orders (id int); SELECT onerepl_set_target('branch', 'public', 'orders', 'public', 'all_orders', 'branch', '17')");
$pair->track('orders');
$pair->a("INSERT INTO orders VALUES (1, 'a'); ALTER TABLE orders ADD extra int DEFAULT 5; UPDATE orders SET extra = 6");
$pair->poll_b("SELECT string_agg(operation || ' ' || sqlstate || ' ' || message, ';') FROM onerepl.failed", 'ALTER TABLE of a table with another name is F',
	wanted => 'statement 0A000 the remote changed its table public.orders, which is public.all_orders here') or $pair->show_state;
like($pair->b('SELECT detail FROM onerepl.failed'), qr/^ALTER TABLE orders ADD extra int/, 'with the statement');
like($pair->b('SELECT hint FROM onerepl.failed'), qr/^Make the same change here.*skip/, 'and what to do');
is($pair->b("SELECT count(*) FROM pg_attribute WHERE attrelid = 'orders'::regclass AND attname = 'extra'"), '0', 'nothing was done to a table that happens to have the name');
$pair->b("ALTER TABLE all_orders ADD extra int DEFAULT 5; SELECT onerepl_resolve_all('branch', 'skip')");
$pair->poll_b('SELECT branch || id || v || extra FROM all_orders', 'it goes on', wanted => '171a6') or $pair->show_state;
$pair->finish;
done_testing();
