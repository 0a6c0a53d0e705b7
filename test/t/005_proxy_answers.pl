# Strange answers of a proxy are transport errors: nothing is taken for confirmed, the link goes on when they end, and the
# journal has one line per change of state. Replayed and stale bodies change nothing.
use strict;
use warnings;
use OneReplTest;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(sleep);

my $pair = OneReplTest->new(proxy => { delay => '0:0.01' }, track => ['t'], schema => 'CREATE TABLE t (id int PRIMARY KEY, v text)');
$pair->a("INSERT INTO t SELECT n FROM generate_series(1, 100) AS n");
$pair->wait_identical('t', { name => 'a quiet proxy' });

my $id = 1000;
for my $kind (qw(html empty cached garbage truncated 302 401 407 413 429 502 504))
{
	my $before = OneReplTest::journal_count($pair->node_a);
	$pair->tell_proxy("/set?strange=1&only=$kind");
	$pair->a('INSERT INTO t VALUES (' . $id++ . ", 'under $kind')");
	sleep 1.2;
	my $confirmed = $pair->a('SELECT written_to FROM onerepl_status()');
	cmp_ok($confirmed, '<=', $pair->b('SELECT written_to FROM onerepl_status()'), "$kind: nothing is confirmed that B does not have");
	isnt($pair->a('SELECT last_error FROM onerepl_status()'), '', "$kind: the status tells the error");
	note $pair->a('SELECT last_error FROM onerepl_status()');
	$pair->calm_proxy;
	$pair->wait_identical('t', { name => "$kind: the link goes on when it ends", deadline => 15 });
	$pair->poll_a("SELECT last_error IS NULL AND written_to = numbered_to FROM onerepl_status()", "$kind: and the status is good", deadline => 15);
	cmp_ok(OneReplTest::journal_count($pair->node_a) - $before, '<=', 5, "$kind: few journal entries");
}

# --- old requests again
my $written = $pair->b('SELECT written_to FROM onerepl_status()');
my $content = OneReplTest::fingerprint($pair->node_b, 't');
$pair->a("DELETE FROM t WHERE id <= 10; INSERT INTO t SELECT n, 'again' FROM generate_series(1, 10) AS n; UPDATE t SET v = 'x' WHERE id = 1");
$pair->wait_identical('t');
$pair->tell_proxy('/replay?count=60');
sleep 2;
$pair->wait_identical('t', { name => 'sixty old requests again change nothing', deadline => 5 });
is($pair->b('SELECT written_to FROM onerepl_status()'), $pair->a('SELECT numbered_to FROM onerepl_status()'), 'S_b is where it was');

# --- a central that is away, and comes back
$pair->tell_proxy('/down?seconds=600');
my $before = OneReplTest::journal_count($pair->node_a);
$pair->a("INSERT INTO t SELECT n, 'while it was away' FROM generate_series(5000, 6000) AS n");
sleep 6;
cmp_ok(OneReplTest::journal_count($pair->node_a) - $before, '<=', 4, 'no entry per try');
$pair->poll_a("SELECT state = 'no contact' FROM onerepl_status()", 'A tells that there is no contact', deadline => 15);
$pair->poll_b("SELECT state = 'no contact' FROM onerepl_status()", 'B too', deadline => 15);
cmp_ok(OneReplTest::journal_count($pair->node_b, level => 'warning'), '>=', 1, 'and its journal (P12)');
$pair->tell_proxy('/up');
$pair->wait_identical('t', { name => 'all arrives when it is back', deadline => 30 });
is($_->safe_psql('postgres', "SELECT count(*) FROM onerepl.journal WHERE level = 'critical'"), '0', 'nothing critical on ' . $_->name) for $pair->nodes;

$pair->finish;
done_testing();
