# A remote that says what the test wants: records made by hand, numbered, identified and sent to a real central.
#
#   my $remote = OneReplRemote->new(node => $node_b, listen => $port, link => 'branch', secret => $secret);
#   my $t = $remote->description('public', 't', [ 'id', 'int4', 1 ], [ 'v', 'text' ]);    its id; [ name, type, place in the key ]
#   $remote->send($remote->insert($t, 1, 'one'));      each record is a transaction of its own; gives B's answer
#   $remote->written                                   S_b, after another exchange
package OneReplRemote;

use strict;
use warnings;

use Digest::SHA qw(sha256);
use OneReplChannel;
use OneReplTest;
use OneReplWire qw(remote_header uuid_bytes);

sub new
{
	my ($class, %options) = @_;
	my $id = join '', map { chr rand 256 } 1 .. 16;
	my $central = uuid_bytes($options{node}->safe_psql('postgres', 'SELECT onerepl.database_id()'));
	my $self = bless {
		%options, id => $id, identity => $id, last => 0, descriptions => 0,
		channel => OneReplChannel->new(secret => $options{secret}, remote => $id, central => $central),
	}, $class;
	OneReplTest::wait_for(sub { IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $self->{listen}) }, 20);
	$self->exchange for 1 .. 2;    # B takes its start from a body that answers it (P10)
	return $self;
}

# ---------------------------------------------------------------------------------------------------- records

sub counted { my $text = shift; return pack 'N/a*', $text; }

# Keeps a description and gives its id; a record that tells of it goes in front of its first use.
sub description
{
	my ($self, $schema, $name, @columns) = @_;
	my $id = ++$self->{descriptions};
	$self->{description}{$id} = pack('Q>', $id) . counted($schema) . counted($name) . counted('UTF8')
	  . pack('n', scalar @columns) . join('', map {
		counted($_->[0]) . counted('pg_catalog') . counted($_->[1]) . pack('N n C', 0xFFFFFFFF, $_->[2] // 0, 0)
	  } @columns) . counted('') x 3;
	return $id;
}

sub values_of { return pack('n', scalar @_) . join '', map { defined $_ ? 't' . counted($_) : 'n' } @_; }

sub describe { my ($self, $id) = @_; return pack('a C Q>', 'R', 0, $id) . $self->{description}{$id}; }
sub insert { my ($self, $id, @row) = @_; return pack('a C Q>', 'I', 0, $id) . values_of(@row); }
sub update { my ($self, $id, @row) = @_; return pack('a C Q>', 'U', 0, $id) . values_of(@row); }
sub delete { my ($self, $id, @key) = @_; return pack('a C Q>', 'D', 0, $id) . values_of(@key); }
sub truncate { my ($self, $id, %flags) = @_; return pack 'a C Q>', 'T', $flags{restart} ? 4 : 0, $id; }

# A statement: of the administrator, or captured for the table of a description.
sub statement
{
	my ($self, $text, $id, %options) = @_;
	return pack('a C Q>', 'X', $id ? 1 : 0, $id // 0) . counted('UTF8') . counted($options{search_path} // 'pg_catalog') . pack('n', 0) . counted($text);
}

# Where sequences stand: each [ schema, name, last value ].
sub sequences
{
	my ($self, @sequences) = @_;
	return pack('a C Q>', 'Q', 0, 0) . counted('UTF8') . pack('N', scalar @sequences)
	  . join '', map { counted($_->[0]) . counted($_->[1]) . pack('q> C', $_->[2], 1) } @sequences;
}

# A chunk of a refresh or verification. Flags: opens 1, first 2, last 4, cancelled 8, repair 16, verify 32, partial 64.
sub chunk
{
	my ($self, $id, $flags, $order, @rows) = @_;
	return pack('a C Q>', 'C', $flags, $id) . pack('Q> n/a* n n N', 1, $order, 0, 0, scalar @rows) . join '', map { values_of(@$_) } @rows;
}

# ---------------------------------------------------------------------------------------------------- bodies

# Sends records, each of which is a transaction, and gives B's answer.
sub send
{
	my ($self, @records) = @_;
	my $first = $self->{last} + 1;
	my $random = join '', map { chr rand 256 } 1 .. 16;
	my $before = $self->{identity};
	my $frames = '';
	for my $record (@records)
	{
		my $n = ++$self->{last};
		$frames .= $self->{channel}->message('transfer', n => $n, flags => 1, data => $record);
		$self->{identity} = substr sha256($before . $random . pack 'Q>', $n), 0, 16;
	}
	return $self->exchange($frames, pack 'Q> Q> a16 a16', $first, $self->{last}, $before, $random);
}

# An exchange without records, or with those frames and that batch.
sub exchange
{
	my ($self, $frames, $batch) = @_;
	my $header = remote_header(start_identity => $self->{id}, last => $self->{last}, sent => $self->{last}, confirmed => 0,
		batch_count => defined $batch ? 1 : 0, batches => $batch // '');
	return $self->{answer} = $self->{channel}->ask("127.0.0.1:$self->{listen}", header => $header, frames => $frames // '');
}

sub written { my $self = shift; return $self->exchange->{written}; }

# Waits until B has written all, or has a record in F: gives 'written', or SQLSTATE and message of the first failure.
sub outcome
{
	my $self = shift;
	my $failure = '';
	OneReplTest::wait_for(
		sub {
			return 1 if $self->written == $self->{last};
			$failure = $self->{node}->safe_psql('postgres',
				"SELECT f.sqlstate || ' ' || f.message FROM onerepl.failed AS f WHERE f.link = '$self->{link}' AND f.resolution IS NULL ORDER BY f.n LIMIT 1");
			return $failure ne '';
		}, 20);
	return $failure ne '' ? $failure : $self->{answer}{written} == $self->{last} ? 'written' : 'nothing';
}

# Skips what is in F, so that the test can go on; gives whether B has gone on.
sub skip
{
	my $self = shift;
	$self->{node}->safe_psql('postgres', "SELECT onerepl_resolve_all('$self->{link}', 'skip')");
	return OneReplTest::wait_for(sub { $self->written == $self->{last} }, 20);
}

1;
