# P9: base copies of a remote that run beside it are found while both are idle, before anything of the copy is written; the central says
# from where they speak, what is to be done first, and at which read point the link goes on without a refresh.
use strict;
use warnings;
use OneReplTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $pair = OneReplTest->new(streaming => 1, track => ['t'], schema => 'CREATE TABLE t (id int PRIMARY KEY, v text)');
$pair->a("INSERT INTO t SELECT n, 'base' FROM generate_series(1, 10) AS n");
$pair->wait_identical('t');
$pair->wait_settled('set up');

sub copy_of
{
	my ($node, $name) = @_;
	$node->backup($name);
	my $copy = PostgreSQL::Test::Cluster->new($name);
	$copy->init_from_backup($node, $name);
	$copy->start;
	return $copy;
}

# A new process of the same remote is none: not after a restart, nor after a crash.
for my $way ('restart', 'crash')
{
	$way eq 'restart' ? $pair->node_a->restart : OneReplTest::crash($pair->node_a);
	$pair->a("INSERT INTO t SELECT max(id) + 1, '$way' FROM t");
	$pair->wait_identical('t', { name => "after a $way all goes on" });
	$pair->wait_settled($way);
}
is($pair->b('SELECT state FROM onerepl_status()'), 'in step', 'one remote, however often it began');

# --- both are idle
my $copy = copy_of($pair->node_a, 'copy');
OneReplTest::poll_ok($_, 'SELECT state FROM onerepl_status()', 'found while idle: ' . $_->name, wanted => 'stopped: two copies of the remote speak in turn')
  for $pair->node_b, $pair->node_a, $copy;
my $cure = $pair->b('SELECT what_to_do FROM onerepl_status()');
like($cure, qr/^Find and stop the other copy of the remote first\./, 'what is to be done first');
my ($s) = $pair->b('SELECT written_to FROM onerepl_status()');
like($cure, qr/Seen: from 127\.0\.0\.1:\d+ and from 127\.0\.0\.1:\d+: S = $s, M = $s there, $s is written here\.$/, 'from where they speak, and the numbers');
is(OneReplTest::journal_count($pair->node_b, level => 'critical', like => "two copies .*from 127.0.0.1:\\d+ and from 127.0.0.1:\\d+"), '1', 'so says the journal');

# The cure, as it is written: the copy has changed nothing.
$copy->stop;
my ($read_point) = $cure =~ /read_point => (\d+)/ or die $cure;
$pair->a("INSERT INTO t VALUES (100, 'while it was stopped')");
$pair->b("SELECT onerepl_restart_link('branch')");
$pair->a("SELECT onerepl_restart_link('hq', read_point => $read_point)");
$pair->wait_identical('t', { name => 'nothing was lost, and no row copied again' });
$pair->wait_settled('after the cure');
OneReplTest::poll_ok($_, 'SELECT state FROM onerepl_status()', 'in step: ' . $_->name, wanted => 'in step') for $pair->nodes;
$pair->verify_equal('t');
is($pair->a('SELECT count(*) FROM onerepl.refresh_progress WHERE method <> $$verify$$'), '0', 'without a refresh');

# --- the copy writes before it is found: whichever history B has, it is one, and the other copy is the first thing to look for
my $second = copy_of($pair->node_a, 'second');
$second->safe_psql('postgres', "INSERT INTO t VALUES (200, 'of the copy')");
$pair->poll_b("SELECT state ~ '^stopped' FROM onerepl_status()", 'found');
my ($state, $what) = split /\|/, $pair->b('SELECT state, what_to_do FROM onerepl_status()');
like($what, qr/^Find and stop the other copy of the remote first.*Seen: .*127\.0\.0\.1:\d+.*S = \d+, M = \d+ there, \d+ is written here/, "the same is to be done first ($state)");
$second->stop;
$pair->b("SELECT onerepl_restart_link('branch')");
$pair->a("BEGIN; SELECT onerepl_restart_link('hq'); SELECT onerepl_refresh('hq', method => 'repair'); COMMIT");
$pair->wait_identical('t', { name => 'as A has it' });
$pair->wait_settled('after the second cure');
OneReplTest::poll_ok($_, 'SELECT state FROM onerepl_status()', 'in step: ' . $_->name, wanted => 'in step') for $pair->nodes;
$pair->verify_equal('t');
$pair->finish;
done_testing();
