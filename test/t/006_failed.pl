# Records that B cannot write: state F, all of a transaction shown together, and the three ways to resolve them (P13).
# Transient errors are never F.
use strict;
use warnings;
use OneReplTest;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(sleep);

my $pair = OneReplTest->new(track => ['t', 'u'], schema => <<'SQL');
CREATE TABLE t (id int PRIMARY KEY, v text);
CREATE TABLE u (id int PRIMARY KEY, v int);
INSERT INTO t SELECT n, 'old' FROM generate_series(1, 20) AS n;
SQL

sub on_b { my $sql = shift; return $pair->b("SET onerepl.allow_writes = on; $sql"); }
sub wait_failed
{
	my ($name, $count) = @_;
	$pair->poll_b('SELECT count(*) FROM onerepl.failed', $name, wanted => $count, deadline => 20);
	$pair->poll_b("SELECT state ~ '^failed at' FROM onerepl_status()", "$name: the status of B", deadline => 5);
	return;
}
sub wait_clear
{
	my $name = shift;
	$pair->poll_b("SELECT count(*) FROM onerepl.failed", "$name: no failure left", wanted => '0', deadline => 20);
	$pair->poll_a('SELECT written_to = numbered_to FROM onerepl_status()', "$name: all is confirmed", deadline => 20);
	return;
}

# --- retry, after the cause was removed
$pair->a("INSERT INTO t VALUES (100, 'first')");
$pair->wait_identical('t');
on_b("INSERT INTO t VALUES (101, 'stands in the way')");
$pair->a("INSERT INTO u VALUES (1, 1)");
$pair->a("INSERT INTO t VALUES (101, 'from A')");
$pair->a("INSERT INTO u VALUES (2, 2)");
wait_failed('a key that is there already', 1);
is($pair->b('SELECT count(*) FROM u WHERE id = 1'), '1', 'what came before is written');
is($pair->b('SELECT count(*) FROM u WHERE id = 2'), '0', 'what comes behind waits');
is($pair->b("SELECT sqlstate || ' ' || conflict FROM onerepl.failed"), '23505 insert_exists', "SQLSTATE, and PostgreSQL's name of the conflict");
my $n = $pair->b('SELECT n FROM onerepl.failed');
is($pair->b('SELECT written_to + 1 FROM onerepl_status()'), $n, 'S_b stands before it');
is($pair->b("SELECT state FROM onerepl_object_state('t', '101')"), 'F', 'state of the object');
is($pair->b("SELECT state FROM onerepl.log WHERE n = $n"), 'F', 'state in the log');
like($pair->b('SELECT f::text FROM onerepl.failed AS f'), qr/t_pkey/, 'the constraint is named');
$pair->poll_a("SELECT state = 'the central is failed at $n' OR state ~ 'failed' FROM onerepl_status()", 'A knows', deadline => 10);
cmp_ok(OneReplTest::journal_count($pair->node_b, level => 'critical'), '>=', 1, 'the journal of B tells it');
on_b('DELETE FROM t WHERE id = 101');
$pair->b("SELECT onerepl_resolve('branch', $n, 'retry')");
wait_clear('retry');
$pair->wait_identical('t', 'u', { name => 'retry' });

# --- overwrite
on_b("INSERT INTO t VALUES (102, 'stands in the way')");
on_b('DELETE FROM t WHERE id = 1; DELETE FROM t WHERE id = 2');
$pair->a("INSERT INTO t VALUES (102, 'from A'); UPDATE t SET v = 'changed' WHERE id = 1; DELETE FROM t WHERE id = 2");
wait_failed('three failures in a row show one after the other or together', $pair->b('SELECT greatest(1, count(*)) FROM onerepl.failed'));
my %conflicts;
OneReplTest::wait_for(
	sub {
		$conflicts{$_}++ for split /\n/, $pair->b('SELECT conflict FROM onerepl.failed');
		$pair->b("SELECT onerepl_resolve_all('branch', 'overwrite')");
		return $pair->a('SELECT written_to = numbered_to FROM onerepl_status()') eq 't';
	}, 30);
is(join(' ', sort keys %conflicts), 'delete_missing insert_exists update_missing', "and by PostgreSQL's names");
wait_clear('overwrite');
$pair->wait_identical('t', 'u', { name => 'overwrite' });

