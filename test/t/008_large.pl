# A transaction of 2,000,000 rows and a row of 100 MB arrive whole; no worker needs much memory, however large the backlog.
use strict;
use warnings;
use IPC::Run;
use OneReplTest;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(sleep time);

my $rows = $ENV{ONEREPL_ROWS} // 2_000_000;
my $pair = OneReplTest->new(track => ['big', 'wide'], conf => "log_min_messages = warning\nmax_wal_size = '4GB'", schema => <<'SQL');
CREATE TABLE big (id int PRIMARY KEY, v text, n int);
CREATE TABLE wide (id int PRIMARY KEY, v text, raw bytea);
ALTER TABLE wide ALTER v SET STORAGE EXTERNAL;
SQL

# Watches the workers' own memory until $done; gives the largest seen of each kind, in MB.
sub watch_memory
{
	my ($done, $deadline) = @_;
	my %peak = (sender => 0, receiver => 0);
	my $end = time + $deadline;
	my $good = 0;
	until ($good || time > $end)
	{
		for my $kind (keys %peak)
		{
			my $node = $kind eq 'sender' ? $pair->node_a : $pair->node_b;
			for my $pid (OneReplTest::workers($node, $kind))
			{
				my $memory = OneReplTest::anonymous_memory($pid);
				$peak{$kind} = $memory if $memory > $peak{$kind};
			}
		}
		$good = $done->();
		sleep 0.1;
	}
	return ($good, %peak);
}

# B has all of A: looked at by the numbers, which costs little.
sub caught_up
{
	my $m = $pair->a('SELECT max(last) FROM onerepl.batch');
	my ($status, $s) = $pair->node_b->psql('postgres', 'SELECT written_to FROM onerepl_status()');
	return $status == 0 && $m ne '' && $s ne '' && $s >= $m;
}

sub small_ok
{
	my ($name, $limit, %peak) = @_;
	cmp_ok($peak{$_}, '<', $limit, sprintf '%s: the %s had %.0f MB at most', $name, $_, $peak{$_}) for sort keys %peak;
	return;
}

# --- one transaction of many rows
my $begin = time;
$pair->a("INSERT INTO big SELECT n, 'row ' || n, 0 FROM generate_series(1, $rows) AS n");
note sprintf 'written on A in %.1f s', time - $begin;
my $m = $pair->a('SELECT coalesce(max(last), 0) FROM onerepl.batch');
my ($seen_part, $good, %peak) = 0;
($good, %peak) = watch_memory(
	sub {
		my $count = $pair->b('SELECT count(*) FROM (SELECT FROM big LIMIT 1) AS one');
		$seen_part = 1 if $count && $pair->b("SELECT written_to FROM onerepl_status()") < $rows;
		return $pair->a("SELECT coalesce(max(last), 0) FROM onerepl.batch") >= $rows && caught_up();
	},
	240);
ok($good, sprintf 'a transaction of %d rows is on B after %.1f s', $rows, time - $begin);
ok(!$seen_part, 'never a part of it');
small_ok('many rows', 256, %peak);
$pair->wait_identical('big', { name => 'its rows are the same', deadline => 60 });

# --- an interrupted one: B crashes in the middle and needs not get all again
$pair->a('UPDATE big SET n = 1 WHERE id <= 300000');
$pair->poll_b('SELECT count(*) > 0 FROM onerepl.waiting', 'a part of the next one waits on B', deadline => 30);
OneReplTest::crash($pair->node_b);
($good, %peak) = watch_memory(\&caught_up, 120);
ok($good, 'a large transaction survives a crash of B');
small_ok('after a crash', 256, %peak);
$pair->wait_identical('big', { name => 'and is whole', deadline => 60 });

# --- a backlog of many transactions while B is away
$pair->node_b->stop;
my $load = OneReplTest::start_pgbench($pair->node_a, '-c', 4, '-t', 2500, '-f', write_script('INSERT INTO wide VALUES ((random() * 2e9)::int, repeat(\'x\', 2000)) ON CONFLICT DO NOTHING;'));
IPC::Run::finish($load);
$pair->node_b->start;
($good, %peak) = watch_memory(\&caught_up, 120);
ok($good, 'a backlog of 10000 transactions arrives');
small_ok('backlog', 256, %peak);

# --- one very large row, in parts
$pair->a("INSERT INTO wide VALUES (-1, repeat('0123456789', 10000000), NULL)");
($good, %peak) = watch_memory(sub { $pair->b('SELECT length(v) FROM wide WHERE id = -1') eq '100000000' }, 120);
ok($good, 'a row of 100 MB arrives');
small_ok('a row of 100 MB', 1024, %peak);
$pair->a("UPDATE wide SET raw = '\\x01' WHERE id = -1");
$pair->poll_b("SELECT raw = '\\x01' AND length(v) = 100000000 FROM wide WHERE id = -1", 'a change that leaves its large value alone', deadline => 60);
is($pair->b('SELECT md5(v) FROM wide WHERE id = -1'), $pair->a('SELECT md5(v) FROM wide WHERE id = -1'), 'the value is the same');

# --- afterwards the workers are small again
sleep 1;
is($pair->b('SELECT count(*) FROM onerepl.queue'), '0', 'nothing waits on B');
is($pair->b('SELECT count(*) FROM onerepl.failed'), '0', 'nothing failed');
my %now = (sender => (OneReplTest::workers($pair->node_a, 'sender'))[0], receiver => (OneReplTest::workers($pair->node_b, 'receiver'))[0]);
cmp_ok(OneReplTest::anonymous_memory($now{$_}), '<', 256, "the $_ has given the memory back") for sort keys %now;

sub write_script
{
	my $text = shift;
	my $name = PostgreSQL::Test::Utils::tempdir() . '/script.sql';
	append_to_file($name, "$text\n");
	return $name;
}

$pair->finish;
done_testing();
