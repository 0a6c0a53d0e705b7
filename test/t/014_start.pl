# How a link starts (P10, P9): not by recorded bodies, not by a restored copy of the remote, not from a database to itself.
use strict;
use warnings;
use OneReplTest;
use OneReplWire qw(body remote_header post uuid_bytes);
use PostgreSQL::Test::Utils;
use Test::More;

my $pair    = OneReplTest->new(schema => 'CREATE TABLE t (id int PRIMARY KEY, v text)', links => 0);
my $secret  = $OneReplTest::secret;
my $address = "127.0.0.1:$pair->{listen}";

# --- a central that has not started takes its start only from a body that answers this start
$pair->b("SELECT onerepl_add_remote('recorded', '$secret', tables => '{*}')");
OneReplTest::wait_for(sub { IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $pair->{listen}) }, 20);
my $remote = uuid_bytes('01234567-89ab-cdef-0123-456789abcdef');
my %parts  = (remote => $remote, central => '', secret => $secret, header => remote_header(start_identity => $remote));

sub start_of_link { return $pair->b("SELECT coalesce(start::text, 'none') FROM onerepl.link WHERE name = 'recorded'"); }

my ($answer) = OneReplTest::http($address, post(body(%parts))) =~ /\r\n\r\n(.*)/s;
is(start_of_link(), 'none', 'a body that answers nothing does not start a link');
my $recorded = body(%parts, reply_to => substr($answer, 40, 16));
OneReplTest::http($address, post($recorded));
is(start_of_link(), '0', 'a body that answers the central does');
$pair->b("SELECT onerepl_restart_link('recorded')");
OneReplTest::http($address, post($recorded)) for 1 .. 3;
is(start_of_link(), 'none', 'nor does a recorded body of an earlier start');
$pair->b("SELECT onerepl_remove_remote('recorded')");

# --- a database does not replicate to itself
$pair->b("SELECT onerepl_add_remote('self', 'the secret of the link to itself', tables => '{*}')");
# Two links of one database have not one secret, so only somebody who writes the keys himself gets there.
$pair->b("SELECT onerepl_add_central('itself', 'http://$address', 'another secret, until it is changed')");
$pair->b("UPDATE onerepl.link_key AS k SET signs_with = o.checks_with, checks_with = o.signs_with FROM onerepl.link_key AS o, onerepl.link AS l, onerepl.link AS m WHERE k.link = l.id AND l.name = 'itself' AND o.link = m.id AND m.name = 'self'");
$pair->b('SELECT onerepl.wake_at_commit(true, true)');
ok( OneReplTest::wait_for(
		sub { $pair->b("SELECT count(*) FROM onerepl_status() WHERE state LIKE 'stopped%'") == 2 }, 30),
	'a link from a database to itself stops on both sides');
$pair->b("SELECT onerepl_remove_remote('self'), onerepl_remove_central('itself')");

# --- a database in which a dump of the remote was restored does not speak in its name
$pair->b("SELECT onerepl_add_remote('branch', '$secret', tables => '{*}')");
$pair->a("SELECT onerepl_add_central('hq', 'http://$address', '$secret')");
$pair->a("SELECT onerepl_add_table('t')");
$pair->a("INSERT INTO t VALUES (1, 'before')");
$pair->wait_identical('t');
$pair->a("UPDATE onerepl.link SET database = gen_random_uuid(); SELECT onerepl.wake_at_commit(true, false)");
ok(OneReplTest::wait_for(sub { $pair->a("SELECT stop FROM onerepl.link") == 4 }, 30), 'the copy stops');
is($pair->a("SELECT count(*) FROM onerepl.journal WHERE level = 'critical' AND message LIKE '%restored copy%'"), '1', 'and says why');
is($pair->b("SELECT stop FROM onerepl.link"), '0', 'the central is not told, and goes on with the real one');

$pair->finish;
done_testing();
