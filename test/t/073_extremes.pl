# Every numeric field of every message at its extremes: whatever a peer says, both administrators can ask for everything after it.
use strict;
use warnings;
use OneReplChannel;
use OneReplRemote;
use OneReplTest;
use OneReplWire qw(body post remote_header uuid_bytes);
use PostgreSQL::Test::Utils;
use Test::More;

my $secret = $OneReplTest::secret;
my $port = PostgreSQL::Test::Cluster::get_free_port();
my $b = OneReplTest::start_node('b', 0, "onerepl.listen = '127.0.0.1:$port'");
my $a = OneReplTest::start_node('a', 0, 'onerepl.compression = 0');
$_->safe_psql('postgres', 'CREATE TABLE t (id int PRIMARY KEY, v text); CREATE SEQUENCE s; CREATE EXTENSION onerepl') for $a, $b;
$b->safe_psql('postgres', "SELECT onerepl_add_remote('branch', '$secret', tables => '{public.*}')");

my @extremes = (0, 1, (1 << 31) - 1, (1 << 31), (1 << 32) - 1, (1 << 52), (1 << 62) - 1, (1 << 62), ~0 >> 1, (~0 >> 1) + 1, ~0);
my @small = (0, 1, (1 << 31) - 1, (1 << 31), (1 << 32) - 2, (1 << 32) - 1);
my @asked = ('onerepl_status()', 'onerepl.queue', 'onerepl.failed', 'onerepl.log', 'onerepl.journal', 'onerepl.refresh_progress',
	'onerepl.differences', 'onerepl.problems', "onerepl_object_state('t', '1')");
my $everything = join ' UNION ALL ', map { "SELECT x::text FROM $_ AS x" } @asked;

my @troubled;
sub all_can_be_asked
{
	my ($node, $what) = @_;
	my ($status, undef, $error) = $node->psql('postgres', "SELECT count(*) FROM ($everything) AS e");
	push @troubled, "$what: $error" if $status;
	return;
}
sub none_was_troubled
{
	my $name = shift;
	is(join("\n", @troubled), '', $name);
	@troubled = ();
	return;
}

# --- a remote that says it to B
my $remote;
sub restart_at_b
{
	$b->safe_psql('postgres', "SELECT onerepl_restart_link('branch')");
	$remote = OneReplRemote->new(node => $b, listen => $port, link => 'branch', secret => $secret);
	return;
}
# The same, and the next body of the remote is the first that B takes: it says where the link starts.
sub before_the_start
{
	restart_at_b();
	$b->safe_psql('postgres', "SELECT onerepl_restart_link('branch')");
	$remote->{channel}->ask_once("127.0.0.1:$port", header => header_of());
	return;
}
# Posts a body whatever B says to it.
sub say_to_b
{
	my ($what, %body) = @_;
	my $status;
	for (1 .. 3)    # what answers no answer of this start is not taken, and goes again
	{
		my $answer = OneReplTest::http("127.0.0.1:$port", post(body(remote => $remote->{id}, central => $remote->{channel}{central},
			secret => $secret, reply_to => $remote->{channel}{last_nonce}, %body)));
		$status = OneReplTest::status_of($answer);
		push @troubled, "$what: HTTP $status" unless $status == 200 || $status == 400;
		last unless $status == 200;
		my $said = OneReplChannel::parse(substr $answer, index($answer, "\r\n\r\n") + 4);
		$remote->{channel}{last_nonce} = $said->{nonce};
		last if $said->{flags} & 2 || $said->{stop};
	}
	all_can_be_asked($b, $what);
	return $status;
}
sub header_of
{
	my (%h) = @_;
	return remote_header(start_identity => $remote->{id}, last => $remote->{last}, sent => $remote->{last}, %h);
}

restart_at_b();
for my $field (qw(heard start confirmed last sent blocked_at oldest age))
{
	for my $value (@extremes)
	{
		$field eq 'start' ? before_the_start() : restart_at_b();
		say_to_b("header, $field = $value", header => header_of(last => (1 << 62) - 1, $field => $value, ($field eq 'start' ? (confirmed => $value) : ())));
	}
}
none_was_troubled('a remote\'s header');

