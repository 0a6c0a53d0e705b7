# P10 and P14: whatever comes in at the HTTP port, the server answers clearly, goes on, and nothing is changed.
use strict;
use warnings;
use IO::Socket::INET;
use OneReplTest;
use OneReplWire qw(body frame remote_header sign post zstd_bomb uuid_bytes);
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(sleep time);

my $pair = OneReplTest->new(track => ['t'], conf_b => "onerepl.max_body_size = '4MB'", schema => 'CREATE TABLE t (id int PRIMARY KEY, v text)');
$pair->a("INSERT INTO t SELECT n, 'base' FROM generate_series(1, 10) AS n");
$pair->wait_identical('t');
$pair->wait_settled('set up');

my $address = "127.0.0.1:$pair->{listen}";
my $secret  = $OneReplTest::secret;
my %parties = (remote => uuid_bytes($pair->a('SELECT id FROM onerepl.database')), central => uuid_bytes($pair->b('SELECT id FROM onerepl.database')));
my $last = $pair->a('SELECT numbered_to FROM onerepl_status()');
my %good = (%parties, secret => $secret,
	header => remote_header(start_identity => $parties{remote}, confirmed => $last, last => $last, sent => $last));
my ($receiver) = OneReplTest::workers($pair->node_b, 'receiver');

# The status code of the answer to raw bytes.
sub status { return OneReplTest::status_of(OneReplTest::http($address, @_)); }

# --- first of all: the hand-written body is a good one
is(status(post(body(%good))), 200, 'an authentic body is answered');
my $answer = OneReplTest::http($address, post(body(%good)));
like($answer, qr{^Content-Type: application/vnd\.onerepl}mi, 'with a body of B');

# --- HTTP
my %refused = (
	'not HTTP'               => [ "hello\r\n\r\n",                                         qr/^400$/ ],
	'a binary greeting'      => [ "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" . "\0" x 100 . "\r\n\r\n", qr/^(400|0)$/ ],
	'a wrong path'           => [ post('', path => '/other'),                              qr/^404$/ ],
	'GET'                    => [ "GET /onerepl/v1/messages HTTP/1.1\r\nHost: x\r\n\r\n",  qr/^(404|405)$/ ],
	'a strange method'       => [ post('', method => 'BREW'),                              qr/^(400|405|501)$/ ],
	'another content type'   => [ post('x', type => 'text/html'),                          qr/^415$/ ],
	'no host'                => [ "POST /onerepl/v1/messages HTTP/1.1\r\nContent-Length: 0\r\n\r\n", qr/^400$/ ],
	'two lengths'            => [ post('abc', extra => "Content-Length: 4\r\n"),           qr/^400$/ ],
	'length and chunks'      => [ post('0' . "\r\n\r\n", extra => "Transfer-Encoding: chunked\r\n"), qr/^400$/ ],
	'a negative length'      => [ post('', length => '-1'),                                qr/^400$/ ],
	'a length with a sign'   => [ post('abc', length => '+3'),                             qr/^400$/ ],
	'an absurd length'       => [ post('', length => '99999999999999999999999'),           qr/^(400|413)$/ ],
	'a huge body'            => [ post('', length => 100 * 1024 * 1024),                   qr/^413$/ ],
	'unknown encoding'       => [ post('', extra => "Transfer-Encoding: gzip, chunked\r\n", length => 0), qr/^(400|501)$/ ],
	'a huge header'          => [ "POST / HTTP/1.1\r\nHost: x\r\nX: " . 'y' x 300_000 . "\r\n\r\n", qr/^(400|431|0)$/ ],
	'NUL in a header'        => [ "POST / HTTP/1.1\r\nHost: x\0y\r\n\r\n",                  qr/^400$/ ],
	'bare line feeds'        => [ "POST / HTTP/1.1\nHost: x\n\n",                           qr/^400$/ ],
	'an unknown version'     => [ "POST / HTTP/9.9\r\nHost: x\r\n\r\n",                     qr/^(400|505)$/ ],
);
for my $name (sort keys %refused)
{
	my ($bytes, $codes) = @{ $refused{$name} };
	like(status($bytes, 4), $codes, "$name is refused");
}

