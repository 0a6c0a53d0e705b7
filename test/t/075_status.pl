# What onerepl_status() says where nothing can work yet, and that the set-up calls warn of it (P22).
use strict;
use warnings;

use IO::Socket::INET;
use OneReplTest;
use PostgreSQL::Test::Utils;
use Test::More;

my $pair = OneReplTest->new(
	links => 0,
	schema => 'CREATE TABLE t (id int PRIMARY KEY)',
	conf_a => "onerepl.databases = 'another'",
	conf_b => "onerepl.listen = ''");
my $status = 'SELECT state, what_to_do FROM onerepl_status()';
my $state = 'SELECT state FROM onerepl_status()';

# What a set-up call writes to the client.
sub warning_of
{
	my ($node, $sql) = @_;
	my ($status, $out, $err) = $node->psql('postgres', $sql);
	is($status, 0, 'it is done all the same');
	return $err;
}

sub set
{
	my ($node, $setting, $value) = @_;
	$node->append_conf('postgresql.conf', "$setting = $value");
	$node->reload;
	return;
}

# The central has no port, and then one that is not free.
like(warning_of($pair->node_b, "SELECT onerepl_add_remote('branch', '$OneReplTest::secret', tables => '{public.*}')"),
	qr/WARNING:  not working: onerepl.listen is not set\s*HINT:  Set it/, 'onerepl_add_remote warns');
like($pair->b($status), qr/^not working: onerepl.listen is not set\|Set it in postgresql.conf/, 'and so does the status');
is_deeply([ OneReplTest::fails($pair->node_b, "SET onerepl.listen = 'localhost'") ],
	[ '22023', 'invalid value for parameter "onerepl.listen": "localhost"' ], 'what is no address is refused at once');
my $other = IO::Socket::INET->new(LocalAddr => '127.0.0.1', LocalPort => $pair->{listen}, Listen => 1) or die 'listen';
set($pair->node_b, 'onerepl.listen', "'127.0.0.1:$pair->{listen}'");
$pair->poll_b($state, 'a port that is taken',
	wanted => "not working: could not listen on 127.0.0.1 port $pair->{listen}: Address already in use");
close $other;
$pair->poll_b($state, 'the port is free again', wanted => 'starting');

# The remote's database is not named.
like(warning_of($pair->node_a, sprintf "SELECT onerepl_add_central('hq', '%s', '%s')", $pair->url, $OneReplTest::secret),
	qr/WARNING:  not working: database "postgres" is not in onerepl.databases\s*HINT:  Add it/, 'onerepl_add_central warns');
like($pair->a($status), qr/^not working: database "postgres" is not in onerepl.databases\|Add it/, 'and so does the status');
$pair->track('t');
set($pair->node_a, 'onerepl.databases', "'postgres'");
$pair->poll_a($state, 'it works', wanted => 'in step');
$pair->a('INSERT INTO t VALUES (1)');
$pair->wait_identical('t');

# The extension and the library are of different versions.
$pair->a("UPDATE pg_extension SET extversion = '0.0.9' WHERE extname = 'onerepl'");
like($pair->a($status), qr/^not working: the extension is of version 0.0.9, the library of [0-9.]+\|Call ALTER EXTENSION/, 'versions differ');
$pair->a("UPDATE pg_extension SET extversion = default_version FROM pg_available_extensions AS v WHERE extname = v.name AND extname = 'onerepl'");

# Capture was stopped at the log's limit: B has all that A numbered, and not all that A has.
$pair->a('UPDATE onerepl.log_state SET capture_stopped = true; SELECT onerepl.set_capture_stopped(true)');
$pair->a('INSERT INTO t VALUES (2)');
$pair->poll_b($state, 'B says that A captures nothing', wanted => 'the remote captures no changes');

# Not preloaded at all.
$pair->a('UPDATE onerepl.log_state SET capture_stopped = false');
$pair->node_a->append_conf('postgresql.conf', "shared_preload_libraries = ''");
$pair->node_a->restart;
like($pair->a($status), qr/^not working: the library is not preloaded\|Add onerepl to shared_preload_libraries/, 'not preloaded');

$pair->finish;
done_testing();
