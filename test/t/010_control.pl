# The administrator's controls: block, unblock, pause, resume, wait; the lock rule of lock_pending; several links.
use strict;
use warnings;
use OneReplTest;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(sleep time);

my $pair = OneReplTest->new(track => ['t'], schema => <<'SQL');
CREATE TABLE t (id int PRIMARY KEY, v text);
CREATE TABLE locked (id int PRIMARY KEY, v text);
SQL
$pair->a("INSERT INTO t SELECT n, 'base' FROM generate_series(1, 10) AS n");
$pair->wait_identical('t');
$pair->wait_settled('set up');

# --- block and unblock
my $m = $pair->a('SELECT numbered_to FROM onerepl_status()');
my $at = $m + 3;
$pair->a("SELECT onerepl_block('hq', $at)");
$pair->a("INSERT INTO t VALUES ($_, 'one by one')") for 101 .. 105;
$pair->poll_b('SELECT count(*) FROM t WHERE id > 100', 'what comes before a blocked record arrives', wanted => '2');
$pair->poll_a("SELECT state = 'blocked at $at' FROM onerepl_status()", 'the status of A tells where', deadline => 10);
is($pair->a("SELECT state FROM onerepl.log WHERE n = $at"), 'B', 'the record is in B');
is($pair->a("SELECT state FROM onerepl.log WHERE n = $at + 1"), 'L', 'the next one in L');
is($pair->a("SELECT state FROM onerepl_object_state('t', '103')"), 'B', 'so is its object');
$pair->poll_b("SELECT state ~ 'blocked' FROM onerepl_status()", 'B knows', deadline => 10);
cmp_ok(OneReplTest::journal_count($pair->node_a, rule => 'R1b'), '>=', 1, 'the journal tells it');
sleep 1.5;
is($pair->b('SELECT count(*) FROM t WHERE id > 100'), '2', 'nothing passes');
$pair->a("SELECT onerepl_unblock('hq', $at)");
$pair->wait_identical('t', { name => 'unblocked' });
my ($state) = OneReplTest::fails($pair->node_a, "SELECT onerepl_block('hq', 1)");
is($state, '55000', 'what was sent cannot be blocked');
($state) = OneReplTest::fails($pair->node_a, "SELECT onerepl_unblock('hq', 1000000)");
is($state, 'P0002', 'what is not blocked cannot be unblocked');

# --- a blocked record in the middle of a transaction: B sees nothing of it
$m = $pair->a('SELECT numbered_to FROM onerepl_status()');
$pair->a("SELECT onerepl_block('hq', $m + 3)");
$pair->a("INSERT INTO t SELECT n, 'one transaction' FROM generate_series(201, 210) AS n");
sleep 1.5;
is($pair->b('SELECT count(*) FROM t WHERE id > 200'), '0', 'a transaction with a blocked record is not seen in part');
$pair->a("SELECT onerepl_unblock('hq', $m + 3)");
$pair->wait_identical('t', { name => 'unblocked within a transaction' });

# --- a block survives a restart
$m = $pair->a('SELECT numbered_to FROM onerepl_status()');
$pair->a("SELECT onerepl_block('hq', $m + 1)");
$pair->node_a->restart;
$pair->a("INSERT INTO t VALUES (301, 'blocked across a restart')");
sleep 1.5;
is($pair->b('SELECT count(*) FROM t WHERE id = 301'), '0', 'a block survives a restart');
$pair->a("SELECT onerepl_unblock('hq', $m + 1)");
$pair->wait_identical('t');

# --- pause and resume, on either side
for my $side ([ $pair->node_a, 'hq', $pair->node_b ], [ $pair->node_b, 'branch', $pair->node_a ])
{
	my ($node, $link, $other) = @$side;
	my $name = 'paused on ' . $node->name;
	$node->safe_psql('postgres', "SELECT onerepl_pause('$link')");
	OneReplTest::poll_ok($node, "SELECT state = 'paused' FROM onerepl_status()", "$name: its status", deadline => 10);
	OneReplTest::poll_ok($other, "SELECT state ~ 'paused' FROM onerepl_status()", "$name: the other one's status", deadline => 15);
	$pair->a("INSERT INTO t SELECT coalesce(max(id), 0) + 1, '$name' FROM t");
	sleep 1.5;
	is($pair->b("SELECT count(*) FROM t WHERE v = '$name'"), '0', "$name: nothing is written");
	$node->safe_psql('postgres', "SELECT onerepl_resume('$link')");
	$pair->wait_identical('t', { name => "$name: resumed" });
}

# --- onerepl_wait
$pair->a("SELECT onerepl_pause('hq')");
$pair->a("INSERT INTO t VALUES (1001, 'x')");
my $begin = time;
is($pair->a("SELECT onerepl_wait('hq', '1 s')"), 'f', 'onerepl_wait gives up in time');
cmp_ok(time - $begin, '<', 4, 'not later');
$pair->a("SELECT onerepl_resume('hq')");
is($pair->a("SELECT onerepl_wait('hq', '20 s')"), 't', 'and tells when B has it');
is($pair->b('SELECT count(*) FROM t WHERE id = 1001'), '1', 'B has it indeed');
($state) = OneReplTest::fails($pair->node_a, "BEGIN; INSERT INTO t VALUES (1002, 'x'); SELECT onerepl_wait('hq', '1 s')");
is($state, '25001', 'not in a transaction that has changed something');
($state) = OneReplTest::fails($pair->node_a, "SELECT onerepl_wait('nobody', '1 s')");
is($state, '42704', 'not for a link that is not there');

