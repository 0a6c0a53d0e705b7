# What works without onerepl works with it: tracked tables become partitions or children of tracked tables and leave them again, as
# PostgreSQL's manual recommends, and B has their rows in the right table; a table that is made anew is new on B, too.
use strict;
use warnings;
use OneReplTest;
use PostgreSQL::Test::Utils;
use Test::More;

my $pair = OneReplTest->new(
	schema => "CREATE TABLE p (id int PRIMARY KEY, v text) PARTITION BY RANGE (id); CREATE TABLE p_rest PARTITION OF p DEFAULT;
		CREATE TABLE p1 (LIKE p INCLUDING ALL); CREATE TABLE p2 (LIKE p INCLUDING ALL) PARTITION BY RANGE (id); CREATE TABLE p2a PARTITION OF p2 FOR VALUES FROM (20) TO (25)",
	track => [qw(p p1 p2)]);
my $tracked = "SELECT string_agg(relation::regclass::text, ' ' ORDER BY relation::regclass::text) FROM onerepl.tracked";
$pair->a("INSERT INTO p VALUES (100, 'before'); INSERT INTO p1 VALUES (11, 'of p1'); INSERT INTO p2 VALUES (21, 'of p2')");
$pair->wait_identical('p', 'p1', 'p2');

# --- refused, or rolled back: all is as it was
my $attach = 'ALTER TABLE p ATTACH PARTITION p1 FOR VALUES FROM (10) TO (20)';
$pair->a('CREATE ROLE stranger LOGIN');
is_deeply([ OneReplTest::fails($pair->node_a, "SET ROLE stranger; $attach") ]->[0], '42501', "not a stranger's");
is((OneReplTest::fails($pair->node_a, 'ALTER TABLE p ATTACH PARTITION p1 FOR VALUES FROM (90) TO (95)'))[0], '23514', 'nor with rows that do not belong there');
$pair->a("BEGIN; $attach; ROLLBACK");
is($pair->a($tracked), 'p p1 p2', 'all are tracked still');
$pair->a("INSERT INTO p1 VALUES (12, 'still of p1')");
$pair->wait_identical('p', 'p1', 'p2', { name => 'and captured' });

# --- a table
$pair->a("BEGIN; $attach; INSERT INTO p VALUES (13, 'by p'); UPDATE p1 SET v = v || ', changed' WHERE id = 11; COMMIT");
$pair->wait_identical('p', { name => 'a table with rows is a partition' });
is($pair->a($tracked), 'p p2', 'and not tracked by itself');

# --- a partitioned table
$pair->a("ALTER TABLE p ATTACH PARTITION p2 FOR VALUES FROM (20) TO (30); INSERT INTO p VALUES (22, 'by p'); DELETE FROM p2 WHERE id = 21; TRUNCATE p1");
$pair->wait_identical('p', { name => 'a partitioned table is a partition' });

# --- out and in again
$pair->a('ALTER TABLE p DETACH PARTITION p1');
$pair->a("SELECT onerepl_add_table('p1')");
$pair->a("INSERT INTO p VALUES (14, 'rest')");
$pair->wait_identical('p', { name => 'out' });
$pair->a("DELETE FROM p WHERE id = 14; $attach; INSERT INTO p VALUES (15, 'in again')");
$pair->wait_identical('p', { name => 'in again' });
is($pair->a('SELECT count(*) FROM onerepl.problems'), '0', 'nothing is wrong');
$pair->verify_equal('p');

# --- on a link that executes statements: what is made on A is new on B, and inheritance is told
$pair->b("SELECT onerepl_set_ddl('branch', 'apply')");
$pair->a("SELECT onerepl_add_schema('public', new_tables => true)");
$pair->a("CREATE TABLE again (id int PRIMARY KEY, v text); INSERT INTO again VALUES (1, 'old')");
$pair->wait_identical('again', { name => 'made' });
$pair->a("DROP TABLE again; CREATE TABLE IF NOT EXISTS again (id int PRIMARY KEY, v text); INSERT INTO again VALUES (2, 'new')");
$pair->poll_b('SELECT sqlstate FROM onerepl.failed', 'what is left of a table that was dropped is not the new one', wanted => '42P07');
$pair->b('DROP TABLE again');
$pair->b("SELECT onerepl_resolve_all('branch', 'retry')");
$pair->wait_identical('again', { name => 'the cure cures' });
$pair->a("CREATE TABLE parent (id int, n int); CREATE TABLE child (id int, n int); INSERT INTO child VALUES (1, 5); ALTER TABLE child INHERIT parent");
$pair->a('ALTER TABLE parent ALTER n TYPE bigint USING n * 2');
$pair->wait_identical('parent', 'child', { name => 'what is done to the parent is done to the child' });
$pair->a('ALTER TABLE child NO INHERIT parent; ALTER TABLE parent ADD COLUMN own int');
$pair->a('INSERT INTO child VALUES (2, 6)');
$pair->wait_identical('parent', 'child', { name => 'and no longer' });
$pair->verify_equal('again', 'child');
$pair->finish;
done_testing();