# The largest numbers of all, with a record that fails, one that waits, and a part of one.
before_the_start();
my $top = (1 << 62) - 1;
my $batch = pack 'Q> Q> a16 a16', $top - 9, $top, 'before', 'random';
my %header = (start => $top - 10, confirmed => $top - 10, last => $top, sent => $top, batch_count => 1, batches => $batch);
is(say_to_b('start at the end of the numbers', header => remote_header(%header, start_identity => 'before')), 200, 'a start at the end of the numbers is taken');
for my $n ($top - 9, $top - 2, $top - 1, $top, $top + 1, ~0)
{
	my $frame = $remote->{channel}->message('transfer', n => $n, flags => 1, data => $n == $top - 9 ? 'unreadable' : pack 'a C', 'S', 0);
	say_to_b("transfer $n", header => remote_header(%header, start_identity => 'before'), frames => $frame);
}
for my $parts (@small)
{
	for my $part (@small)
	{
		my $frame = $remote->{channel}->message('transfer', n => $top - 5, part => $part, parts => $parts, flags => 1, data => 'x');
		say_to_b("part $part of $parts", header => remote_header(%header, start_identity => 'before'), frames => $frame);
	}
}
cmp_ok($b->safe_psql('postgres', 'SELECT count(*) FROM onerepl.waiting'), '>', 0, 'something waits');
is($b->safe_psql('postgres', 'SELECT count(*) FROM onerepl.failed'), 1, 'something has failed');
for my $first (@extremes)
{
	for my $last (@extremes)
	{
		my $data = pack 'N Q> Q>', 1, $first, $last;
		say_to_b("confirmation request $first-$last", header => remote_header(%header, start_identity => 'before'),
			frames => $remote->{channel}->message('confirmation request', n => $first, data => $data));
	}
	say_to_b("remote state $first", header => remote_header(%header, start_identity => 'before'),
		frames => $remote->{channel}->message('remote state', n => $first));
}
$b->safe_psql('postgres', "SELECT onerepl_resolve_all('branch', 'skip')");
say_to_b('after a skip', header => remote_header(%header, start_identity => 'before'));
none_was_troubled('messages of a remote');

# What is within a record: a description's columns, a refresh, counts of rows, a sequence.
restart_at_b();
my $t = $remote->description('public', 't', [ 'id', 'int4', 1 ], [ 'v', 'text' ]);
$remote->send($remote->describe($t));
my @records;
for my $value (@extremes)
{
	# Smaller ones are asked for: below.
	push @records, pack('a C Q>', 'I', 0, $value) . OneReplRemote::values_of(1, 'x') if $value > (1 << 62) - 1;
	push @records, pack('a C Q> Q>', 'R', 0, $value, $value),
	  pack('a C Q>', 'C', 1, $t) . pack('Q> n/a* n n N', $value, 'n', 0, 0, 0),
	  pack('a C Q>', 'C', 4 | 32, $t) . pack('Q> n/a* n n N', $value, 'n', 0, 0, 1) . OneReplRemote::values_of($value, $value),
	  $remote->sequences([ 'public', 's', $value > ~0 >> 1 ? -1 : $value ]);
}
for my $value (@small)
{
	push @records, pack('a C Q>', 'C', 2, $t) . pack('Q> n/a* n n N', 1, 'n', 0, 0, $value) . OneReplRemote::values_of(1, 'x'),
	  pack('a C Q>', 'Q', 0, 0) . OneReplRemote::counted('UTF8') . pack('N', $value);
}
push @records, pack('a C Q>', 'C', 4 | 32, $t) . pack('Q> n/a* n n N', 1, 'n', 0, 0, 1) . OneReplRemote::values_of($_, 1) for '', '-1', '1e9', '9' x 40;
for my $record (@records)
{
	my $what = 'record ' . unpack 'H*', $record;
	$remote->send($record);
	all_can_be_asked($b, $what);
	next if $remote->outcome eq 'written';
	push @troubled, "$what: no skip" unless $remote->skip;
	all_can_be_asked($b, "$what skipped");
}
none_was_troubled('what is in records');

