# Part I rule by rule: real servers, real messages, and the test as the channel between them, so that each rule's case is there
# on purpose. (What faults and chance make of the rules together is in 004_faults and in the simulation.)
use strict;
use warnings;
use Digest::SHA qw(sha256);
use OneReplChannel;
use OneReplTest;
use OneReplWire qw(remote_header uuid_bytes);
use PostgreSQL::Test::Utils;
use Test::More;

my $wait = 3;    # seconds, Tr
my $pair = OneReplTest->new(
	schema => 'CREATE TABLE t (id int PRIMARY KEY, v text)',
	links  => 0,
	conf   => "onerepl.compression = 0\nonerepl.reply_timeout = '${wait}s'\nonerepl.send_interval = '200ms'\n"
	  . "onerepl.state_query_interval = '${wait}s'");
my ($remote, $central) = map { uuid_bytes($_->safe_psql('postgres', 'SELECT id FROM onerepl.database')) } $pair->nodes;
my $channel = OneReplChannel->new(secret => $OneReplTest::secret, remote => $remote, central => $central);

# ---------------------------------------------------------------------------------------------------- the remote
$pair->a(sprintf "SELECT onerepl_add_central('hq', '%s', '%s')", $channel->url, $OneReplTest::secret);
$pair->a("SELECT onerepl_add_table('t')");

my %transfers;    # of the remote, by number, as they came
my %batches;      # the same for the batches of its history, by first number
my $written = 0;  # S_b that the test tells

# The identity of the remote's history at a number (docs/protocol/wire.md).
sub identity_at
{
	my $n = shift;
	return $remote if $n == 0;
	my ($batch) = grep { $_->[0] <= $n && $n <= $_->[1] } values %batches;
	return substr sha256($batch->[2] . $batch->[3] . pack 'Q>', $n), 0, 16;
}

# The next body of A; what it carries is kept.
sub body_of_a
{
	my $body = $channel->receive;
	for my $i (0 .. $body->{batch_count} - 1)
	{
		my @batch = unpack 'Q> Q> a16 a16', substr $body->{batches}, 48 * $i;
		$batches{ $batch[0] } = \@batch;
	}
	$transfers{ $_->{n} } = $_ for grep { $_->{kind} eq 'transfer' } @{ $body->{frames} };
	return $body;
}

