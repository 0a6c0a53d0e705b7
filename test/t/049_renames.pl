# Tables, partitioned tables and schemas on A that change their names with each other: no row goes to another table on B unseen.
use strict;
use warnings;
use OneReplTest;
use Test::More;

my $partitioned = join ' ', map { "CREATE TABLE $_ (id int PRIMARY KEY, v text) PARTITION BY RANGE (id); CREATE TABLE ${_}_1 PARTITION OF $_ FOR VALUES FROM (0) TO (100);" } qw(one two);
my $pair = OneReplTest->new(schema => <<"SQL");
$partitioned
CREATE SCHEMA east; CREATE SCHEMA west;
CREATE TABLE east.t (id int PRIMARY KEY, v text); CREATE TABLE west.t (id int PRIMARY KEY, v text);
CREATE TABLE east.unchanged (id int PRIMARY KEY, v text);
SQL
my @tables = qw(one two east.t west.t east.unchanged);
$pair->track(@tables);

sub swap { my ($kind, $x, $y) = @_; return "BEGIN; ALTER $kind $x RENAME TO between; ALTER $kind $y RENAME TO $x; ALTER $kind between RENAME TO $y; COMMIT" }
my $swap_tables = swap('TABLE', 'one', 'two');
my $swap_schemas = swap('SCHEMA', 'east', 'west');

# What B says of the first record that is F, once there is one.
sub failure_is
{
	my ($wanted, $name) = @_;
	$pair->poll_b(q{SELECT string_agg(sqlstate || ' ' || message || '|' || detail, ';' ORDER BY n) FROM onerepl.failed}, $name, wanted => $wanted) or $pair->show_state;
}

# ------------------------------------------------------------------------------------------------ told only

$pair->a("INSERT INTO one VALUES (1, 'of one'); INSERT INTO two VALUES (1, 'of two'); INSERT INTO east.t VALUES (1, 'of east'); INSERT INTO west.t VALUES (1, 'of west')");
$pair->wait_identical(@tables);

$pair->a("$swap_tables; UPDATE one SET v = v || ', now one'; UPDATE two SET v = v || ', now two'");
failure_is('42P01 the remote renamed its table public.one to public."between", which is not here|ALTER TABLE one RENAME TO between;'
	  . '42P07 the remote renamed its table public.two to public.one, whose rows go to another table here|ALTER TABLE two RENAME TO one', 'partitioned tables');
like($pair->b('SELECT DISTINCT hint FROM onerepl.failed'), qr/^Rename the tables here.*skip/, 'with what to do');
$pair->b("$swap_tables; SELECT onerepl_resolve_all('branch', 'skip')");
$pair->wait_identical(@tables, { name => 'renamed on B too' }) or $pair->show_state;
is($pair->b('SELECT one.v || ' . q{'; '} . ' || two.v FROM one, two'), 'of two, now one; of one, now two', 'each with its rows');

$pair->a("$swap_schemas; UPDATE east.t SET v = v || ', now east'; UPDATE west.t SET v = v || ', now west'; INSERT INTO west.unchanged VALUES (1, 'not any more')");
$pair->poll_b(q{SELECT string_agg(DISTINCT sqlstate || ' ' || detail, ';') FROM onerepl.failed}, 'schemas',
	wanted => '42P01 ALTER SCHEMA east RENAME TO between;42P07 ALTER SCHEMA west RENAME TO east') or $pair->show_state;
$pair->b("$swap_schemas; SELECT onerepl_resolve_all('branch', 'skip')");
@tables = qw(one two east.t west.t west.unchanged);
$pair->wait_identical(@tables, { name => 'renamed on B too' }) or $pair->show_state;
is($pair->b('SELECT e.v || ' . q{'; '} . ' || w.v FROM east.t AS e, west.t AS w'), 'of west, now east; of east, now west', 'each with its rows');

# ------------------------------------------------------------------------------------------------ executed

