# Strangers hold all connections of a central, each with a body of which a byte comes now and then: the remote gets in.
use strict;
use warnings;
use IO::Select;
use IO::Socket::INET;
use OneReplTest;
use OneReplWire qw(post);
use Test::More;
use Time::HiRes qw(sleep time);

my $pair = OneReplTest->new(track => ['t'], conf_b => 'onerepl.max_connections = 40', schema => 'CREATE TABLE t (id int PRIMARY KEY, v text)');
$pair->a("INSERT INTO t VALUES (1, 'undisturbed')");
$pair->wait_identical('t');

# As many as there are places, and some more that wait for one; who is turned away comes back.
sub hold_all_connections
{
	my ($port) = @_;
	my $begin = substr(post('x' x 100_000), 0, 300);
	my @sockets;
	while (1)
	{
		for my $i (0 .. 59)
		{
			if (!$sockets[$i])
			{
				$sockets[$i] = IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $port, Timeout => 1) or next;
				$sockets[$i]->blocking(0);
				syswrite $sockets[$i], $begin;
				next;
			}
			my $gone = IO::Select->new($sockets[$i])->can_read(0);
			$sockets[$i] = undef if $gone || !syswrite $sockets[$i], 'x';
		}
		sleep 0.7;
	}
}

my $stranger = fork // die "fork: $!";
if (!$stranger)
{
	$SIG{PIPE} = 'IGNORE';
	hold_all_connections($pair->{listen});
}
sleep 2;    # not waited for: it is to have all places, and nobody could say when it has

$pair->a("INSERT INTO t VALUES (2, 'on the connection that was there')");
$pair->wait_identical('t');
# A new process of A has to come in by new connections.
$pair->node_a->restart;
$pair->a("INSERT INTO t VALUES (3, 'on a new one')");
ok(OneReplTest::wait_for(sub { $pair->b('SELECT count(*) FROM t') == 3 }, 30), 'a remote that comes anew gets in beside strangers');
$pair->node_b->restart;
$pair->a("INSERT INTO t VALUES (4, 'to a central that knows nobody yet')");
ok(OneReplTest::wait_for(sub { $pair->b('SELECT count(*) FROM t') == 4 }, 60), 'and where nobody is known yet');

kill 'KILL', $stranger;
waitpid $stranger, 0;
$pair->wait_identical('t');
$pair->finish;
done_testing();
