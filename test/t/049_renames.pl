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
	OneReplTest::poll_ok($pair->node_b, q{SELECT string_agg(sqlstate || ' ' || message || '|' || detail, ';') FROM onerepl.failed}, $name, wanted => $wanted) or $pair->show_state;
}

# ------------------------------------------------------------------------------------------------ told only

$pair->a("INSERT INTO one VALUES (1, 'of one'); INSERT INTO two VALUES (1, 'of two'); INSERT INTO east.t VALUES (1, 'of east'); INSERT INTO west.t VALUES (1, 'of west')");
$pair->wait_identical(@tables);

$pair->a("$swap_tables; UPDATE one SET v = v || ', now one'; UPDATE two SET v = v || ', now two'");
failure_is('42P07 the remote renamed its table public.two to public.one, whose rows go to another table here|ALTER TABLE two RENAME TO one', 'partitioned tables');
$pair->b("$swap_tables; SELECT onerepl_resolve_all('branch', 'skip')");
$pair->wait_identical(@tables, { name => 'renamed on B too' }) or $pair->show_state;
is($pair->b('SELECT one.v || ' . q{'; '} . ' || two.v FROM one, two'), 'of two, now one; of one, now two', 'each with its rows');

$pair->a("$swap_schemas; UPDATE east.t SET v = v || ', now east'; UPDATE west.t SET v = v || ', now west'; INSERT INTO west.unchanged VALUES (1, 'not any more')");
failure_is('42P07 the remote renamed its table west.t to east.t, whose rows go to another table here|ALTER SCHEMA west RENAME TO east', 'schemas');
like($pair->b('SELECT hint FROM onerepl.failed'), qr/^Rename the tables here.*skip/, 'with what to do');
$pair->b("$swap_schemas; SELECT onerepl_resolve_all('branch', 'skip')");
@tables = qw(one two east.t west.t west.unchanged);
$pair->wait_identical(@tables, { name => 'renamed on B too' }) or $pair->show_state;
is($pair->b('SELECT e.v || ' . q{'; '} . ' || w.v FROM east.t AS e, west.t AS w'), 'of west, now east; of east, now west', 'each with its rows');

# ------------------------------------------------------------------------------------------------ executed

$pair->b("SELECT onerepl_set_ddl('branch', 'apply')");
$pair->a("$swap_tables; $swap_schemas; UPDATE one SET v = v || ', one again'; UPDATE east.t SET v = v || ', east again'; UPDATE west.t SET v = 'west'");
@tables = qw(one two east.t west.t east.unchanged);
$pair->wait_identical(@tables, { name => 'tables and schemas are renamed on B' }) or $pair->show_state;
is($pair->b('SELECT one.v || ' . q{'; '} . ' || e.v FROM one, east.t AS e'), 'of one, now two, one again; of east, now west, east again', 'each with its rows');
$pair->a("BEGIN; INSERT INTO east.t VALUES (2, 'before'); ALTER SCHEMA east RENAME TO orient; INSERT INTO orient.t VALUES (3, 'behind'); INSERT INTO orient.unchanged VALUES (2, 'new'); COMMIT");
@tables = qw(one two orient.t west.t orient.unchanged);
$pair->wait_identical(@tables, { name => 'a schema of several tables gets a new name once' }) or $pair->show_state;
is($pair->b(q{SELECT count(*) FROM onerepl.journal WHERE message LIKE 'executed as on the remote: ALTER SCHEMA east RENAME TO orient%'}), '1', 'told once');
$pair->finish;
done_testing();