OneReplTest::apply_statements($pair->node_b);
$pair->a("$swap_tables; $swap_schemas; UPDATE one SET v = v || ', one again'; UPDATE east.t SET v = v || ', east again'; UPDATE west.t SET v = 'west'");
@tables = qw(one two east.t west.t east.unchanged);
$pair->wait_identical(@tables, { name => 'tables and schemas are renamed on B' }) or $pair->show_state;
is($pair->b('SELECT one.v || ' . q{'; '} . ' || e.v FROM one, east.t AS e'), 'of one, now two, one again; of east, now west, east again', 'each with its rows');
$pair->a("BEGIN; INSERT INTO east.t VALUES (2, 'before'); ALTER SCHEMA east RENAME TO orient; INSERT INTO orient.t VALUES (3, 'behind'); INSERT INTO orient.unchanged VALUES (2, 'new'); COMMIT");
@tables = qw(one two orient.t west.t orient.unchanged);
$pair->wait_identical(@tables, { name => 'a schema of several tables gets a new name once' }) or $pair->show_state;
is($pair->b(q{SELECT count(*) FROM onerepl.journal WHERE message LIKE 'executed as on the remote: ALTER SCHEMA east RENAME TO orient%'}), '1', 'told once');

# ------------------------------------------------------------------------------------------------ what belongs to a schema

# --- somebody writes to a table of the schema while it gets another name: PostgreSQL would let both go on
my $writer = $pair->node_a->background_psql('postgres');
$writer->query_safe("BEGIN; INSERT INTO west.t VALUES (10, 'by an open transaction')");
my $renamer = $pair->node_a->background_psql('postgres', wait => 0);
$renamer->query_until(qr/begun/, "\\echo begun\nALTER SCHEMA west RENAME TO occident;\n");
$pair->poll_a("SELECT count(*) FROM pg_locks WHERE relation = 'west.t'::regclass AND NOT granted", 'a new name waits for open writers', wanted => '1');
$writer->query_safe("UPDATE west.t SET v = v || ', still' WHERE id = 10; COMMIT");
$writer->quit;
$pair->poll_a("SELECT count(*) FROM pg_namespace WHERE nspname = 'occident'", 'and is given then', wanted => '1');
$renamer->quit;
$pair->a("INSERT INTO occident.t VALUES (11, 'behind')");
$pair->wait_identical(qw(orient.t occident.t), { name => 'their changes come before it' }) or $pair->show_state;

# --- sequences
my $counted = join ' ', map { "CREATE SCHEMA $_; CREATE TABLE $_.counted (id bigserial PRIMARY KEY, v text);" } qw(first second);
$_->safe_psql('postgres', $counted) for $pair->nodes;
OneReplTest::apply_statements($pair->node_b);
$pair->track(qw(first.counted second.counted));
$pair->a("INSERT INTO first.counted (v) SELECT 'x' FROM generate_series(1, 100); INSERT INTO second.counted (v) SELECT 'y' FROM generate_series(1, 7)");
my $stand = q{SELECT (SELECT last_value FROM first.counted_id_seq) || ' ' || (SELECT last_value FROM second.counted_id_seq)};
$pair->poll_b($stand, 'sequences follow', wanted => '100 7');
$pair->a(swap('SCHEMA', 'first', 'second'));
$pair->poll_b($stand, 'into schemas with other names', wanted => '7 100') or $pair->show_state;
$pair->a("ALTER SCHEMA first RENAME TO third; INSERT INTO third.counted (v) VALUES ('z')");
$pair->poll_b('SELECT last_value FROM third.counted_id_seq', 'and into a new one', wanted => '8') or $pair->show_state;

# --- filters: the log holds changes of a table that is gone
$_->safe_psql('postgres', 'CREATE TABLE dropped (id int PRIMARY KEY, secret text)') for $pair->nodes;
$pair->track('dropped');
$pair->a("SELECT onerepl_set_filter('hq', 'dropped', 'id < 10', '{id}'); BEGIN; INSERT INTO dropped VALUES (1, 'a'), (11, 'b'); DROP TABLE dropped; COMMIT");
$pair->poll_b('SELECT string_agg(concat_ws(chr(58), id, secret), chr(59)) FROM dropped', 'a filter outlives its table', wanted => '1') or $pair->show_state;

# --- filters: the log holds changes from before the table got its name
$_->safe_psql('postgres', 'CREATE TABLE chosen (id int PRIMARY KEY, secret text) PARTITION BY RANGE (id); CREATE TABLE chosen_1 PARTITION OF chosen FOR VALUES FROM (0) TO (100)') for $pair->nodes;
OneReplTest::apply_statements($pair->node_b);
$pair->track('chosen');
$pair->a("SELECT onerepl_set_filter('hq', 'chosen', 'id < 10', '{id}')");
$pair->a("INSERT INTO chosen VALUES (1, 'a'), (11, 'b')");
$pair->poll_b('SELECT string_agg(concat_ws(chr(58), id, secret), chr(59)) FROM chosen', 'a filter', wanted => '1');
$pair->a("SELECT onerepl_pause('hq'); INSERT INTO chosen VALUES (2, 'c'), (12, 'd'); ALTER TABLE chosen RENAME TO selected; INSERT INTO selected VALUES (3, 'e'), (13, 'f'); SELECT onerepl_resume('hq')");
$pair->poll_b('SELECT string_agg(concat_ws(chr(58), id, secret), chr(59) ORDER BY id) FROM selected', 'holds for them', wanted => '1;2;3') or $pair->show_state;

