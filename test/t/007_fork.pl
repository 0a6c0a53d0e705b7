# P9: a restored A or B, a promoted standby that lost its tail, a clone, a miswired link: each is found at the first exchange,
# stops the link on both sides, and both journals say what to do.
use strict;
use warnings;
use OneReplTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(sleep);

my $number = 0;

# A pair with ten rows that have arrived.
sub new_pair
{
	my %options = @_;
	my $pair = OneReplTest->new(name => ++$number, track => ['t'], schema => 'CREATE TABLE t (id int PRIMARY KEY, v text)', %options);
	$pair->a("INSERT INTO t SELECT n, 'base' FROM generate_series(1, 10) AS n");
	$pair->wait_identical('t', { name => 'set up' });
	$pair->wait_settled('set up');
	return $pair;
}

# Both ends are stopped for the reason $reason (a pattern of the status), tell so and say what to do.
sub stopped_ok
{
	my ($name, $reason, @nodes) = @_;
	for my $node (@nodes)
	{
		OneReplTest::poll_ok($node, "SELECT state ~ '^stopped' FROM onerepl_status()", "$name: " . $node->name . ' has stopped the link', deadline => 15);
		like($node->safe_psql('postgres', 'SELECT state FROM onerepl_status()'), $reason, "$name: the reason on " . $node->name);
		my $entries = $node->safe_psql('postgres', "SELECT count(*) FROM onerepl.journal WHERE level = 'critical' AND rule = 'P9' AND hint <> ''");
		cmp_ok($entries, '>=', 1, "$name: the journal of " . $node->name . ' tells it, with the cure');
		cmp_ok($entries, '<=', 3, "$name: not again and again");
	}
	return;
}

# B has what it had: rows written by a forked history are none.
sub untouched_ok
{
	my ($name, $pair, $content) = @_;
	is(OneReplTest::fingerprint($pair->node_b, 't'), $content, "$name: B has written nothing of it");
	return;
}

# The cure: the tables are made equal by hand, both ends start anew, B first.
sub cure_ok
{
	my ($name, $pair) = @_;
	my $rows = $pair->a("COPY t TO STDOUT");
	$pair->b("SET onerepl.allow_writes = on; DELETE FROM t;\nCOPY t FROM STDIN;\n$rows\n\\.\n");
	$pair->b("SELECT onerepl_restart_link('branch')");
	$pair->a("SELECT onerepl_restart_link('hq')");
	$pair->a("INSERT INTO t VALUES (9999, 'after the cure')");
	$pair->wait_identical('t', { name => "$name: after the cure", deadline => 20 });
	$pair->wait_settled("$name: after the cure");
	return;
}

# --- A comes from an older backup, and has nothing new
{
	my $pair = new_pair();
	my $copy = OneReplTest::save($pair->node_a);
	$pair->a("INSERT INTO t SELECT n, 'lost' FROM generate_series(11, 20) AS n");
	$pair->wait_identical('t');
	$pair->wait_settled('before the restore');
	my $content = OneReplTest::fingerprint($pair->node_b, 't');
	OneReplTest::restore($pair->node_a, $copy);
	stopped_ok('A restored', qr/remote has lost|histories differ/, $pair->nodes);
	untouched_ok('A restored', $pair, $content);
	cure_ok('A restored', $pair);
	$pair->finish;
}

# --- A comes from an older backup and makes more new changes than it lost before B hears of it
{
	my $pair = new_pair();
	my $copy = OneReplTest::save($pair->node_a);
	$pair->a("INSERT INTO t SELECT n, 'lost' FROM generate_series(11, 20) AS n");
	$pair->wait_identical('t');
	$pair->wait_settled('before the restore');
	my $content = OneReplTest::fingerprint($pair->node_b, 't');
	$pair->node_b->stop;
	OneReplTest::restore($pair->node_a, $copy);
	$pair->a("INSERT INTO t VALUES ($_, 'other history')") for 21 .. 60;
	$pair->poll_a('SELECT numbered_to > 45 FROM onerepl_status()', 'the other history has more numbers');
	$pair->node_b->start;
	stopped_ok('A restored and overtaken', qr/histories differ|remote has lost/, $pair->nodes);
	untouched_ok('A restored and overtaken', $pair, $content);
	cure_ok('A restored and overtaken', $pair);
	$pair->finish;
}

