# A chain: B is the central of A and the remote of C. What apply writes on B is captured there and reaches C (P11).
use strict;
use warnings;
use OneReplTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $schema = <<'SQL';
CREATE TABLE t (id int PRIMARY KEY, v text);
CREATE TABLE swap (id int PRIMARY KEY DEFERRABLE, v text);
CREATE TABLE part (id int, k text, PRIMARY KEY (id, k)) PARTITION BY LIST (k);
CREATE TABLE part_a PARTITION OF part FOR VALUES IN ('a');
CREATE TABLE part_b PARTITION OF part FOR VALUES IN ('b');
SQL
my @tables = qw(t swap part);
my $pair = OneReplTest->new(schema => $schema, track => \@tables);

my $port = PostgreSQL::Test::Cluster::get_free_port();
my $node_c = OneReplTest::start_node('c', 0, "onerepl.listen = '127.0.0.1:$port'");
$node_c->safe_psql('postgres', $_)
  for $schema, 'CREATE EXTENSION onerepl', "SELECT onerepl_add_remote('b', 'upper $OneReplTest::secret', tables => '{*}')";
$pair->b("SELECT onerepl_add_table('$_'::regclass)") for @tables;
$pair->b("SELECT onerepl_add_central('c', 'http://127.0.0.1:$port', 'upper $OneReplTest::secret')");

sub reaches_c
{
	my ($name) = @_;
	for my $table (@tables)
	{
		my $wanted = OneReplTest::fingerprint($pair->node_a, $table);
		my $same = OneReplTest::wait_for(sub { (OneReplTest::fingerprint($node_c, $table) // '') eq $wanted }, 30);
		ok($same, "$name: $table on C") or $pair->show_state($table);
	}
	return;
}

$pair->a("INSERT INTO t SELECT g, 'v' || g FROM generate_series(1, 3000) AS g");
$pair->a("INSERT INTO swap SELECT g, 'v' || g FROM generate_series(1, 50) AS g; INSERT INTO part SELECT g, 'a' FROM generate_series(1, 50) AS g");
reaches_c('inserts');
$pair->a("UPDATE swap SET id = id + 1; UPDATE t SET v = v || 'x' WHERE id % 3 = 0; DELETE FROM t WHERE id % 7 = 0");
$pair->a("UPDATE part SET k = 'b' WHERE id > 25; INSERT INTO t VALUES (7, repeat('long', 5000)); UPDATE t SET v = 'short' WHERE id = 8");
reaches_c('updates and deletes');
$pair->a("BEGIN; TRUNCATE t, part; INSERT INTO t VALUES (1, 'after'); COMMIT; UPDATE t SET id = 2");
reaches_c('truncate');
OneReplTest::apply_statements($pair->node_b);
OneReplTest::apply_statements($node_c, 'b');
$pair->a("ALTER TABLE t ADD more int; UPDATE t SET more = 5; SELECT onerepl_execute_ddl('CREATE INDEX t_more ON t (more); ALTER TABLE t ADD last int'); UPDATE t SET last = 6");
reaches_c('statements');
is($node_c->safe_psql('postgres', "SELECT to_regclass('t_more')"), 't_more', 'and what no row shows');
is($node_c->safe_psql('postgres', 'SELECT count(*) FROM onerepl.failed'), '0', 'nothing failed on C');
$pair->wait_identical(@tables);
$node_c->stop;
$pair->finish;
done_testing();