# --- several failures of one transaction, shown together; some overwritten, one skipped
on_b("INSERT INTO t VALUES (103, 'x'), (105, 'x'), (107, 'x')");
$pair->a("BEGIN; INSERT INTO t SELECT n, 'from A' FROM generate_series(103, 108) AS n; INSERT INTO u VALUES (3, 3); COMMIT");
wait_failed('all failures of a transaction together', 3);
is($pair->b('SELECT count(*) FROM t WHERE id = 104'), '0', 'nothing of the transaction is written');
my @failed = split /\n/, $pair->b('SELECT n FROM onerepl.failed ORDER BY n');
$pair->b("SELECT onerepl_resolve('branch', $failed[0], 'skip')");
$pair->b("SELECT onerepl_resolve('branch', $_, 'overwrite')") for @failed[ 1, 2 ];
wait_clear('skip and overwrite');
is($pair->b("SELECT string_agg(v, ',' ORDER BY id) FROM t WHERE id BETWEEN 103 AND 108"),
	'x,from A,from A,from A,from A,from A', 'the skipped one is not written, the others are');
cmp_ok(OneReplTest::journal_count($pair->node_b, level => 'critical', like => 'skip'), '>=', 1, 'skipping is journalled as critical');
on_b("UPDATE t SET v = 'from A' WHERE id = 103");
$pair->wait_identical('t', 'u');

# --- a check that only B has; a trigger of B that fails; a missing table
$pair->b('ALTER TABLE u ADD CONSTRAINT small CHECK (v < 100)');
$pair->a('INSERT INTO u VALUES (10, 1000)');
wait_failed('a check constraint of B', 1);
is($pair->b('SELECT sqlstate FROM onerepl.failed'), '23514', 'SQLSTATE of the check');
$pair->b('ALTER TABLE u DROP CONSTRAINT small');
$pair->b("SELECT onerepl_resolve_all('branch', 'retry')");
wait_clear('check');

$pair->a('CREATE TABLE late (id int PRIMARY KEY)');
$pair->track('late');
$pair->a('INSERT INTO late VALUES (1)');
wait_failed('a table that B lacks', 1);
is($pair->b('SELECT hint FROM onerepl.failed'), 'Create the table, then retry.', 'the way out is told');
$pair->b('CREATE TABLE late (id int PRIMARY KEY)');
$pair->b("SELECT onerepl_resolve_all('branch', 'retry')");
wait_clear('missing table');

# --- a failure that only the end of the transaction shows
$pair->b('ALTER TABLE u ADD CONSTRAINT once UNIQUE (v) DEFERRABLE INITIALLY DEFERRED');
$pair->a('INSERT INTO u VALUES (20, 20), (21, 20)');
wait_failed('a deferred constraint of B', 1);
$pair->b('ALTER TABLE u DROP CONSTRAINT once');
$pair->b("SELECT onerepl_resolve_all('branch', 'retry')");
wait_clear('deferred constraint');

# --- TRUNCATE that cannot be applied
$pair->b('CREATE TABLE refers (id int REFERENCES t)');
$pair->a("TRUNCATE t; INSERT INTO t VALUES (1, 'after')");
$pair->poll_b("SELECT (SELECT count(*) FROM onerepl.failed) = 1 OR (SELECT count(*) FROM t) = 1", 'TRUNCATE of a table that others refer to', deadline => 20);
$pair->b('DROP TABLE refers');
$pair->b("SELECT onerepl_resolve_all('branch', 'retry')");
wait_clear('truncate');
$pair->wait_identical('t', 'u', 'late');

# --- transient errors: a lock that is not given in time, a cancelled statement
my $holder = $pair->node_b->background_psql('postgres');
$holder->query_safe('BEGIN; LOCK TABLE t IN ACCESS EXCLUSIVE MODE');
$pair->a("INSERT INTO t VALUES (200, 'after the lock')");
sleep 3;
is($pair->b('SELECT count(*) FROM onerepl.failed'), '0', 'a lock timeout is no failure');
$holder->query_safe('COMMIT');
$holder->quit;
$pair->wait_identical('t', { name => 'and the record is written when the lock is gone', deadline => 20 });

# --- errors of the functions
my ($state) = OneReplTest::fails($pair->node_b, "SELECT onerepl_resolve('branch', 1, 'retry')");
is($state, 'P0002', 'no such failure');
($state) = OneReplTest::fails($pair->node_b, "SELECT onerepl_resolve('branch', 1, 'ignore')");
is($state, '22023', 'no such way');
($state) = OneReplTest::fails($pair->node_a, "SELECT onerepl_resolve('hq', 1, 'retry')");
is($state, '55000', 'not on the remote');

$pair->finish;
done_testing();