# --- a schema here that two remotes write to
my $second = OneReplTest::start_node('a2', 0);
$_->safe_psql('postgres', 'CREATE SCHEMA shared; CREATE TABLE shared.mine (id int PRIMARY KEY); CREATE TABLE shared.others (id int PRIMARY KEY)') for $pair->nodes, $second;
$pair->b("SELECT onerepl_add_remote('branch2', 'another secret, also long enough', tables => '{*}')");
OneReplTest::apply_statements($pair->node_b, 'branch2');
$second->safe_psql('postgres', "CREATE EXTENSION onerepl; SELECT onerepl_add_central('hq', 'http://127.0.0.1:$pair->{listen}', 'another secret, also long enough'), onerepl_add_table('shared.others')");
$pair->track('shared.mine');
$second->safe_psql('postgres', 'INSERT INTO shared.others VALUES (1)');
$pair->a('INSERT INTO shared.mine VALUES (1)');
$pair->poll_b('SELECT m.id + o.id FROM shared.mine AS m, shared.others AS o', 'both write', wanted => '2');
$pair->a('ALTER SCHEMA shared RENAME TO alone; INSERT INTO alone.mine VALUES (2)');
failure_is('0A000 the remote renamed its schema shared, where link "branch2" has tables here, too|ALTER SCHEMA shared RENAME TO alone', 'keeps its name');
$pair->b("SELECT onerepl_set_target('branch', 'alone', NULL, 'shared'); SELECT onerepl_resolve_all('branch', 'skip')");
$second->safe_psql('postgres', 'INSERT INTO shared.others VALUES (2)');
$pair->poll_b('SELECT (SELECT max(id) FROM shared.mine) + (SELECT max(id) FROM shared.others)', 'and both go on, as its hint says', wanted => '4') or $pair->show_state;

# ------------------------------------------------------------------------------------------------ settings of the session

$_->safe_psql('postgres', "CREATE TABLE settings (id int PRIMARY KEY, at timestamp, b bytea); INSERT INTO settings VALUES (1, '2026-07-01 12:00', '\\x00ff')") for $pair->nodes;
OneReplTest::apply_statements($pair->node_b);
$pair->track('settings');
$pair->a("SET timezone = 'America/New_York'; SET datestyle = 'SQL, DMY'; SET bytea_output = 'escape'; ALTER TABLE settings ALTER at TYPE timestamptz; ALTER TABLE settings ADD d date DEFAULT '01/02/2024', ALTER b TYPE text USING b::text");
$pair->wait_identical('settings', { name => 'a statement means on B what it meant on A' }) or $pair->show_state;
is($pair->b("SELECT at AT TIME ZONE 'UTC' || ' ' || d || ' ' || b FROM settings"), '2026-07-01 16:00:00 2024-02-01 \000\377', 'its values');

# ------------------------------------------------------------------------------------------------ a name that another table gets

$pair->b("SELECT onerepl_set_ddl('branch', 'stop')");
$_->safe_psql('postgres', "CREATE SCHEMA logs; CREATE TABLE logs.now (id int PRIMARY KEY, v text); INSERT INTO logs.now VALUES (1, 'old')") for $pair->nodes;
$pair->a("SELECT onerepl_add_schema('logs', new_tables => true); BEGIN; ALTER TABLE logs.now RENAME TO of_2025; CREATE TABLE logs.now (id int PRIMARY KEY, v text); COMMIT; INSERT INTO logs.now VALUES (7, 'new')");
failure_is('42P01 the remote renamed its table logs.now to logs.of_2025, which is not here|ALTER TABLE logs.now RENAME TO of_2025', 'rows of the new table do not go to the old one');
$pair->b("ALTER TABLE logs.now RENAME TO of_2025; CREATE TABLE logs.now (id int PRIMARY KEY, v text); SELECT onerepl_resolve_all('branch', 'skip')");
$pair->wait_identical('logs.now', 'logs.of_2025', { name => 'renamed on B too' }) or $pair->show_state;

$second->stop('fast');
$pair->finish;
done_testing();
