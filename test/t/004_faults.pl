# A channel with every fault and kill -9 of everything, in a loop under load; when the faults stop, A and B are identical.
use strict;
use warnings;
use IPC::Run;
use OneReplTest;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(sleep);

my @tables = qw(pgbench_accounts pgbench_branches pgbench_tellers pgbench_history);
my $rounds = $ENV{ONEREPL_ROUNDS} // 2;
my $pair = OneReplTest->new(
	links => 0,
	proxy => {
		seed => $ENV{ONEREPL_SEED} // $$,
		loss => 0.05, repeat => 0.05, replay => 0.05, slow => 0.3, delay => '0.02:0.6', reorder => 0.05,
		damage => 0.05, cut => 0.03, strange => 0.05, down => 0.005, outage => '0.3:1.5'
	});
$pair->node_a->command_ok([ 'pgbench', '-i', '-q', '-s', 1, '-h', $pair->node_a->host, '-p', $pair->node_a->port, 'postgres' ], 'pgbench -i');
$pair->a('ALTER TABLE pgbench_history ADD id bigserial PRIMARY KEY');
my $dump = PostgreSQL::Test::Utils::tempdir() . '/copy.sql';
$pair->node_a->command_ok([ 'pg_dump', '-h', $pair->node_a->host, '-p', $pair->node_a->port, '-T', 'onerepl.*', '-f', $dump, '-t', 'pgbench_*', 'postgres' ], 'pg_dump');
$pair->node_b->command_ok([ 'psql', '-Xq', '-h', $pair->node_b->host, '-p', $pair->node_b->port, '-f', $dump, 'postgres' ], 'copy');
$pair->link;
is($pair->a("SELECT onerepl_add_schema('public')"), '4', 'four tables by one call');

# What can be killed. Each leaves both servers running again.
my %victims = (
	'the sender'   => sub { OneReplTest::kill_worker($pair->node_a, 'sender') && sleep(0.5) && OneReplTest::wait_up($pair->node_a) },
	'a receiver'   => sub { OneReplTest::kill_worker($pair->node_b, 'receiver') && sleep(0.5) && OneReplTest::wait_up($pair->node_b) },
	'a backend in commit' => sub { kill_committing() && sleep(0.5) && OneReplTest::wait_up($pair->node_a) },
	'server A'     => sub { OneReplTest::crash($pair->node_a); 1 },
	'server B'     => sub { OneReplTest::crash($pair->node_b); 1 },
	'the launcher of B' => sub { OneReplTest::kill_worker($pair->node_b, 'launcher') && sleep(0.5) && OneReplTest::wait_up($pair->node_b) },
);

# kill -9 of a client's backend that is committing, if one can be caught; else of any of them.
sub kill_committing
{
	for my $try (1 .. 20)
	{
		my ($status, $out) = $pair->node_a->psql('postgres', <<'SQL');
SELECT pid FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()
 ORDER BY (query ~* '^(end|commit)' AND state = 'active') DESC, random() LIMIT 1
SQL
		return kill 'KILL', $out if $status == 0 && $out;
		sleep 0.1;
	}
	return 0;
}

for my $round (1 .. $rounds)
{
	for my $victim (sort keys %victims)
	{
		my $load = OneReplTest::start_pgbench($pair->node_a, '-c', 4, '-T', 3);
		sleep 0.5 + rand 1.5;
		ok($victims{$victim}->(), "round $round: kill -9 of $victim");
		IPC::Run::finish($load);    # fails when its server went away
		OneReplTest::wait_up($_) for $pair->nodes;
	}
}
note $pair->tell_proxy('/stats');

# Still under faults, but without further load and kills, all arrives.
$pair->wait_identical(@tables, { name => 'identical in spite of the faults', deadline => 90 });
$pair->calm_proxy;
$pair->a('DELETE FROM pgbench_history WHERE id % 10 = 0');
$pair->wait_identical(@tables, { name => 'identical without faults', deadline => 40 });
$pair->wait_settled('in the end', 20);
is($pair->a('SELECT numbered_to FROM onerepl_status()'), $pair->b('SELECT written_to FROM onerepl_status()'), 'M_a = S_b');
is($pair->a('SELECT sum(last - first + 1) = max(last) FROM onerepl.batch'), 't', 'no gap in the numbers');
for my $node ($pair->nodes)
{
	is($node->safe_psql('postgres', "SELECT string_agg(message, '; ') FROM onerepl.journal WHERE level = 'critical'"),
		'', 'nothing critical on ' . $node->name);
}
is($pair->b('SELECT count(*) FROM onerepl.failed'), '0', 'no F');
is($pair->b('SELECT count(*) FROM onerepl.queue'), '0', 'nothing waits');

$pair->finish;
done_testing();
