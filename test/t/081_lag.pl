# The lag is how long ago the first record that is missing got its number, on both sides alike: with delays that the test made, between
# bounds that follow from its own readings of the clock.
use strict;
use warnings;
use OneReplTest;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(sleep time);

my $pair = OneReplTest->new(schema => 'CREATE TABLE t (id int PRIMARY KEY)', track => ['t'], proxy => {});
my $rounding = 0.001;    # of lag_seconds

sub row_of { my ($node, $what) = @_; return $node->safe_psql('postgres', "SELECT $what FROM onerepl_status()"); }

# A change and two moments that its number's birth lies between.
sub change
{
	my $id = shift;
	my $m = row_of($pair->node_a, 'numbered_to');
	my $before = time;
	$pair->a("INSERT INTO t VALUES ($id)");
	OneReplTest::wait_for(sub { row_of($pair->node_a, 'numbered_to') == $m + 1 }, 30) or die 'no number';
	return ($before, time);
}

# The lag of a node lies between the ages of these two moments.
sub lag_between
{
	my ($node, $name, $earliest, $latest) = @_;
	my $asked = time;
	my ($records, $lag) = split /\|/, row_of($node, 'lag_records, lag_seconds');
	my $answered = time;
	is($records, 1, "$name: one record is missing");
	cmp_ok($lag, '>=', $asked - $latest - $rounding, "$name: not less than the time since it got its number");
	cmp_ok($lag, '<=', $answered - $earliest + $rounding, "$name: not more than the time since it was written");
	return;
}

$pair->a('INSERT INTO t VALUES (0)');
$pair->wait_identical('t');
$pair->wait_settled('before');

# --- time without changes is no lag, neither in itself nor in that of the next change
my $begun = time;
OneReplTest::wait_for(sub { time - $begun > 4 }, 10);
is(row_of($_, 'lag_records, lag_seconds'), '0|0', 'no changes, no lag: ' . $_->name) for $pair->nodes;
$pair->b("SELECT onerepl_pause('branch')");
my @made = change(1);
$pair->poll_b('SELECT lag_records = 1 FROM onerepl_status()', 'B was told of it');
lag_between($pair->node_b, 'paused, B', @made);
lag_between($pair->node_a, 'paused, A', @made);
sleep 1;
lag_between($pair->node_b, 'paused for longer, B', @made);
$pair->b("SELECT onerepl_resume('branch')");
$pair->wait_identical('t');
$pair->wait_settled('resumed');
is(row_of($pair->node_a, 'lag_records, lag_seconds'), '0|0', 'no lag any more, A');
$pair->poll_b("SELECT lag_records = 0 AND lag_seconds = 0 FROM onerepl_status()", 'nor on B');

# --- the time in which the channel was down counts on B too, as soon as B can know
$pair->tell_proxy('/down');
@made = change(2);
sleep 3;
lag_between($pair->node_a, 'no channel, A', @made);
$pair->b("SELECT onerepl_pause('branch')");
my $mended = time;
$pair->tell_proxy('/up');
$pair->poll_b('SELECT lag_records = 1 FROM onerepl_status()', 'B was told of it when the channel was back');
lag_between($pair->node_b, 'the channel is back, B', @made);
cmp_ok(row_of($pair->node_b, 'lag_seconds'), '>=', $mended - $made[1] - $rounding, 'B counts the time without a channel');
$pair->b("SELECT onerepl_resume('branch')");
$pair->wait_identical('t');

# --- the central was restored: numbers of two histories have no difference
$pair->wait_settled('before the restore');
my $copy = OneReplTest::save($pair->node_b);
$pair->a('INSERT INTO t VALUES (3)');
$pair->wait_identical('t');
$pair->wait_settled('after the backup');
OneReplTest::restore($pair->node_b, $copy);
OneReplTest::poll_ok($_, "SELECT state ~ '^stopped' AND lag_records IS NULL AND lag_seconds IS NULL FROM onerepl_status()",
	'stopped, so the lag is not known: ' . $_->name) for $pair->nodes;
$pair->finish;
done_testing();