# --- the lock rule
$pair->a("SELECT onerepl_add_table('locked', true)");
$pair->a("INSERT INTO locked VALUES (1, 'a'), (2, 'b')");
$pair->wait_identical('locked');
$pair->wait_settled('before the lock rule');
$pair->a("SELECT onerepl_pause('hq')");
$pair->a("UPDATE locked SET v = 'pending' WHERE id = 1");
$pair->a("UPDATE locked SET v = 'pending again' WHERE id = 1");
pass('the same object may be changed again while nothing follows it');
$pair->a("UPDATE locked SET v = 'another' WHERE id = 2");
($state) = OneReplTest::fails($pair->node_a, "UPDATE locked SET v = 'too soon' WHERE id = 1");
is($state, '55006', 'a pending object with another behind it may not be changed');
($state) = OneReplTest::fails($pair->node_a, 'DELETE FROM locked WHERE id = 1');
is($state, '55006', 'nor deleted');
is($pair->a("UPDATE locked SET v = 'free' WHERE id = 2 RETURNING v"), 'free', 'the last one may');
is($pair->a("UPDATE t SET v = 'free' WHERE id = 1 RETURNING v"), 'free', 'a table without the rule is free');
$pair->a("SELECT onerepl_resume('hq')");
$pair->poll_a('SELECT written_to = numbered_to FROM onerepl_status()', 'confirmed');
is($pair->a("UPDATE locked SET v = 'after confirmation' WHERE id = 1 RETURNING v"), 'after confirmation', 'after the confirmation it may be changed');
$pair->wait_identical('locked', 't');

# --- a second central, from the same log; a chain: B is a remote of its own
{
	my $third = OneReplTest->new(name => 'x', links => 0, schema => 'CREATE TABLE t (id int PRIMARY KEY, v text); CREATE TABLE locked (id int PRIMARY KEY, v text)');
	my $rows = $pair->a('COPY t TO STDOUT');
	$_->safe_psql('postgres', "COPY t FROM STDIN;\n$rows\n\\.\n") for $third->nodes;
	$third->b("SELECT onerepl_add_remote('branch', 'second $OneReplTest::secret', tables => '{*}')");
	$pair->a(sprintf "SELECT onerepl_add_central('second', '%s', '%s')", $third->url, "second $OneReplTest::secret");
	$pair->a("UPDATE t SET v = 'to both'; INSERT INTO t VALUES (2000, 'to both')");
	$pair->wait_identical('t', { name => 'the first central' });
	ok(OneReplTest::wait_for(sub { OneReplTest::fingerprint($third->node_b, 't') eq OneReplTest::fingerprint($pair->node_a, 't') }, 20), 'the second central');
	$pair->a("SELECT onerepl_pause('second')");
	$pair->a("INSERT INTO t VALUES (2001, 'to the first')");
	$pair->poll_b('SELECT count(*) FROM t WHERE id = 2001', 'pausing one link does not hold the other', wanted => '1');
	is($third->b('SELECT count(*) FROM t WHERE id = 2001'), '0', 'and holds its own');
	$pair->a("SELECT onerepl_remove_central('second')");
	is($pair->a('SELECT count(*) FROM onerepl_status()'), '1', 'a link can be removed');

	# The chain: third's A becomes the central of B.
	$third->node_a->append_conf('postgresql.conf', "onerepl.listen = '127.0.0.1:" . ($third->{chain} = PostgreSQL::Test::Cluster::get_free_port()) . "'");
	$third->node_a->restart;
	my $copy = $pair->b('COPY t TO STDOUT');
	$third->a("TRUNCATE t;\nCOPY t FROM STDIN;\n$copy\n\\.\n");
	$third->a("SELECT onerepl_add_remote('middle', 'upper $OneReplTest::secret', tables => '{*}')");
	$pair->b("SELECT onerepl_add_central('top', 'http://127.0.0.1:$third->{chain}', 'upper $OneReplTest::secret')");
	$pair->b("SELECT onerepl_add_table('t')");
	$pair->a("UPDATE t SET v = 'through the chain' WHERE id < 6; DELETE FROM t WHERE id = 7; INSERT INTO t VALUES (3000, 'chain')");
	ok(OneReplTest::wait_for(sub { OneReplTest::fingerprint($third->node_a, 't') eq OneReplTest::fingerprint($pair->node_a, 't') }, 25), 'a chain: what B writes goes on to the next central')
	  or diag $pair->b('SELECT * FROM onerepl_status()') . "\n" . $third->a('SELECT * FROM onerepl_status()');
	$third->finish;
}

$pair->finish;
done_testing();
