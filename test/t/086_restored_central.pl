# A central that was restored from its dump and takes over, as docs/backup.md says: what its administrator decided (targets, branches, what a
# link may write, whether it executes statements) holds there, so that rows go where they went before, and nowhere else.
use strict;
use warnings;
use OneReplTest;
use PostgreSQL::Test::Utils;
use Test::More;

my $pair = OneReplTest->new(tables => '{public.here, public.branches, public.filtered}', conf => "onerepl.databases = 'postgres, restored'", schema => <<'SQL');
CREATE TABLE t (id int PRIMARY KEY, v text);
CREATE TABLE shared (id int PRIMARY KEY, v text);
CREATE TABLE filtered (id int PRIMARY KEY, v text);
CREATE TABLE out_of_reach (id int PRIMARY KEY);
SQL
my $b = $pair->node_b;
$pair->b(<<'SQL');
CREATE TABLE here (LIKE t INCLUDING ALL);
CREATE TABLE branches (branch text, id int, v text, PRIMARY KEY (branch, id));
INSERT INTO branches VALUES ('other', 1, 'of another branch');
SELECT onerepl_set_target('branch', 'public', 't', 'public', 'here');
SELECT onerepl_set_target('branch', 'public', 'shared', 'public', 'branches', 'branch', 'north');
SQL
OneReplTest::apply_statements($b);
$pair->track(qw(t shared filtered));
$pair->a("SELECT onerepl_set_filter('hq', 'filtered', 'id < 100', refresh => NULL)");
$pair->a("INSERT INTO $_ SELECT n, 'before' FROM generate_series(1, 470) AS n") for qw(t shared filtered);
$pair->wait_settled('before');

my $dump = PostgreSQL::Test::Utils::tempdir() . '/b.sql';
my @there = ('-h', $b->host, '-p', $b->port);
$b->command_ok([ 'pg_dump', @there, '-f', $dump, 'postgres' ], 'pg_dump');
$pair->b('CREATE DATABASE restored');
$b->command_ok([ 'psql', '-Xq', '-v', 'ON_ERROR_STOP=1', @there, '-f', $dump, 'restored' ], 'restore');
sub restored { my $sql = shift; return $b->safe_psql('restored', $sql); }

for my $decided (map({ "SELECT * FROM onerepl.$_ ORDER BY 1, 2, 3" } qw(target allowed)), 'SELECT id, name, role, ddl, statements_as FROM onerepl.link ORDER BY id')
{
	my $wanted = $pair->b($decided);
	isnt($wanted, '', 'there is something to compare');
	is(restored($decided), $wanted, "the same: $decided");
}

# Nothing of the link's state came along, and the original's link goes on until the restored one takes over.
is(restored('SELECT count(*) FROM onerepl.apply_progress') . restored('SELECT count(*) FROM onerepl.waiting'), '00', 'no position is restored');
$pair->a("INSERT INTO t VALUES (1000, 'in the original')");
$pair->wait_settled('the original');
is($pair->b('SELECT count(*) FROM here'), '471', 'the original goes on');

$pair->b("ALTER SYSTEM SET onerepl.databases = 'restored'; SELECT pg_reload_conf()");
OneReplTest::poll_ok($b, "SELECT string_agg(DISTINCT datname, ',') FROM pg_stat_activity WHERE backend_type = 'onerepl receiver'", 'the restored one has the receiver', wanted => 'restored');
restored("SELECT onerepl_change_link('branch', secret => '$OneReplTest::secret'), onerepl_restart_link('branch')");
$pair->a("BEGIN; SELECT onerepl_restart_link('hq'); SELECT onerepl_refresh('hq', method => 'repair'); COMMIT");
$pair->a("INSERT INTO $_ VALUES (2000, 'kept back or not'), (0, 'after') ON CONFLICT DO NOTHING") for qw(t shared filtered);
$pair->a('ALTER TABLE filtered ADD w int');
$pair->wait_settled('the restored one', 60);
is(restored('SELECT count(*) FROM t') . ' ' . restored('SELECT count(*) FROM here'), '0 473', 'rows go to the table that they are mapped to');
is(restored('SELECT branch, count(*) FROM branches GROUP BY 1 ORDER BY 1'), "north|472\nother|1", 'with their branch, beside those of others');
is(restored('SELECT count(*), max(id), max(w) FROM filtered'), '100|99|', 'with the rows of the filter, and statements are executed');
$pair->a("SELECT onerepl_verify('hq')");
$pair->poll_a("SELECT count(*) = 0 FROM onerepl.refresh WHERE state IN ('waiting', 'running', 'paused', 'sent', 'cancelling')", 'verified');
is(restored('SELECT count(*), sum(differences), sum(not_compared), bool_and(complete) FROM onerepl.verified'), '3|0|0|t', 'and found equal');
$pair->track('out_of_reach');
$pair->a('INSERT INTO out_of_reach VALUES (1)');
ok(OneReplTest::wait_for(sub { restored('SELECT count(*) FROM onerepl.failed WHERE sqlstate = $$42501$$') eq '1' }, 30), 'what the link may not write is F');
is($pair->b('SELECT count(*) FROM here'), '471', 'the original has got none of it');
$pair->finish;
done_testing();
