# The workers' life (P22): settings of databases and roles do not reach them, nobody without rights ends them, there is one sender, and
# pg_upgrade carries a database over while none runs.
use strict;
use warnings;
use Cwd ();
use IPC::Run ();
use OneReplTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $pair = OneReplTest->new(
	track  => ['t'],
	schema => <<'SQL');
CREATE TABLE t (id int PRIMARY KEY, v text);
CREATE ROLE nobody LOGIN;
CREATE ROLE maker LOGIN CREATEDB;
SQL
$pair->a("INSERT INTO t VALUES (0, 'first')");
$pair->wait_identical('t');

# --- settings of the database (F18)
my @settings = (
	q{role = 'nobody'}, q{lock_timeout = '1h'}, q{statement_timeout = '1ms'}, q{idle_in_transaction_session_timeout = '1ms'},
	q{default_transaction_isolation = 'serializable'}, q{default_transaction_read_only = on}, q{default_transaction_deferrable = on},
	q{session_replication_role = 'replica'}, q{search_path = 'nothing'}, q{exit_on_error = on}, q{enable_indexscan = off});
push @settings, q{transaction_timeout = '200ms'} if $pair->node_a->pg_version >= 17;
for my $node ($pair->nodes)
{
	$node->safe_psql('postgres', join ';', 'SET default_transaction_read_only = off', map { "ALTER DATABASE postgres SET $_" } @settings);
	$node->restart;
}

# What an administrator does in spite of them; his connection takes the settings, too.
sub plain_options
{
	my $node = shift;
	return '-c role=none -c default_transaction_read_only=off -c statement_timeout=0 -c search_path=public -c lock_timeout=0'
	  . ' -c idle_in_transaction_session_timeout=0 -c session_replication_role=origin -c exit_on_error=off'
	  . ' -c default_transaction_isolation=read\\ committed' . ($node->pg_version >= 17 ? ' -c transaction_timeout=0' : '');
}
sub plainly
{
	my ($node, $sql) = @_;
	local $ENV{PGOPTIONS} = plain_options($node);
	return $node->safe_psql('postgres', $sql);
}
sub same
{
	return OneReplTest::wait_for(sub {
		my ($on_a, $on_b) = map { plainly($_, 'SELECT count(*), sum(length(v)), sum(id) FROM t') } $pair->nodes;
		return $on_a eq $on_b;
	}, 40);
}
plainly($pair->node_a, "INSERT INTO t SELECT n, 'under settings of the database' FROM generate_series(1, 20000) AS n");
ok(same(), 'settings of the database keep no worker from its work');
my $reader = do {
	local $ENV{PGOPTIONS} = plain_options($pair->node_b);
	$pair->node_b->background_psql('postgres');
};
$reader->query_safe('BEGIN ISOLATION LEVEL READ COMMITTED; LOCK TABLE public.t IN SHARE MODE');
plainly($pair->node_a, "INSERT INTO t VALUES (30000, 'behind a lock')");
ok(OneReplTest::wait_for(sub { plainly($pair->node_b, "SELECT state = 'put off' AND last_error ~ '55P03' FROM onerepl_status()") eq 't' }, 30),
	'apply waits for a lock as long as it chooses, and says so');
$reader->query_safe('COMMIT');
$reader->quit;
ok(same(), 'and goes on');
for my $node ($pair->nodes)
{
	plainly($node, 'ALTER DATABASE postgres RESET ALL');
	$node->restart;
}

# --- statements that are refused end no worker
my %before;
sub pids { my $node = shift; return join ' ', map { OneReplTest::workers($node, $_) } qw(sender receiver launcher); }
OneReplTest::wait_for(sub { OneReplTest::workers($pair->node_a, 'sender') == 1 && OneReplTest::workers($pair->node_b, 'receiver') == 1 }, 30);
$before{ $_->name } = pids($_) for $pair->nodes;
for my $node ($pair->nodes)
{
	for my $refused (
		[ 'nobody', 'template1', 'DROP DATABASE postgres', '42501' ],
		[ 'nobody', 'template1', 'DROP DATABASE postgres WITH (FORCE)', '42501' ],
		[ 'nobody', 'template1', 'ALTER DATABASE postgres RENAME TO mine', '42501' ],
		[ 'nobody', 'template1', 'ALTER DATABASE postgres SET TABLESPACE pg_default', '42501' ],
		[ 'nobody', 'template1', 'CREATE DATABASE copy TEMPLATE postgres', '42501' ],
		[ 'maker', 'template1', 'CREATE DATABASE copy TEMPLATE postgres', '42501' ],
		[ 'nobody', 'postgres', 'DROP EXTENSION onerepl', '42501' ],
		[ 'nobody', 'postgres', 'DROP EXTENSION IF EXISTS onerepl CASCADE', '42501' ])
	{
		my ($role, $database, $statement, $wanted) = @$refused;
		my ($status, $out, $err) = $node->psql($database, "\\set VERBOSITY verbose\nSET SESSION AUTHORIZATION $role;\n$statement", on_error_stop => 1);
		like($err, qr/ERROR:  $wanted/, "$role on " . $node->name . ": $statement");
	}
	is(pids($node), $before{ $node->name }, 'and every worker of ' . $node->name . ' still runs');
}