# --- bodies
my $stranger = uuid_bytes('01234567-89ab-cdef-0123-456789abcdef');
my $authentic = body(%good);
my $flipped = $authentic;
substr($flipped, 90, 1) ^= "\x01";
my %bad_bodies = (
	'an empty body'            => '',
	'garbage'                  => join('', map { chr rand 256 } 1 .. 500),
	'a changed byte'           => $flipped,
	'another secret'           => body(%good, secret => 'another secret that is long enough'),
	'an unknown remote'        => body(%good, remote => $stranger, secret => 'another secret that is long enough'),
	'an unknown version'       => body(%good, version => 9),
	'a wrong magic'            => body(%good, magic => 'HTTP'),
	'the direction of answers' => body(%good, direction => 1),
	'unknown flags'            => body(%good, flags => 0x8000),
	'absurd header length'     => body(%good, header_length => 0xFFFFFFFF),
	'absurd frames length'     => body(%good, frames_length => 0xFFFFFFF0),
	'an answer as a request'   => substr($answer, index($answer, "\r\n\r\n") + 4),
	'a number beyond all'      => body(%good, header => remote_header(confirmed => 2**63 + 5)),
	'batches that are not there' => body(%good, header => remote_header(batch_count => 1000)),
	'frames that are no zstd'  => body(%good, flags => 1, frames => 'not compressed at all'),
	'a zstd bomb that tells its size'  => body(%good, flags => 1, frames => zstd_bomb(4096)),
	'a zstd bomb that hides its size'  => body(%good, flags => 1, frames => zstd_bomb(4096, hidden => 1)),
	'a zstd bomb that lies'            => body(%good, flags => 1, frames => zstd_bomb(4096, claimed => 1000)),
);
for my $name (sort keys %bad_bodies)
{
	my $code = status(post($bad_bodies{$name}));
	like($code, qr{^(4\d\d|505)$}, "$name: refused with $code");
}

# --- authentic bodies with bad frames: their neighbours are used, they are told to the journal
my %frame = (%parties, n => $last);
my %bad_frames = (
	'a wrong checksum'   => frame(%frame, checksum => 'x' x 16),
	'an unknown kind'    => frame(%frame, kind => 77),
	'an unknown version' => frame(%frame, version => 9),
	'an absurd length'   => frame(%frame, length => 0xFFFFFFFF),
	'other parties'      => frame(%frame, remote => $stranger),
	'half a frame'       => substr(frame(%frame, data => 'x' x 100), 0, 90),
	'garbage'            => 'x' x 1000,
	'a transfer without content' => frame(%frame, kind => 1, n => $last + 1),
	'a transfer of an absurd number' => frame(%frame, kind => 1, n => 2**62, data => 'x' x 50),
	'a transfer in 4 billion parts' => frame(%frame, kind => 1, n => $last + 1, part => 5, parts => 0xFFFFFFFF, data => 'x' x 50),
	'a part beyond its parts' => frame(%frame, kind => 1, n => $last + 1, part => 5, parts => 2, data => 'x' x 50),
	'a request of absurd ranges' => frame(%frame, kind => 2, data => pack('N Q> Q>', 0xFFFFFFFF, 1, 2)),
	'a request of a backward range' => frame(%frame, kind => 2, data => pack('N Q> Q>', 1, 9, 2)),
);
for my $name (sort keys %bad_frames)
{
	my $request = frame(%parties, kind => 2, data => pack('N Q> Q>', 1, 1, $last));
	my $code = status(post(body(%good, frames => $bad_frames{$name} . $request)));
	like($code, qr/^(200|4\d\d)$/, "frames with $name: $code");
}
cmp_ok(OneReplTest::journal_count($pair->node_b, level => 'warning'), '>=', 1, 'the journal of B tells of bad input');
cmp_ok(OneReplTest::journal_count($pair->node_b), '<=', 120, 'but not without measure');

# --- a body cut at every byte, as HTTP knows it, and as the end of the connection
my %codes;
for my $cut (0 .. length($authentic) - 1)
{
	$codes{ status(post(substr $authentic, 0, $cut)) }++;
}
is(join(',', grep { !/^4\d\d$/ } keys %codes), '', 'a body cut at every byte is refused: ' . join ', ', map { "$_ ($codes{$_})" } sort keys %codes);
for my $cut (map { $_ * 7 } 0 .. length(post($authentic)) / 7 - 1)
{
	my $socket = IO::Socket::INET->new(PeerAddr => $address) or next;
	$socket->syswrite(substr post($authentic), 0, $cut);
	close $socket;
}
is(status(post(body(%good))), 200, 'after requests that broke off');

