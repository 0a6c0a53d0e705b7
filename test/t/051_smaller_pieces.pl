# What B can not write as a whole it writes in smaller pieces (P22), and what keeps it from writing is told on both sides.
use strict;
use warnings;
use OneReplTest;
use PostgreSQL::Test::Utils;
use Test::More;

my $tables = 1500;
my $pair = OneReplTest->new(
	conf_b => "max_locks_per_transaction = 10\nmax_connections = 20\nmax_prepared_transactions = 0",
	conf_a => 'max_locks_per_transaction = 300',
	schema => 'CREATE TABLE t (id int PRIMARY KEY)',
	links  => 0);

$pair->a(sprintf "SELECT onerepl_add_central('hq', '%s', '%s')", $pair->url, $OneReplTest::secret);

$pair->track('t');
# As many transactions as there are tables, which all reach B in one body.
sub on_both { my $sql = shift; $_->safe_psql('postgres', $sql) for $pair->nodes; return; }
for (my $first = 1; $first <= $tables; $first += 100)
{
	my $last = $first + 99;
	on_both("DO \$\$ BEGIN FOR n IN $first..$last LOOP EXECUTE format('CREATE TABLE many_%s (id int)', n); END LOOP; END \$\$");
	$pair->a("SELECT onerepl_add_table(format('many_%s', n)::regclass) FROM generate_series($first, $last) AS n");
}
$pair->a(join '', map { "INSERT INTO many_$_ VALUES ($_);\n" } 1 .. $tables);
$pair->b('CREATE VIEW all_rows AS ' . join ' UNION ALL ', map { "SELECT id FROM many_$_" } 1 .. 50);
$pair->b("SELECT onerepl_add_remote('branch', '$OneReplTest::secret', tables => '{*}')");
$pair->wait_settled('transactions in more tables than B can lock at once', 120);
is($pair->b("SELECT count(*) FROM onerepl.journal WHERE message LIKE 'writing is put off%SQLSTATE 53200%'") > 0, '1', 'B was short of locks meanwhile');
is($pair->b('SELECT count(*) FROM all_rows'), '50', 'all is there');
$pair->a("INSERT INTO t VALUES (1)");
$pair->wait_identical('t', { name => 'and the link goes on' });
OneReplTest::poll_ok($pair->node_b, "SELECT state = 'in step' AND last_error IS NULL FROM onerepl_status()", 'B says in step');
$pair->finish;
done_testing();