# --- descriptions that are not told, and names without end
for my $case ([ 'not at all', '' ], [ 'in a way that cannot be read', $remote->{channel}->message('description', data => pack('Q>', (1 << 62) - 1) . 'no description') ])
{
	my ($how, $answer) = @$case;
	$remote->send(pack('a C Q>', 'I', 0, (1 << 62) - 1) . OneReplRemote::values_of(1, 'x'));
	my $asked = 0;
	ok(OneReplTest::wait_for(sub {
		my $said = $remote->exchange($answer);
		$asked += grep { $_->{kind} eq 'description request' } @{ $said->{frames} };
		return $b->safe_psql('postgres', 'SELECT count(*) FROM onerepl.failed') eq '1';
	}, 60), "a description that is told $how: F in the end (P22)");
	note "asked for $asked times";
	cmp_ok($asked, '>=', 9, '... after it was asked for again and again');
	like($b->safe_psql('postgres', "SELECT sqlstate || ' ' || message FROM onerepl.failed"), qr/^22P03 the remote does not tell the table description/, '... with the cause');
	ok($remote->skip, '... and skip gets past it');
}
$remote->send($remote->sequences(map { [ 'public', "absent_$_", 1 ] } 1 .. 12_000), $remote->sequences([ 'public', 's', 7 ]));
is($remote->outcome, 'written', 'many sequences that are not here');
is($b->safe_psql('postgres', 'SELECT count(*) FROM onerepl.sequence_state WHERE NOT is_here'), 10_000, '... are not all kept');
is($b->safe_psql('postgres', 'SELECT last_value FROM s'), 7, '... those that are here are set');
all_can_be_asked($b, 'after many sequences');
none_was_troubled('what was not told');

# --- a central that says it to A
my $channel = OneReplChannel->new(secret => $secret, remote => uuid_bytes($a->safe_psql('postgres', 'SELECT onerepl.database_id()')), central => join '', map { chr rand 256 } 1 .. 16);
$a->safe_psql('postgres', sprintf "SELECT onerepl_add_central('hq', '%s', '$secret', reply_timeout => '1 s', state_query_interval => '0.2 s', send_interval => '0.05 s'), onerepl_add_table('t')", $channel->url);
$a->safe_psql('postgres', "INSERT INTO t SELECT n, 'x' FROM generate_series(1, 3) AS n");
my $identity = $channel->receive->{start_identity};
sub say_to_a
{
	my ($what, $header, $frames) = @_;
	# What is stopped says nothing of use any more.
	$a->safe_psql('postgres', "SELECT onerepl_restart_link('hq')") if $a->safe_psql('postgres', "SELECT stop FROM onerepl.link WHERE name = 'hq'");
	my $body = $channel->receive;
	$channel->answer($body, header => OneReplChannel::central_header(written => $body->{start}, identity => $body->{start_identity}, %$header), frames => $frames // '');
	all_can_be_asked($a, $what);
	return;
}
for my $field (qw(hearing written held room failed_at))
{
	say_to_a("header, $field = $_", { $field => $_ }) for @extremes;
}
say_to_a("failed at $_", { flow => 1, failed_at => $_ }) for @extremes;
for my $first (@extremes)
{
	for my $last (0, 1, (1 << 62) - 1, (1 << 62), ~0)
	{
		say_to_a("$_ $first-$last", {}, $channel->message($_, n => $first, data => pack('N Q> Q>', 1, $first, $last) . ($_ eq 'confirmation' ? '' : pack 'N N', 0, (1 << 32) - 1)))
		  for 'confirmation', 'transfer request';
	}
	say_to_a("state request $first", {}, $channel->message('state request', n => $first));
	say_to_a("description request $first", {}, $channel->message('description request', data => pack 'N Q>', 1, $first));
}
for my $first (@small)
{
	say_to_a("parts $first to $_", {}, $channel->message('transfer request', n => 1, data => pack 'N Q> Q> N N', 1, 1, 1, $first, $_)) for @small;
}
none_was_troubled('a central\'s header and messages');
unlike(slurp_file($_->logfile), qr/terminated by signal|PANIC|out of range/, 'no process of ' . $_->name . ' died or met a number that it cannot hold') for $a, $b;
$_->stop('fast') for $a, $b;
done_testing();