# --- replayed: the same nonce again changes nothing
is(status(post($authentic)), status(post($authentic)), 'the same body twice gets the same kind of answer');

# --- pipelined garbage behind a good request
{
	my $bytes = OneReplTest::http($address, post(body(%good)) . 'GARBAGE' x 1000, 3);
	like($bytes, qr{^HTTP/1\.1 200 }, 'the good request before garbage is answered');
}
{
	my $bytes = OneReplTest::http($address, "GET / HTTP/1.1\r\n" x 5000, 3);
	like(OneReplTest::status_of($bytes), qr/^(4\d\d|0)$/, 'a start line again and again');
}

# --- slow peers and idle connections do not hold up others
my @idle;
for (1 .. 900)
{
	my $socket = IO::Socket::INET->new(PeerAddr => $address, Timeout => 2) or last;
	$socket->syswrite(substr(post($authentic), 0, 1 + int rand 60)) if $_ % 3 == 0;
	push @idle, $socket;
}
note scalar(@idle) . ' connections are open';
$pair->a("INSERT INTO t VALUES (100, 'beside idle connections')");
$pair->wait_identical('t', { name => 'changes arrive beside hundreds of idle and slow connections', deadline => 20 });
my $more = 0;
for (1 .. 300)
{
	my $socket = IO::Socket::INET->new(PeerAddr => $address, Timeout => 1) or last;
	push @idle, $socket;
	$more++;
}
$pair->a("INSERT INTO t VALUES (101, 'at the limit')");
$pair->wait_identical('t', { name => 'and at the limit of connections', deadline => 70 });
close $_ for @idle;

{
	# A slow-loris: a byte now and then; it is cut off in the end.
	my $socket = IO::Socket::INET->new(PeerAddr => $address);
	my $begin = time;
	my $cut = 0;
	local $SIG{PIPE} = 'IGNORE';
	for my $byte (split //, post($authentic))
	{
		last unless defined $socket->syswrite($byte);
		my $ready = '';
		vec($ready, $socket->fileno, 1) = 1;
		if (select $ready, undef, undef, 0.5)
		{
			$cut = 1;
			last;
		}
		last if time - $begin > 20;
	}
	ok($cut, sprintf 'a slow-loris is cut off after %.1f s', time - $begin);
}

# --- in the end nothing is changed but what A really sent
$pair->wait_identical('t');
$pair->wait_settled('in the end', 20);
is((OneReplTest::workers($pair->node_b, 'receiver'))[0], $receiver, 'the receiver is the same process');
cmp_ok(OneReplTest::anonymous_memory($receiver), '<', 256, 'and has not grown');
is($pair->b('SELECT count(*) FROM onerepl.waiting'), '0', 'nothing waits');
is($pair->b("SELECT state FROM onerepl_status()"), 'in step', 'the link is in step');

# --- secrets
for my $node ($pair->nodes)
{
	$node->safe_psql('postgres', 'CREATE ROLE curious LOGIN; GRANT pg_read_all_stats TO curious');
	for my $query ('SELECT * FROM onerepl.link_key', 'SELECT * FROM onerepl_status()', 'SELECT * FROM onerepl.log', "SELECT onerepl_pause('hq')")
	{
		my ($code) = OneReplTest::fails($node, "SET ROLE curious; $query");
		is($code, '42501', $node->name . ": a role without rights cannot do: $query") if $query !~ /status/ || $code ne '00000';
	}
}

# --- a remote with the wrong secret is not heard, and its administrator is told
$pair->a("SELECT onerepl_change_link('hq', secret => 'not the secret of the central'); INSERT INTO t VALUES (200, 'under a wrong secret')");
$pair->poll_a("SELECT last_error <> '' FROM onerepl_status()", 'a wrong secret shows in the status', deadline => 10);
is($pair->b('SELECT count(*) FROM t WHERE id = 200'), '0', 'and nothing of it is written');
$pair->a("SELECT onerepl_change_link('hq', secret => '$secret')");
$pair->wait_identical('t', { name => 'until it is put right', deadline => 20 });

$pair->finish;
done_testing();