# --- B comes from an older backup
{
	my $pair = new_pair();
	my $copy = OneReplTest::save($pair->node_b);
	$pair->a("INSERT INTO t SELECT n, 'confirmed' FROM generate_series(11, 20) AS n");
	$pair->wait_identical('t');
	$pair->wait_settled('before the restore');
	OneReplTest::restore($pair->node_b, $copy);
	stopped_ok('B restored', qr/central has lost/, $pair->nodes);
	cure_ok('B restored', $pair);
	$pair->finish;
}

# --- a standby of A is promoted that had not got the last transactions
{
	my $pair = new_pair(streaming => 1);
	$pair->node_a->backup('base');
	my $standby = PostgreSQL::Test::Cluster->new('standby');
	$standby->init_from_backup($pair->node_a, 'base', has_streaming => 1);
	$standby->start;
	$pair->node_a->wait_for_catchup($standby->name, 'replay', $pair->node_a->lsn('insert'));
	$standby->stop;
	$pair->a("INSERT INTO t SELECT n, 'not on the standby' FROM generate_series(11, 20) AS n");
	$pair->wait_identical('t');
	$pair->wait_settled('before the promotion');
	my $content = OneReplTest::fingerprint($pair->node_b, 't');
	$pair->node_a->stop;
	$standby->start;
	$standby->promote;
	$standby->safe_psql('postgres', "INSERT INTO t SELECT n, 'on the new one' FROM generate_series(21, 25) AS n");
	stopped_ok('promoted standby', qr/remote has lost|histories differ/, $standby, $pair->node_b);
	untouched_ok('promoted standby', $pair, $content);
	$standby->stop;
	$pair->finish;
}

# --- a clone of A runs beside it
{
	my $pair = new_pair();
	$pair->node_a->stop;
	my $clone = PostgreSQL::Test::Cluster->new('clone');
	system_or_bail('mkdir', '-p', $clone->basedir);
	system_or_bail('cp', '-a', $pair->node_a->data_dir, $clone->data_dir);
	$clone->append_conf('postgresql.conf', 'port = ' . $clone->port);
	$clone->append_conf('postgresql.conf', q{unix_socket_directories = '} . $clone->host . q{'});
	$pair->node_a->start;
	$clone->start;
	$pair->a("INSERT INTO t SELECT n, 'of A' FROM generate_series(11, 20) AS n");
	$clone->safe_psql('postgres', "INSERT INTO t SELECT n, 'of the clone' FROM generate_series(11, 30) AS n");
	$pair->poll_b("SELECT state ~ '^stopped' FROM onerepl_status()", 'clone: B has stopped the link', deadline => 15);
	$pair->a("INSERT INTO t VALUES (100, 'more of A')");
	$clone->safe_psql('postgres', "INSERT INTO t VALUES (101, 'more of the clone')");
	my $with = sub { my $node = shift; return $node->safe_psql('postgres', "SELECT state ~ '^stopped' FROM onerepl_status()") eq 't' };
	ok(OneReplTest::wait_for(sub { $with->($pair->node_a) && $with->($clone) }, 15), 'clone: both remotes hear of it');
	like($pair->b("SELECT string_agg(DISTINCT v, ',' ORDER BY v) FROM t"), qr/^base(,of A|,of the clone)?$/, 'clone: B has rows of one history only');
	$clone->stop;
	$pair->finish;
}

# --- a link is pointed at the wrong central, with the right secret
{
	my $pair  = new_pair();
	my $other = new_pair();
	$other->b("DELETE FROM onerepl.contact; SELECT onerepl_remove_remote('branch')");
	$other->node_a->stop;
	$other->b("SELECT onerepl_add_remote('branch', '$OneReplTest::secret', tables => '{*}')");
	my $content = OneReplTest::fingerprint($other->node_b, 't');
	$pair->a(sprintf "SELECT onerepl_change_link('hq', url => '%s')", $other->url);
	$pair->a("INSERT INTO t VALUES (1000, 'to whom?')");
	stopped_ok('wrong central', qr/another database/, $pair->node_a);
	# The other central cannot tell it from a recorded body that somebody sends again (P10), so it says nothing.
	is(OneReplTest::journal_count($pair->node_a, level => 'critical', rule => 'P9'), 1, 'wrong central: A\'s journal tells it');
	untouched_ok('wrong central', $other, $content);
	# Back to the right one: the histories still fit, so that nothing is lost and nothing has to be made equal.
	$pair->a(sprintf "SELECT onerepl_change_link('hq', url => '%s')", $pair->url);
	$pair->wait_identical('t', { name => 'wrong central: the right one gets all, once the url is corrected', deadline => 20 });
	$other->finish;
	$pair->finish;
}

done_testing();
