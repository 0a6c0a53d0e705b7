# The extension's life: DROP DATABASE, DROP EXTENSION, CREATE EXTENSION again, dump and restore, shutdown, reload.
use strict;
use warnings;
use OneReplTest;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(sleep time);

my $schema = 'CREATE TABLE t (id int PRIMARY KEY, v text)';
my $pair = OneReplTest->new(track => ['t'], schema => $schema, conf => "onerepl.databases = 'postgres, other, restored'");
$pair->a("INSERT INTO t SELECT n, 'base' FROM generate_series(1, 100) AS n");
$pair->wait_identical('t');

sub timed_ok
{
	my ($limit, $name, $code) = @_;
	my $begin = time;
	my $good = $code->();
	my $took = time - $begin;
	ok($good && $took < $limit, sprintf '%s took %.1f s', $name, $took);
	return;
}

sub has_worker { my ($node, $kind) = @_; return scalar OneReplTest::workers($node, $kind); }

# --- workers are there, one of each
is(has_worker($pair->node_a, 'launcher'), 1, 'A has a launcher');
is(has_worker($pair->node_a, 'sender'), 1, 'A has a sender');
is(has_worker($pair->node_b, 'receiver'), 1, 'B has a receiver');

# --- a reload: more receivers, another port
my $port = PostgreSQL::Test::Cluster::get_free_port();
$pair->b("ALTER SYSTEM SET onerepl.receivers = 3");
$pair->b("SELECT pg_reload_conf()");
$pair->poll_b("SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'onerepl receiver'", 'more receivers after a reload', wanted => '3', deadline => 15);
$pair->a("INSERT INTO t SELECT n, 'three receivers' FROM generate_series(101, 200) AS n");
$pair->wait_identical('t');
$pair->b("ALTER SYSTEM SET onerepl.listen = '127.0.0.1:$port'");
$pair->b('SELECT pg_reload_conf()');
$pair->{listen} = $port;
$pair->a(sprintf "UPDATE onerepl.link SET url = '%s'", $pair->url);
$pair->a("INSERT INTO t VALUES (300, 'another port')");
$pair->wait_identical('t', { name => 'another port after a reload' });
$pair->b("ALTER SYSTEM SET onerepl.receivers = 1");
$pair->b('SELECT pg_reload_conf()');

# --- shutdown is not held up, whatever the workers wait for
timed_ok(8, 'a fast shutdown of B', sub { $pair->node_b->stop('fast') });
sleep 1;
timed_ok(8, 'a fast shutdown of A while B is away', sub { $pair->node_a->stop('fast') });
$_->start for $pair->nodes;
$pair->a("INSERT INTO t VALUES (301, 'after both were away')");
$pair->wait_identical('t');

# --- a database that wants another one's port is told once, although the launcher tries again and again
$pair->b('CREATE DATABASE other');
$pair->b('ALTER SYSTEM SET log_min_messages = debug1');    # the postmaster tells what it starts
$pair->node_b->safe_psql('other', "CREATE EXTENSION onerepl; SELECT onerepl_add_remote('late', 'a secret that is long enough')");
my $begin = -s $pair->node_b->logfile;
$pair->b('SELECT pg_reload_conf()');
my $other = $pair->b("SELECT oid FROM pg_database WHERE datname = 'other'");
ok(OneReplTest::wait_for(sub {
		my @tries = slurp_file($pair->node_b->logfile, $begin) =~ /starting background worker process "onerepl sender of database $other"/g;
		return @tries >= 3;
	}, 60), 'the launcher tries again');
$pair->b('ALTER SYSTEM RESET log_min_messages');
$pair->b('SELECT pg_reload_conf()');
is($pair->node_b->safe_psql('other', "SELECT count(*) FROM onerepl.journal WHERE message ~ 'another database of this server listens'"), '1', 'a port that is taken is told once');
$pair->b('DROP DATABASE other');

# --- a database beside it, dropped while its workers run
$pair->a('CREATE DATABASE other');
my ($status) = $pair->node_a->psql('other', "$schema; CREATE EXTENSION onerepl; SELECT onerepl_add_central('nowhere', 'http://127.0.0.1:1', 'a secret that is long enough'); SELECT onerepl_add_table('t')", on_error_die => 1);
$pair->poll_a("SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'onerepl sender' AND datname = 'other'", 'the other database gets its sender', wanted => '1', deadline => 20);
timed_ok(10, 'DROP DATABASE with a sender in it', sub { my ($s) = $pair->node_a->psql('postgres', 'DROP DATABASE other'); $s == 0 });
$pair->a("INSERT INTO t VALUES (302, 'beside DROP DATABASE')");
$pair->wait_identical('t', { name => 'the first database goes on' });
timed_ok(10, 'CREATE DATABASE with this one as its template', sub {
	my ($s) = $pair->node_b->psql('template1', 'CREATE DATABASE copy_of_b TEMPLATE postgres');
	$s == 0; });