# --- a sender that does not end when it should (F26)
my ($sender) = OneReplTest::workers($pair->node_a, 'sender');
kill 'STOP', $sender;
$pair->a('BEGIN; DROP EXTENSION onerepl CASCADE; ROLLBACK');
is(join(' ', OneReplTest::workers($pair->node_a, 'sender')), $sender, 'it keeps its place');
$pair->a("INSERT INTO t VALUES (40000, 'while it sleeps')");
$pair->poll_a("SELECT pg_sleep(3) IS NOT NULL AND count(*) = 1 FROM pg_stat_activity WHERE backend_type = 'onerepl sender'",
	'and nobody starts a second one');
kill 'CONT', $sender;
$pair->a("INSERT INTO t VALUES (40001, 'when it ended')");
$pair->wait_identical('t', { name => 'another one takes its place when it has ended' });
ok(OneReplTest::wait_for(sub { my @senders = OneReplTest::workers($pair->node_a, 'sender'); return @senders == 1 && $senders[0] != $sender }, 20),
	'there is one sender');
# Two that number at once would meet at the first number of a batch: the later one waits, and fails unless the other one did.
my $other = $pair->node_a->background_psql('postgres');
$other->query_safe('BEGIN; INSERT INTO onerepl.batch SELECT b.last + 1, b.last + 1, b.identity_before, b.random, b.snapshot, b.transactions'
	  . ' FROM onerepl.batch AS b ORDER BY first DESC LIMIT 1');
$pair->a("INSERT INTO t VALUES (40002, 'the same number')");
$pair->poll_a("SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'onerepl sender' AND wait_event = 'transactionid'",
	'the sender gives no number that another one may have given', wanted => '1');
$other->query_safe('ROLLBACK');
$other->quit;
$pair->wait_identical('t', { name => 'and goes on' });
is($pair->a('SELECT sum(last - first + 1) = max(last) FROM onerepl.batch'), 't', 'no number was given twice');

# --- pg_upgrade (F21)
$pair->a('CREATE SCHEMA app; ' . q{SELECT onerepl_add_schema('app', new_tables => true); ALTER SCHEMA app RENAME TO "new app"});
$pair->b('CREATE SCHEMA "new app"; CREATE TABLE "new app".later (id int PRIMARY KEY)');
$pair->wait_settled('before pg_upgrade');
# What nobody has numbered yet.
for my $node ($pair->nodes)
{
	$node->safe_psql('postgres', "ALTER SYSTEM SET onerepl.databases = ''");
	$node->reload;
	OneReplTest::wait_for(sub { OneReplTest::workers($node, 'sender') + OneReplTest::workers($node, 'receiver') == 0 }, 20);
}
$pair->a("INSERT INTO t VALUES (50000, 'not numbered yet')");
my $numbered = $pair->a('SELECT max(last) FROM onerepl.batch');
for my $side (qw(a b))
{
	my $old = $pair->{"node_$side"};
	$old->safe_psql('postgres', 'ALTER SYSTEM RESET onerepl.databases');
	$old->stop('fast');
	my $new = PostgreSQL::Test::Cluster->new("new_$side");
	$new->init(extra => [ '--locale=C', '--encoding=UTF8' ]);
	$new->append_conf('postgresql.conf', OneReplTest::base_conf());
	$new->append_conf('postgresql.conf', "onerepl.listen = '127.0.0.1:$pair->{listen}'") if $side eq 'b';
	my $bin = $old->config_data('--bindir');
	my $folder = PostgreSQL::Test::Utils::tempdir();
	my $here = Cwd::getcwd();
	chdir $folder or die;
	my ($out, $err);
	my $good = IPC::Run::run([ "$bin/pg_upgrade", '--no-sync', '-b', $bin, '-B', $bin, '-d', $old->data_dir, '-D', $new->data_dir,
		'-s', $new->host, '-p', $old->port, '-P', $new->port ], '>', \$out, '2>', \$err);
	ok($good, "pg_upgrade of $side") or diag("$out$err");
	chdir $here or die;
	$new->append_conf('postgresql.conf', "onerepl.databases = ''");
	$new->start;
	$pair->{"node_$side"} = $new;
}
is($pair->a('SELECT max(last) FROM onerepl.batch'), $numbered, 'nothing was numbered meanwhile');
is($pair->b('SELECT count(*) FROM t WHERE id = 50000'), '0', 'and nothing written');
for my $node ($pair->nodes)
{
	$node->append_conf('postgresql.conf', "onerepl.databases = 'postgres'");
	$node->reload;
}
$pair->a(q{CREATE TABLE "new app".later (id int PRIMARY KEY); INSERT INTO "new app".later VALUES (1)});
$pair->wait_identical('t', '"new app".later', { name => 'replication goes on, also of new tables of a schema', deadline => 60 });
$pair->wait_settled('after pg_upgrade');
for my $node ($pair->nodes)
{
	is($node->safe_psql('postgres', "SELECT string_agg(message, '; ') FROM onerepl.journal WHERE level = 'critical'"), '', 'nothing critical on ' . $node->name);
}
is($pair->a("SELECT count(*) FROM pg_attribute AS a JOIN pg_class AS c ON c.oid = a.attrelid WHERE c.relnamespace = 'onerepl'::regnamespace AND c.relkind = 'r'"
	  . " AND a.atttypid::regtype::text LIKE 'reg%' AND a.atttypid NOT IN ('regclass'::regtype, 'regrole'::regtype, 'regtype'::regtype)"),
	'0', 'no column is of a type that pg_upgrade refuses');

$pair->finish;
done_testing();
