# Records that cannot be read, or say what cannot be: each is F with what is wrong, and `skip` gets past each (P13, P14).
use strict;
use warnings;
use OneReplRemote;
use OneReplTest;
use PostgreSQL::Test::Utils;
use Test::More;

my $secret = 'a secret of the tests, long enough';
my $port = PostgreSQL::Test::Cluster::get_free_port();
my $b = OneReplTest::start_node('b', 0, "onerepl.listen = '127.0.0.1:$port'");
sub b { my $sql = shift; return $b->safe_psql('postgres', $sql); }
b(<<'SQL');
CREATE TABLE t (id int PRIMARY KEY, v text);
CREATE TABLE w (id int PRIMARY KEY, v text);
CREATE TABLE nokey (id int, v text);
CREATE SEQUENCE s;
CREATE EXTENSION onerepl;
SELECT onerepl_add_remote('branch', 'a secret of the tests, long enough', tables => '{public.*}');
SQL
my $remote = OneReplRemote->new(node => $b, listen => $port, link => 'branch', secret => $secret);
my %id = map { $_ => $remote->description('public', $_, [ 'id', 'int4', 1 ], [ 'v', 'text' ]) } qw(t w absent);
$id{nokey} = $remote->description('public', 'nokey', [ 'id', 'int4' ], [ 'v', 'text' ]);
$remote->send(map { $remote->describe($id{$_}) } qw(t w nokey absent));
is($remote->outcome, 'written', 'descriptions');

my $n = 0;
sub fails_and_is_skipped
{
	my ($record, $expected, $name) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	# A good record before it and one behind it: they are written, and nothing else is.
	$remote->send($remote->insert($id{t}, ++$n, $name), $record, $remote->insert($id{t}, ++$n, $name));
	like($remote->outcome, $expected, "$name: F");
	is(b("SELECT count(*) FROM onerepl.failed"), '1', '... one record');
	is(b("SELECT state ~ '^failed at' FROM onerepl_status()"), 't', '... and the status says so');
	ok($remote->skip, '... skip gets past it') or diag(b('SELECT f::text FROM onerepl.failed AS f'));
	is(b("SELECT count(*) FROM t"), $n, '... and the records around it are written');
	return;
}

my $t = pack 'Q>', $id{t};
my $unreadable = qr/^22P03 /;
my @cases = (
	[ '', $unreadable, 'an empty record' ],
	[ 'I', $unreadable, 'a record of one byte' ],
	[ pack('a C Q>', 'Z', 0, $id{t}), $unreadable, 'an unknown operation' ],
	[ "\0" x 20, $unreadable, 'a record of zeros' ],
	[ pack('a C Q>', 'I', 255, $id{t}) . OneReplRemote::values_of(1, 'x'), $unreadable, 'unknown flags' ],
	[ pack('a C Q>', 'I', 0, $id{t}) . pack('n a N', 2, 't', 0xFFFFFFFF), $unreadable, 'a length beyond the record' ],
	[ pack('a C Q>', 'I', 0, $id{t}) . pack('n', 65535), $unreadable, 'a count beyond the record' ],
	[ $remote->insert($id{t}, 1000, 'x') . 'more', $unreadable, 'bytes behind the record' ],
	[ pack('a C Q>', 'I', 0, 2**63), $unreadable, 'a description beyond all bounds' ],
	[ pack('a C', 'S', 0) . pack('Q>', 9223372036854775807), $unreadable, 'a skip of all numbers there are' ],
	[ $remote->statement(''), $unreadable, 'an empty statement' ],
	[ $remote->statement("SELECT 1\0"), $unreadable, 'a statement with a zero byte' ],
	[ pack('a C Q>', 'C', 255, $id{t}), $unreadable, 'a chunk with all flags' ],
	[ pack('a C Q>', 'C', 2, $id{w}) . pack('Q> n/a* n n N', 1, 'n', 0, 0, 1000), $unreadable, 'a chunk with fewer rows than it says' ],
	[ pack('a C Q>', 'R', 0, $id{t}) . 'no description', $unreadable, 'a description that is none' ],
	[ $remote->insert($id{t}, 1), $unreadable, 'a row with too few columns' ],
	[ $remote->insert($id{t}, 1 .. 9), $unreadable, 'a row with too many columns' ],
	[ $remote->update($id{t}), $unreadable, 'an update without columns' ],
	[ $remote->delete($id{t}), $unreadable, 'a delete without a key' ],
	[ $remote->delete($id{nokey}, 1), $unreadable, 'a delete with half of a row' ],
	[ $remote->insert($id{t}, 'one', 'x'), qr/^22P02 /, 'a value that is none' ],
	[ $remote->insert($id{t}, 2000, "\xC0\x80"), qr/^22021 /, 'bytes that are no text' ],
	[ $remote->insert($id{absent}, 1, 'x'), qr/^42P01 /, 'a row of a table that is not here' ],
	[ $remote->truncate($id{absent}), qr/^42P01 /, 'TRUNCATE of a table that is not here' ],
	[ $remote->sequences([ 'public', 'absent', 1 ], [ 'public', 's', -9223372036854775808 ]), qr/^\w{5} /, 'a sequence beyond its bounds' ],
	[ pack('a C Q>', 'Q', 0, 0) . OneReplRemote::counted('no encoding') . pack('N', 0), qr/^22023 /, 'an encoding that is none' ],
);
fails_and_is_skipped(@$_) for @cases;
$b->safe_psql('postgres', 'SELECT onerepl_object_state(\'t\', \'1\'); SELECT count(*) FROM onerepl.log; SELECT count(*) FROM onerepl.journal');
is(b("SELECT count(*) >= " . @cases . " FROM onerepl.journal WHERE level = 'critical' AND message ~ 'skip'"), 't', 'each skip is told as critical');

# --- in a refresh: what was left out makes the copy incomplete, whether it can be read or not
for my $case (
	[ $remote->chunk($id{w}, 16, 'nnn', [ 3, 'x' ]), 'a chunk that says what cannot be' ],
	[ pack('a C Q>', 'C', 255, $id{w}), 'a chunk that cannot be read' ],
	[ pack('a C Q>', 'U', 0, $id{w}) . pack('n', 0), 'an update without columns', 'done' ])
{
	my ($record, $name, $state) = @$case;
	b("DELETE FROM onerepl.refresh_window");    # these chunks are all of one refresh
	$remote->send($remote->chunk($id{w}, 16 | 1, 'n'), $remote->chunk($id{w}, 16 | 2, 'n', [ 1, 'one' ], [ 2, 'two' ]));
	is($remote->outcome, 'written', "$name: a copy begins") or diag($remote->outcome);
	$remote->send($record);
	like($remote->outcome, $unreadable, "$name: F");
	ok($remote->skip, "$name: skip gets past it");
	$remote->send($remote->chunk($id{w}, 16 | 4, 'n', [ 4, 'four' ]));
	is($remote->outcome, 'written', "$name: and the last chunk");
	is(b("SELECT state FROM onerepl.refresh_window WHERE relation = 'w'::regclass"), $state // 'incomplete', "$name: the state of the copy");
}
is($remote->written, $remote->{last}, 'all is written in the end');
unlike(slurp_file($b->logfile), qr/terminated by signal|PANIC/, 'no process died');
$b->stop('fast');
done_testing();