$pair->b('DROP DATABASE IF EXISTS copy_of_b');

# --- dump and restore: the configuration is kept, the log is not
my $dump = PostgreSQL::Test::Utils::tempdir() . '/a.sql';
$pair->a("CREATE TABLE chosen (id int PRIMARY KEY, v text)");
$pair->b("CREATE TABLE chosen (id int PRIMARY KEY, v text)");
$pair->track('chosen');
$pair->a("SELECT onerepl_set_filter('hq', 'chosen', 'id < 100', refresh => NULL); INSERT INTO chosen SELECT n, 'x' FROM generate_series(1, 470) AS n");
$pair->wait_settled('chosen');
is($pair->b('SELECT count(*) FROM chosen'), '99', 'the filter holds');
# What is decided about a relation ends with it: in another database its oid is another one's.
$pair->b('CREATE TABLE dropped (id int PRIMARY KEY)');
$pair->a("CREATE TABLE dropped (id int PRIMARY KEY); CREATE SEQUENCE dropped_too; SELECT onerepl_add_table('dropped'), onerepl_set_filter('hq', 'dropped', 'id < 7', refresh => NULL), onerepl_add_sequence('dropped_too')");
$pair->a('INSERT INTO dropped VALUES (1); DROP TABLE dropped; DROP SEQUENCE dropped_too');
$pair->wait_settled('dropped');
is($pair->a("SELECT count(*) FROM onerepl.journal WHERE message LIKE 'tracked table public.dropped was dropped%' AND hint LIKE '%Its filters end with it%'"), '1', 'a filter that ends with its table is told');
$pair->node_a->command_ok([ 'pg_dump', '-h', $pair->node_a->host, '-p', $pair->node_a->port, '-f', $dump, 'postgres' ], 'pg_dump');
$pair->a('CREATE DATABASE restored');
$pair->node_a->command_ok([ 'psql', '-Xq', '-v', 'ON_ERROR_STOP=1', '-h', $pair->node_a->host, '-p', $pair->node_a->port, '-f', $dump, 'restored' ], 'restore');
is($pair->node_a->safe_psql('restored', 'SELECT name, url FROM onerepl.link'), 'hq|' . $pair->url, 'the link is kept');
is($pair->node_a->safe_psql('restored', 'SELECT relation FROM onerepl.tracked ORDER BY relation::text'), "chosen\nt", 'the tracked tables are kept');
is($pair->node_a->safe_psql('restored', 'SELECT relation, rows FROM onerepl.filter'), 'chosen|id < 100', 'the filter is kept, and none of what is gone');
is($pair->node_a->safe_psql('restored', 'SELECT count(*) FROM onerepl.tracked_sequence'), '0', 'nor sequences that are gone');
is($pair->node_a->safe_psql('restored', 'SELECT count(*) FROM t'), $pair->a('SELECT count(*) FROM t'), 'so are the rows');
isnt($pair->node_a->safe_psql('restored', 'SELECT id FROM onerepl.database'), $pair->a('SELECT id FROM onerepl.database'), 'the restored one is another database');
is($pair->node_a->safe_psql('restored', 'SELECT coalesce(max(last), 0) < 50 FROM onerepl.batch'), 't', 'the log is not');
sleep 2;
is($pair->b("SELECT state ~ '^stopped' FROM onerepl_status()"), 'f', 'the restored copy does not disturb the link of the original');
# The restored one takes over, as docs/backup.md says: what the filter keeps back does not leave it.
$pair->a("ALTER SYSTEM SET onerepl.databases = 'restored'; SELECT pg_reload_conf()");
ok(OneReplTest::wait_for(sub { $pair->a("SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'onerepl sender' AND datname = 'postgres'") eq '0' }, 30), 'the original rests');
# What is logged before the link starts is of the restored database, too: the filter's number is of another log.
$pair->node_a->safe_psql('restored', "INSERT INTO chosen VALUES (501, 'kept back'), (-1, 'sent')");
ok(OneReplTest::wait_for(sub { $pair->node_a->safe_psql('restored', 'SELECT count(*) > 0 FROM onerepl.batch') eq 't' }, 30), 'the restored one gives numbers');
$pair->b("SELECT onerepl_restart_link('branch')");
$pair->node_a->safe_psql('restored', "BEGIN; SELECT onerepl_change_link('hq', secret => '$OneReplTest::secret'), onerepl_restart_link('hq', read_point => 1); COMMIT");
$pair->node_a->safe_psql('restored', "INSERT INTO chosen VALUES (500, 'kept back'), (0, 'sent')");
ok(OneReplTest::wait_for(sub { ($pair->node_b->psql('postgres', 'SELECT count(*) FROM chosen WHERE id = 0'))[1] eq '1' }, 60), 'it is in use');
ok(OneReplTest::wait_for(sub { ($pair->node_a->psql('restored', 'SELECT bool_and(written_to = numbered_to) FROM onerepl_status()'))[1] eq 't' }, 60), 'and in step');
is($pair->b('SELECT count(*), min(id), max(id) FROM chosen'), '101|-1|99', 'with the rows of the filter');
$pair->node_a->safe_psql('restored', "SELECT onerepl_verify('hq', 't'), onerepl_verify('hq', 'chosen')");
OneReplTest::poll_ok($pair->node_b, 'SELECT count(*), sum(differences), sum(not_compared), bool_and(complete) FROM onerepl.verified WHERE complete', 'and found equal', wanted => '2|0|0|t');
$pair->a("ALTER SYSTEM SET onerepl.databases = 'postgres'; SELECT pg_reload_conf()");
ok(OneReplTest::wait_for(sub { $pair->a("SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'onerepl sender' AND datname = 'restored'") eq '0' }, 30), 'it rests');
$pair->b("SELECT onerepl_restart_link('branch')");
$pair->a("BEGIN; SELECT onerepl_restart_link('hq'); SELECT onerepl_refresh('hq', method => 'repair'); COMMIT");
timed_ok(10, 'DROP DATABASE of the restored one', sub { my ($s) = $pair->node_a->psql('postgres', 'DROP DATABASE restored WITH (FORCE)'); $s == 0 });
$pair->a("INSERT INTO t VALUES (303, 'after the restored copy')");
$pair->wait_identical('t', { name => 'the original goes on' });

