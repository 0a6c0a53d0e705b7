# Bodies and frames written by hand (docs/protocol/wire.md), good and bad ones, for tests of what a central does with them.
package OneReplWire;

use strict;
use warnings;

use Digest::MD5 qw(md5);
use Digest::SHA qw(hmac_sha256 sha256);
use Exporter 'import';

our @EXPORT_OK = qw(body frame remote_header sign post zstd_bomb uuid_bytes);

sub uuid_bytes { my $text = shift; $text =~ tr/-//d; return pack 'H*', $text; }

# Options: process, heard, start, start_identity, confirmed, last, sent, blocked_at, oldest, age, flags, stop, batches (bytes), batch_count
sub remote_header
{
	my %h = @_;
	return pack('a16 Q> Q> a16 Q> Q> Q> Q> Q> Q> C C N',
		$h{process} // '', $h{heard} // 0, $h{start} // 0, $h{start_identity} // '', $h{confirmed} // 0, $h{last} // 0, $h{sent} // 0, $h{blocked_at} // 0,
		$h{oldest} // 0, $h{age} // 0, $h{flags} // 0, $h{stop} // 0, $h{batch_count} // 0) . ($h{batches} // '');
}

# Options: remote, central (16 bytes), kind, version, flags, n, part, parts, data, length, checksum
sub frame
{
	my %f = @_;
	my $data = $f{data} // '';
	my $make = sub {
		return pack('a4 C C n a16 a16 a16 Q> N N N', $f{magic} // 'ORPF', $f{version} // 1, $f{kind} // 3, $f{flags} // 0, $_[0],
			$f{remote}, $f{central}, $f{n} // 0, $f{part} // 0, $f{parts} // 1, $f{length} // length $data) . $data;
	};
	return $make->($f{checksum} // md5($make->("\0" x 16)));
}

# Options: remote, central, secret, header, frames; magic, version, direction, flags, nonce, reply_to, header_length,
# frames_length
sub body
{
	my %b = @_;
	my $header = $b{header} // remote_header();
	my $frames = $b{frames} // '';
	my $content = pack('a4 C C n a16 a16 a16 a16 N N', $b{magic} // 'ORPB', $b{version} // 1, $b{direction} // 0, $b{flags} // 0,
		$b{remote}, $b{central}, $b{nonce} // join('', map { chr rand 256 } 1 .. 16), $b{reply_to} // '',
		$b{header_length} // length $header, $b{frames_length} // length $frames) . $header . $frames;
	return sign($content, $b{secret}, $b{direction} ? 'central' : 'remote');
}

# signer: remote or central, whose key it is
sub sign
{
	my ($content, $secret, $signer) = @_;
	return $content . hmac_sha256($content, sha256("onerepl 1 " . ($signer // 'remote') . "\n$secret"));
}

# A whole request. Options: path, method, type, length, extra (header lines)
sub post
{
	my ($body, %r) = @_;
	my $length = $r{length} // length $body;
	return sprintf("%s %s HTTP/1.1\r\nHost: test\r\nContent-Type: %s\r\nContent-Length: %s\r\n%s\r\n",
		$r{method} // 'POST', $r{path} // '/onerepl/v1/messages', $r{type} // 'application/vnd.onerepl', $length, $r{extra} // '')
	  . $body;
}

# A zstd frame of run-length blocks: `megabytes` of zeros in a few bytes each. It tells its size or hides it.
sub zstd_bomb
{
	my ($megabytes, %o) = @_;
	my $blocks = $megabytes * 8;    # of 128 kB
	my $head = $o{hidden}
	  ? pack('V C C', 0xFD2FB528, 0x00, 0x70)                                  # window of 16 MB
	  : pack('V C Q<', 0xFD2FB528, 0xE0, $o{claimed} // $megabytes * 1024 * 1024);    # single segment, 8 bytes of size
	my $block = sub { my $v = (131072 << 3) | (1 << 1) | $_[0]; return substr(pack('V', $v), 0, 3) . "\0"; };
	return $head . $block->(0) x ($blocks - 1) . $block->(1);
}

1;
