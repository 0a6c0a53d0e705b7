# P22 between two peers: an exchange that hangs keeps nothing else back, and who asks all the time makes the other one work now and then.
use strict;
use warnings;
use OneReplChannel;
use OneReplTest;
use OneReplWire qw(uuid_bytes);
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(sleep time);

my $pair = OneReplTest->new(
	conf   => "onerepl.compression = 0",
	proxy  => {},
	track  => ['t'],
	schema => 'CREATE TABLE t (id int PRIMARY KEY, v text)');
$pair->a("INSERT INTO t VALUES (0, 'first')");
$pair->wait_identical('t');
$pair->wait_settled('before');

# --- no answer comes, and the connection stays
$pair->tell_proxy('/set?slow=1&delay=500:500');
$pair->a("INSERT INTO t VALUES (1, 'in a body that hangs')");
$pair->poll_a("SELECT last_contact < clock_timestamp() - interval '2 s' FROM onerepl_status()", 'an exchange hangs');
$pair->tell_proxy('/set?slow=0');
my $begin = $pair->a('SELECT clock_timestamp()');
OneReplTest::poll_ok($_, "SELECT last_contact > '$begin' FROM onerepl_status()", 'contact goes on, on ' . $_->name, deadline => 20) for $pair->nodes;
$pair->wait_identical('t', { name => 'what the body carried comes another way', deadline => 20 });
$pair->wait_settled('while it hangs', 20);

# --- half an answer comes, and the connection stays
$pair->tell_proxy('/set?half=1&delay=500:500');
$pair->a("INSERT INTO t VALUES (2, 'half of its answer came')");
$pair->poll_b('SELECT count(*) = 1 FROM t WHERE id = 2', 'the body itself arrives');
$pair->poll_a("SELECT last_contact < clock_timestamp() - interval '2 s' FROM onerepl_status()", 'no answer is whole');
$begin = $pair->b('SELECT clock_timestamp()');
$pair->poll_b("SELECT last_contact > '$begin' FROM onerepl_status()", 'A speaks all the same', deadline => 20);
$pair->poll_a("SELECT state = 'waiting for an answer' FROM onerepl_status()", 'and says what it waits for', deadline => 20);
$pair->tell_proxy('/set?half=0');
$pair->a("INSERT INTO t VALUES (3, 'behind it')");
$pair->wait_identical('t', { name => 'all goes on beside the half answers', deadline => 20 });
$pair->wait_settled('half an answer', 20);
$pair->stop_proxy;

# --- a central that asks again and again
my ($remote) = map { uuid_bytes($_->safe_psql('postgres', 'SELECT id FROM onerepl.database')) } $pair->node_a;
my $central = join '', map { chr rand 256 } 1 .. 16;
my $secret = 'another secret of the tests, as long';
my $channel = OneReplChannel->new(secret => $secret, remote => $remote, central => $central);
$pair->a("SELECT onerepl_remove_central('hq')");
$pair->a(sprintf "SELECT onerepl_add_central('greedy', '%s', '%s')", $channel->url, $secret);
my $first = $pair->a("SELECT start + 1 FROM onerepl.link WHERE name = 'greedy'");
$pair->a("INSERT INTO t SELECT n, 'asked for' FROM generate_series(101, 150) AS n");
my $last = $first + 49;
my ($bodies, $transfers, $states, %header) = (0, 0, 0);
# For ten reply timeouts: all of it, one by one, or the state, in each answer.
my $end = time + 10;
my $identity;
while (time < $end)
{
	my $body = $channel->receive;
	$identity //= $body->{start_identity};
	$bodies++;
	$transfers += grep { $_->{kind} eq 'transfer' } @{ $body->{frames} };
	$states    += grep { $_->{kind} eq 'remote state' } @{ $body->{frames} };
	my $frames = $bodies % 2
	  ? $channel->listing('transfer request', map { [ $_, $_ ] } $first .. $last)
	  : $channel->message('state request', n => $first - 1);
	$channel->answer($body, header => OneReplChannel::central_header(written => $first - 1, identity => $identity), frames => $frames);
}
note "$bodies bodies, $transfers transfers, $states states";
cmp_ok($transfers, '>=', 100, 'it gets what it asks for');
cmp_ok($transfers, '<=', 50 * 13, 'but each record about once in Tr');
cmp_ok($states, '<=', 10 * 15, 'and the state as often as a knock would go');
cmp_ok(OneReplTest::journal_count($pair->node_a), '<', 200, 'the journal is not filled by it');

$pair->finish;
done_testing();