# --- DROP EXTENSION while the workers run, and CREATE EXTENSION again
timed_ok(10, 'DROP EXTENSION on A', sub { my ($s) = $pair->node_a->psql('postgres', 'DROP EXTENSION onerepl'); $s == 0 });
is($pair->a("SELECT count(*) FROM pg_trigger WHERE tgname LIKE '!onerepl%'"), '0', 'its triggers go with it');
$pair->a("INSERT INTO t VALUES (400, 'not tracked')");
timed_ok(10, 'DROP EXTENSION on B', sub { my ($s) = $pair->node_b->psql('postgres', 'DROP EXTENSION onerepl'); $s == 0 });
is($pair->b("SELECT count(*) FROM pg_trigger WHERE tgname LIKE '!onerepl%'"), '0', 'the guards too');
is($pair->b("INSERT INTO t VALUES (400, 'not tracked') RETURNING id"), '400', 'B can be written again');
$_->safe_psql('postgres', 'CREATE EXTENSION onerepl') for $pair->nodes;
$pair->link;
$pair->track('t');
$pair->a("INSERT INTO t VALUES (401, 'tracked again')");
$pair->wait_identical('t', { name => 'the extension made again', deadline => 30 });

# --- an extension without its library preloaded does no harm
my $plain = OneReplTest::start_node('plain', 0);
$plain->append_conf('postgresql.conf', "shared_preload_libraries = ''");
$plain->restart;
$plain->safe_psql('postgres', "$schema; CREATE EXTENSION onerepl");
my ($code) = OneReplTest::fails($plain, "SELECT onerepl_add_central('hq', 'http://127.0.0.1:1', 'a secret that is long enough'); SELECT onerepl_add_table('t'); INSERT INTO t VALUES (1)");
note "without preload: $code";
is($plain->safe_psql('postgres', 'SELECT 1'), '1', 'the server is alive');
$plain->stop;

# --- immediate shutdown, single user mode, and every log is free of crashes
$pair->node_a->stop('immediate');
$pair->node_a->start;
$pair->a("INSERT INTO t VALUES (402, 'after an immediate shutdown')");
$pair->wait_identical('t', { name => 'after an immediate shutdown' });
$pair->verify_equal('t');
for my $node ($pair->nodes)
{
	unlike(slurp_file($node->logfile), qr/was terminated by signal|PANIC|TRAP:|cache reference leak|resource was not closed|snapshot reference leak/, 'nothing crashed or leaked on ' . $node->name);
}

$pair->finish;
done_testing();
