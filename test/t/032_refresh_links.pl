# A refresh on one of two links is nothing to the other one (P17); partitioned tables; a table that is rewritten meanwhile; the logs
# of both sides show chunks.
use strict;
use warnings;
use IO::Socket::INET;
use OneReplTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(sleep);

my $schema = <<'SQL';
CREATE TABLE t (id int PRIMARY KEY, v text);
CREATE TABLE p (id int, k int, v text, PRIMARY KEY (id, k)) PARTITION BY RANGE (k);
CREATE TABLE p_low PARTITION OF p FOR VALUES FROM (0) TO (100);
CREATE TABLE p_high PARTITION OF p FOR VALUES FROM (100) TO (200);
SQL
my $pair = OneReplTest->new(schema => $schema, track => [ 't', 'p' ]);
my $port = PostgreSQL::Test::Cluster::get_free_port();
my $node_c = OneReplTest::start_node('c', 0, "onerepl.listen = '127.0.0.1:$port'");
$node_c->safe_psql('postgres', "$schema; CREATE EXTENSION onerepl; SELECT onerepl_add_remote('branch', 'second $OneReplTest::secret', tables => '{*}')");
OneReplTest::wait_for(sub { IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $port) }, 20);
$pair->a("SELECT onerepl_add_central('second', 'http://127.0.0.1:$port', 'second $OneReplTest::secret')");
$pair->a(<<'SQL');
INSERT INTO t SELECT n, 'v' || n FROM generate_series(1, 500) AS n;
INSERT INTO p SELECT n, n % 200, 'v' || n FROM generate_series(1, 1000) AS n;
SQL
$pair->wait_identical('t', 'p');
same_on_c('both centrals');

# The other central has the same rows.
sub same_on_c
{
	my $name = shift;
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	return ok(OneReplTest::wait_for(sub {
		!grep { OneReplTest::fingerprint($node_c, $_) ne OneReplTest::fingerprint($pair->node_a, $_) } ('t', 'p')
	}, 20), "$name: the other central is, too");
}

sub same_everywhere
{
	my $name = shift;
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	$pair->poll_a("SELECT count(*) = 0 FROM onerepl.refresh WHERE state IN ('waiting', 'running', 'paused', 'sent', 'cancelling')", "$name: done");
	$pair->wait_identical('t', 'p', { name => "$name: identical" });
	same_on_c($name);
	$pair->poll_a('SELECT bool_and(written_to = numbered_to) FROM onerepl_status()', "$name: all is confirmed");
	return;
}

# --- two links
$pair->b("SET onerepl.allow_writes = on; DELETE FROM t WHERE id < 100; UPDATE t SET v = 'stale' WHERE id = 300");
my $untouched = $node_c->safe_psql('postgres', 'SELECT max(xmin::text::int8) FROM t');
is($pair->a("SELECT onerepl_refresh('hq', 't', 'repair', chunk_rows => 50)"), '1', 'one table');
$pair->a("UPDATE t SET v = 'during' WHERE id = 500");
same_everywhere('two links');
is($node_c->safe_psql('postgres', "SELECT max(xmin::text::int8) FROM t WHERE v <> 'during'"), $untouched, 'where it was not filled, nothing was written');
is($node_c->safe_psql('postgres', 'SELECT count(*) FROM onerepl.refresh_window'), '0', 'nor opened');
cmp_ok($pair->b("SELECT count(*) FROM onerepl.log WHERE operation = 'refresh' AND relation = 'public.t'"), '>=', 11, 'chunks are in the log of the central');
cmp_ok($pair->a("SELECT count(DISTINCT n) FROM onerepl.log"), '>=', 1500, 'the log of the remote can be read');

# --- partitioned, rows that move between partitions
$pair->b("SET onerepl.allow_writes = on; DELETE FROM p WHERE id % 3 = 0; INSERT INTO p VALUES (5000, 5, 'surplus'), (5001, 150, 'surplus')");
is($pair->a("SELECT onerepl_refresh('hq', 'p', chunk_rows => 40, rows_per_second => 2000)"), '1', 'one table with all its partitions');
$pair->a("UPDATE p SET k = 199 - k WHERE id BETWEEN 400 AND 450; DELETE FROM p WHERE id = 7; UPDATE p SET v = 'new' WHERE id > 990");
same_everywhere('partitioned');
$pair->b("SET onerepl.allow_writes = on; DELETE FROM p WHERE id % 3 = 0; INSERT INTO p VALUES (5000, 5, 'surplus'), (5001, 150, 'surplus')");
$pair->a("SELECT onerepl_refresh('hq', 'p_high', 'repair')");
same_everywhere('a partition stands for its table');

# --- rewritten, truncated, and locked while it is copied
$pair->a("SELECT onerepl_refresh('hq', 't', chunk_rows => 10, rows_per_second => 500)");
$pair->poll_a("SELECT rows_done > 0 FROM onerepl.refresh ORDER BY id DESC LIMIT 1", 'it runs');
$pair->b('ALTER TABLE t ALTER id TYPE int8'); $node_c->safe_psql('postgres', 'ALTER TABLE t ALTER id TYPE int8');
$pair->a("BEGIN; ALTER TABLE t ALTER id TYPE int8; SELECT pg_sleep(0.5); COMMIT; UPDATE t SET v = v || '!' WHERE id % 5 = 0");
same_everywhere('a new type meanwhile');
$pair->a("SELECT onerepl_refresh('hq', 't', chunk_rows => 10, rows_per_second => 500)");
$pair->poll_a("SELECT rows_done > 0 FROM onerepl.refresh ORDER BY id DESC LIMIT 1", 'it runs');
$pair->a("TRUNCATE t; INSERT INTO t SELECT n, 'after' FROM generate_series(-50, 50) AS n");
same_everywhere('truncated meanwhile');

$pair->finish;
$node_c->stop('fast');
done_testing();