# Answers a body of A; $to moves S_b.
sub answer
{
	my ($body, $frames, $to) = @_;
	$written = $to if defined $to;
	$channel->answer($body, header => OneReplChannel::central_header(written => $written, identity => identity_at($written)),
		frames => $frames // '');
	return;
}

# Answers with nothing until a body comes that $says (a pattern).
sub until_a_says
{
	my $says = shift;
	for (1 .. 200)
	{
		my $body = body_of_a();
		return $body if OneReplChannel::said($body) =~ $says;
		answer($body);
	}
	BAIL_OUT("the remote never says $says");
}

# States of all records of A, as "CSSL". The sender notes them a moment after it took an answer, so empty bodies are answered
# meanwhile.
sub states_become
{
	my ($wanted, $name) = @_;
	my $states = '';
	for (1 .. 100)
	{
		$states = $pair->a("SELECT string_agg(state, '' ORDER BY n) FROM onerepl.log");
		last if $states eq $wanted;
		answer(body_of_a());
	}
	return is($states, $wanted, $name);
}

sub told { my ($rule, $node) = @_; return OneReplTest::journal_count($node // $pair->node_a, rule => $rule); }

# --- R1b: a transfer of its own for each object in L, in order; then the records are in S
$pair->a("INSERT INTO t VALUES (1, 'one'), (2, 'two')");
my $body = until_a_says(qr/transfer/);
is(OneReplChannel::said($body), 'transfer 1, transfer 2, transfer 3', 'R1b: the description and two rows, each a message');
is($pair->a('SELECT string_agg(state, NULL ORDER BY n) FROM onerepl.log'), 'LLL', 'R1b: not S before an answer came (P16)');

# --- R3c: a confirmation of what follows F1, while F1's wait lasts, stays and is used later
answer($body, $channel->listing('confirmation', [ 2, 3 ]));
states_become('SSS', 'R1b: sent; R3c: what was confirmed behind F1 stays in S');
is(told('R3d'), 0, 'R3c: nothing is told while the wait lasts');
# --- R3a: the first one comes, and the others with it
answer(body_of_a(), $channel->listing('confirmation', [ 1, 1 ]), 3);
states_become('CCC', 'R3a: F1 is confirmed, and what R3c had kept');

# --- R3b
answer(body_of_a(), $channel->listing('confirmation', [ 2, 2 ]));
answer(body_of_a()) until told('R3b');
states_become('CCC', 'R3b: a superfluous confirmation changes nothing');

# --- R3d: F1's wait is over
$pair->a("INSERT INTO t VALUES (3, 'three'), (4, 'four')");
answer(until_a_says(qr/^transfer 4, transfer 5$/), $channel->listing('confirmation', [ 5, 5 ]));
$body = until_a_says(qr/confirmation request/);
like(OneReplChannel::said($body), qr/confirmation request 4-5$/, 'R3d: all that is in S longer than Tr is asked for');
is(told('R3d'), 1, 'R3d: the missing confirmation is in the journal');
answer($body, $channel->listing('confirmation', [ 4, 4 ]), 5);
states_become('CCCCC', 'R3d: the later confirmation was kept');

# --- R1a: no confirmation at all
$pair->a("INSERT INTO t VALUES (5, 'five'), (6, 'six')");
answer(until_a_says(qr/^transfer 6, transfer 7$/));
$body = until_a_says(qr/confirmation request/);
is(OneReplChannel::said($body), 'confirmation request 6-7', 'R1a: one request with the numbers whose wait is over');
is(told('R1a'), 1, 'R1a: the expired wait is in the journal');

# --- R3e: asked for what is in S
answer($body, $channel->listing('transfer request', [ 7, 7 ]));
$body = until_a_says(qr/transfer/);
is(OneReplChannel::said($body), 'transfer 7', 'R3e: sent again');
is(told('R3e'), 1, 'R3e: the repetition is in the journal');

# --- R3: the queue is sorted by N, whatever order it came in
answer($body, $channel->listing('confirmation', [ 7, 7 ]) . $channel->listing('confirmation', [ 6, 6 ]), 7);
states_become('CCCCCCC', 'R3: sorted by N, both are confirmed');

# --- R3f: asked for what is confirmed, and for what is not in the log
answer(body_of_a(), $channel->listing('transfer request', [ 2, 3 ]) . $channel->listing('transfer request', [ 90, 95 ]));
$body = body_of_a();
is(OneReplChannel::said($body), '', 'R3f: nothing is sent');
answer($body);
is(told('R3f'), 1, 'R3f: told');

# --- R2: a state request alone, with nothing to send
answer(body_of_a(), $channel->message('state request', n => 7));
$body = until_a_says(qr/remote state/);
is(OneReplChannel::said($body), 'remote state 7', 'R2: a remote state, which repeats S_b (P2)');
is("$body->{confirmed} $body->{last} $body->{sent}", '7 7 7', 'P2: with S_a, M_a and the last number sent');
answer($body);

# --- R3: beside other messages a state request is dropped
answer(body_of_a(), $channel->message('state request', n => 7) . $channel->listing('confirmation', [ 1, 1 ]));
for (1 .. 3)
{
	$body = body_of_a();
	unlike(OneReplChannel::said($body), qr/remote state/, 'R3: no remote state');
	answer($body);
}

# --- states B and L: forming stops at a blocked record, and the others wait behind it
$pair->a("BEGIN; INSERT INTO t VALUES (7, 'seven'); SELECT onerepl_block('hq', 8); COMMIT");
$pair->a("INSERT INTO t VALUES (8, 'eight')");
$body = until_a_says(qr/^$/);
answer($body) and $body = body_of_a() until $body->{blocked_at} == 8;
answer($body);
states_become('CCCCCCCBL', 'B: the blocked record, and L behind it');
answer(body_of_a()) until told('R1b');
pass('R1b: the administrator is told');
$pair->a("SELECT onerepl_unblock('hq', 8)");
$body = until_a_says(qr/transfer 9/);
answer($body, $channel->listing('confirmation', [ 8, 9 ]), 9);
states_become('CCCCCCCCC', 'L, S, C after it');
is($pair->a("SELECT string_agg(state, '') FROM onerepl_object_state('t', '8')"), 'C', 'an object is in the state of its newest record');
is($pair->a("SELECT string_agg(state, '') FROM onerepl_object_state('t', '99')"), 'I', 'and in I without one');
$pair->node_a->stop('fast');

# ---------------------------------------------------------------------------------------------------- the central
my $address = "127.0.0.1:$pair->{listen}";
$pair->b("SELECT onerepl_add_remote('branch', '$OneReplTest::secret', tables => '{*}')");
OneReplTest::wait_for(sub { IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $pair->{listen}) }, 20);
my %position = (start_identity => $remote, last => 0, sent => 0, confirmed => 0);

# Sends B the transfers of these numbers as A had made them, and other messages.
sub to_b
{
	my ($numbers, $frames, %changes) = @_;
	@position{ keys %changes } = values %changes;
	my @batches = map { $batches{$_} } sort { $a <=> $b } keys %batches;
	@batches = grep { my $batch = $_; grep { $batch->[0] <= $_ && $_ <= $batch->[1] } @$numbers } @batches;
	return $channel->ask($address,
		header => remote_header(%position, batch_count => scalar @batches,
			batches => join('', map { pack 'Q> Q> a16 a16', @$_ } @batches)),
		frames => join('', map { with_central($transfers{$_}{raw}) } @$numbers) . ($frames // ''));
}

# The first transfers did not know the central yet; here they go in this channel's name like the others.
sub with_central
{
	my $raw = shift;
	my ($flags, $n, $part, $parts) = unpack 'x6 n x48 Q> N N', $raw;
	return $channel->message('transfer', flags => $flags, n => $n, part => $part, parts => $parts, data => substr $raw, 76);
}

sub said_to { return OneReplChannel::said(to_b(@_)); }
sub rows { return $pair->b("SELECT string_agg(id || v, ' ' ORDER BY id) FROM t"); }

to_b([]);    # B takes its start from a body that answers it (P10)
to_b([]);

# --- C2c: a gap before what has come
is(said_to([ 4, 5 ], '', last => 9), 'transfer request 1-3', 'C2c: the missing numbers are asked for');
is($pair->b('SELECT string_agg(first || \'-\' || last, \',\') FROM onerepl.queue'), '4-5', 'C2c: what has come stays in the queue');
is(said_to([5]), '', 'P16: the request is not repeated before Tr');
my $again;
OneReplTest::wait_for(sub { $again = said_to([]); return $again ne '' }, 30);
is($again, 'transfer request 1-3', 'P16: but after it');
is(told('C2c', $pair->node_b), 1, 'C2c: one journal line for the gap');

# --- C2a: the expected number, and then the queue
my $answer = to_b([ 1, 2, 3 ]);
is(OneReplChannel::said($answer), 'confirmation 1-5', 'C2a: written, with what waited; confirmed');
is($answer->{written}, 5, 'C2a: S_b has grown');
is(rows(), '1one 2two 3three 4four', 'C2a: the rows are there');
is($pair->b("SELECT string_agg(state, '' ORDER BY n) FROM onerepl.log"), 'RRRRR', 'C2a: R');

# --- C2b
is(said_to([ 2, 3 ]), 'confirmation 1-5', 'C2b: dropped; P16: and confirmed again');
is(rows(), '1one 2two 3three 4four', 'C2b: nothing has changed');

# --- C4, P3
is(said_to([], $channel->listing('confirmation request', [ 1, 7 ])), 'confirmation 1-5, transfer request 6-7',
	'C4: confirmed as far as written, asked for the rest');

# --- C1: silence
my $asked;
OneReplTest::wait_for(sub { $asked = said_to([]); return $asked =~ /state request/ }, 30);
is($asked, 'state request 5', 'C1c: after Ts without a message A is asked for its state');
is(said_to([]), '', 'C1a: and then waited for');
OneReplTest::wait_for(sub { $asked = said_to([]); return $asked =~ /state request/ }, 30);
is($asked, 'state request 5', 'C1b: the request is repeated when its wait is over');
is(told('C1b', $pair->node_b), 1, 'C1b: the administrator is told');

# --- C3, P2 (the request for 6-7 was made longer than Tr ago)
is(said_to([], $channel->message('remote state', n => 5), last => 7, sent => 7, confirmed => 5), 'transfer request 6-7',
	'C3: A has sent what is missing: asked for');
is(said_to([], $channel->message('remote state', n => 5), last => 5, sent => 5, confirmed => 3), 'confirmation 4-5',
	'C3: S_a < S_b <= M_a: a confirmation was lost, and is given again');
# (The status is brought up to date at most once a second.)
ok(OneReplTest::wait_for(sub { to_b([]); return $pair->b('SELECT state FROM onerepl_status()') eq 'in step' }, 30),
	'C3: M_a = S_b: B knows that it is identical');

# --- F
$pair->b("SET onerepl.allow_writes = on; INSERT INTO t VALUES (6, 'in the way')");
$answer = to_b([ 6, 7, 8 ], $channel->listing('confirmation request', [ 1, 2 ]), last => 9, sent => 8);
is("$answer->{flow} $answer->{failed_at} $answer->{written}", '1 7 5', 'C2a: F at 7; its transaction is not written');
is(OneReplChannel::said($answer), 'confirmation 1-2', 'P16: other kinds are answered at once');
is(OneReplChannel::said(to_b([9])), '', 'C2a: nothing behind F is processed');
is($pair->b("SELECT string_agg(state, '') FROM onerepl_object_state('t', '6')"), 'F', 'the object is in F');
is(OneReplTest::journal_count($pair->node_b, rule => 'C2a', level => 'critical'), 1, 'C2a: the administrator is told');
$pair->b("SELECT onerepl_resolve('branch', 7, 'overwrite')");
OneReplTest::wait_for(sub { to_b([])->{written} == 9 }, 30);
is(rows(), '1one 2two 3three 4four 5five 6six 7seven 8eight', 'F to R: all is written');
is($pair->b("SELECT string_agg(state, '') FROM onerepl_object_state('t', '6')"), 'R', 'the object is in R');

# --- P12: no contact at all
ok(OneReplTest::wait_for(sub { told('P12', $pair->node_b) }, 30), 'P12: no contact for Tr is told');

$pair->node_b->stop('fast');
done_testing();
