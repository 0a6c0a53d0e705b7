# The test is the channel: it takes the bodies of a real remote and answers them by hand, or sends a real central bodies of
# its choice, in the name of the other side.
#
#   my $channel = OneReplChannel->new(secret => $secret, remote => $uuid, central => $uuid);
#   $channel->url                                    where the remote shall post to
#   my $body = $channel->receive;                    its next body, parsed: see parse
#   $channel->answer($body, header => central_header(written => 3), frames => ...);
#   my $answer = $channel->ask($address, header => remote_header(...), frames => ...);    a central's answer, parsed
package OneReplChannel;

use strict;
use warnings;

use Carp;
use IO::Select;
use IO::Socket::INET;
use OneReplTest;
use OneReplWire qw(body frame post);

our @kinds = (undef, 'transfer', 'confirmation request', 'remote state', 'confirmation', 'transfer request', 'state request',
	'description request', 'description');

sub new
{
	my ($class, %options) = @_;
	my $listener = IO::Socket::INET->new(LocalAddr => '127.0.0.1', LocalPort => 0, Listen => 20, ReuseAddr => 1)
	  or croak "no port: $!";
	return bless { %options, listener => $listener, select => IO::Select->new($listener), read => {}, last_nonce => '' }, $class;
}

sub url { my $self = shift; return 'http://127.0.0.1:' . $self->{listener}->sockport; }

# The next body of the remote, as parse gives it; dies when none comes in time.
sub receive
{
	my ($self, $deadline) = @_;
	my $end = time + ($deadline // 30) * ($ENV{PATIENCE} // 1);
	while (time <= $end)
	{
		for my $socket ($self->{select}->can_read(0.5))
		{
			my $request = $self->read_from($socket) or next;
			my $body = parse($request);
			$body->{socket} = $socket;
			return $body;
		}
	}
	croak 'the remote sends nothing';
}

# Bytes of a connection; gives a whole request's content once it is there.
sub read_from
{
	my ($self, $socket) = @_;
	if ($socket == $self->{listener})
	{
		$self->{select}->add(scalar $socket->accept);
		return;
	}
	my $buffer = \$self->{read}{ $socket->fileno };
	$$buffer //= '';
	if (!$socket->sysread($$buffer, 1 << 20, length $$buffer))
	{
		delete $self->{read}{ $socket->fileno };
		$self->{select}->remove($socket);
		close $socket;
		return;
	}
	return unless OneReplTest::answer_complete($$buffer);
	my $request = substr $$buffer, index($$buffer, "\r\n\r\n") + 4;
	$$buffer = '';
	return $request;
}

# Answers a body that receive gave. Options as OneReplWire::body has them.
sub answer
{
	my ($self, $received, %options) = @_;
	my $answer = body(
		remote => $self->{remote}, central => $self->{central}, secret => $self->{secret}, direction => 1,
		reply_to => $received->{nonce}, %options);
	$received->{socket}->syswrite("HTTP/1.1 200 OK\r\nContent-Type: application/vnd.onerepl\r\nContent-Length: "
		  . length($answer) . "\r\n\r\n$answer");
	return;
}

# Posts a body to a central and gives its answer, parsed. It answers the one before it; without one the central does not take it
# (P10), so it goes once more.
sub ask
{
	my ($self, @arguments) = @_;
	my $answer = $self->ask_once(@arguments);
	$answer = $self->ask_once(@arguments) unless $answer->{flags} & 2 || $answer->{stop};
	return $answer;
}

sub ask_once
{
	my ($self, $address, %options) = @_;
	my $bytes = OneReplTest::http($address,
		post(body(
				remote => $self->{remote}, central => $self->{central}, secret => $self->{secret},
				reply_to => $self->{last_nonce}, %options)));
	croak "no answer: $bytes" unless OneReplTest::status_of($bytes) == 200;
	my $answer = parse(substr $bytes, index($bytes, "\r\n\r\n") + 4);
	$self->{last_nonce} = $answer->{nonce};
	return $answer;
}

# A message in this channel's names: its kind in words, N, data and flags as OneReplWire::frame has them.
sub message
{
	my ($self, $kind, %options) = @_;
	my ($number) = grep { defined $kinds[$_] && $kinds[$_] eq $kind } 1 .. $#kinds;
	return frame(remote => $self->{remote}, central => $self->{central}, kind => $number // croak("no kind $kind"), %options);
}

# A message with a list of ranges or of missing numbers, each given as [first, last].
sub listing
{
	my ($self, $kind, @ranges) = @_;
	my $whole = $kind eq 'transfer request' ? pack('N N', 0, 0xFFFFFFFF) : '';
	my $data = pack('N', scalar @ranges) . join '', map { pack('Q> Q>', @$_) . $whole } @ranges;
	return $self->message($kind, n => $ranges[0][0], data => $data);
}

# The data of a B header. Options: written, identity, held, room, flow, stop, failed_at.
sub central_header
{
	my %h = (written => 0, identity => '', @_);
	return pack('C C C Q> Q> a16 Q> Q> Q>', 3, $h{flow} // 0, $h{stop} // 0, $h{hearing} // 0, $h{written}, $h{identity}, $h{held} // $h{written},
		$h{room} // 1 << 24, $h{failed_at} // 0);
}

# A body as a hash: nonce, header (bytes) and its fields, frames: a list of hashes with kind (in words), n, raw, ranges (where
# the kind has a list).
sub parse
{
	my $bytes = shift;
	my ($mark, $version, $direction, $flags, $remote, $central, $nonce, $reply_to, $header_length, $frames_length) =
	  unpack 'a4 C C n a16 a16 a16 a16 N N', $bytes;
	croak 'not a body' unless $mark eq 'ORPB';
	croak 'compressed: set onerepl.compression = 0' if $flags & 1;
	my $header = substr $bytes, 80, $header_length;
	my %body = (nonce => $nonce, reply_to => $reply_to, header => $header, frames => []);
	my @names = $direction ? qw(flags flow stop hearing written identity held room failed_at)
	  : qw(process heard start start_identity confirmed last sent blocked_at oldest age flags stop batch_count batches);
	@body{@names} = unpack $direction ? 'C C C Q> Q> a16 Q> Q> Q>' : 'a16 Q> Q> a16 Q> Q> Q> Q> Q> Q> C C N a*', $header;
	my $frames = substr $bytes, 80 + $header_length, $frames_length;
	for (my $at = 0; $at < length $frames;)
	{
		my ($kind, $n, $length) = unpack 'x5 C x2 x48 Q> x8 N', substr $frames, $at;
		my $raw = substr $frames, $at, 76 + $length;
		push @{ $body{frames} }, { kind => $kinds[$kind], n => $n, raw => $raw, ranges => ranges($kinds[$kind], substr $raw, 76) };
		$at += 76 + $length;
	}
	return \%body;
}

sub ranges
{
	my ($kind, $data) = @_;
	return [] unless $kind =~ /confirmation|transfer request/;
	my $item = $kind eq 'transfer request' ? 24 : 16;
	return [ map { [ unpack 'Q> Q>', substr $data, 4 + $_ * $item ] } 0 .. unpack('N', $data) - 1 ];
}

# What a body says, for comparisons: "transfer 1, transfer 2, confirmation 3-4".
sub said
{
	my $body = shift;
	return join ', ', map {
		join ' ', $_->{kind}, @{ $_->{ranges} } ? map { "$_->[0]-$_->[1]" } @{ $_->{ranges} } : $_->{n}
	} @{ $body->{frames} };
}

1;
