# P15: B tells how much more it takes, and A keeps to it; but the next transaction is always taken, however large.
use strict;
use warnings;
use OneReplTest;
use PostgreSQL::Test::Utils;
use Test::More;

my $pair = OneReplTest->new(
	track => ['t'],
	proxy => { seed => 16 },
	conf  => "onerepl.max_in_flight = 8\nonerepl.batch_bytes = '64kB'\nonerepl.send_interval = '200ms'",
	conf_b => "onerepl.queue_limit = '1MB'",
	schema => 'CREATE TABLE t (id int PRIMARY KEY, v text)');
my $limit = 1 << 20;
my $rows  = "SELECT n, repeat(md5(n::text), 30) FROM generate_series";    # about 1 kB each

sub on_b { my $sql = shift; return $pair->b("SET onerepl.allow_writes = on; $sql"); }
sub waiting { return $pair->b('SELECT coalesce(sum(size), 0) FROM onerepl.queue'); }

# 3 MB in transactions of 20 kB.
sub load
{
	my $first = shift;
	$pair->a(join "\n", map { "INSERT INTO t $rows(" . ($first + 20 * $_) . ", " . ($first + 20 * $_ + 19) . ") AS n;" } 0 .. 149);
	return;
}

# --- behind F
$pair->a("INSERT INTO t VALUES (0, 'first')");
$pair->wait_identical('t');
on_b("INSERT INTO t VALUES (1, 'in the way')");
load(1);
$pair->poll_a("SELECT state = 'the central has a failed record' FROM onerepl_status()", 'A knows of the failure');
cmp_ok(waiting(), '<=', $limit, 'B holds no more than onerepl.queue_limit');
cmp_ok($pair->a('SELECT numbered_to FROM onerepl_status()') - $pair->a('SELECT onerepl.sent_to(id) FROM onerepl.link'), '>', 1000,
	'A keeps the rest, unsent');
# The transaction in F is the next one: all of it has to be there, or nobody could resolve it.
my ($first, $last) = split /\|/, $pair->b('SELECT transaction_first, transaction_last FROM onerepl.failed LIMIT 1');
is($last - $first + 1, 20, 'the failed transaction is there as a whole');
on_b('DELETE FROM t WHERE id = 1');
$pair->b("SELECT onerepl_resolve('branch', n, 'retry') FROM onerepl.failed");
$pair->wait_identical('t', { name => 'the rest comes once the failure is resolved', deadline => 60 });
is(waiting(), 0, 'the queue is empty');

# --- paused: nothing at all is sent, and nothing is lost
$pair->b("SELECT onerepl_pause('branch')");
load(10001);
$pair->poll_a("SELECT state = 'the central is paused' FROM onerepl_status()", 'A knows that B is paused');
is($pair->b('SELECT count(*) FROM t WHERE id > 10000'), 0, 'B writes nothing while paused');
cmp_ok(waiting(), '<=', $limit, 'and holds no more than its limit');
$pair->b("SELECT onerepl_resume('branch')");
$pair->wait_identical('t', { name => 'all comes when it is resumed', deadline => 60 });

# --- a transaction larger than the queue, over a channel that reorders and loses: what is behind it gives way
$pair->tell_proxy('/set?reorder=0.3&loss=0.15&slow=0.3&delay=0.01:0.1');
$pair->a("INSERT INTO t $rows(20001, 22000) AS n");
load(30001);
$pair->a("UPDATE t SET v = v || 'x' WHERE id BETWEEN 20001 AND 22000");
$pair->wait_identical('t', { name => 'transactions of 2 MB through a queue of 1 MB, with faults', deadline => 120 });
$pair->calm_proxy;
$pair->wait_settled('in the end', 30);
is(waiting(), 0, 'the queue is empty');
is($pair->b("SELECT count(*) FROM onerepl.failed"), 0, 'nothing has failed');

$pair->finish;
done_testing();
