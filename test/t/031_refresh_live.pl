# A refresh of many rows while they are inserted, updated (keys too) and deleted, over a bad channel, with kill -9 of sender,
# receivers and both servers: never begun again, and identical at the end by the ordered text of both. Then one byte is changed by hand:
# found, named, mended, and nothing else rewritten.
# REFRESH_ROWS=5000000 REFRESH_KILLS=30 makes a soak test of it, which takes about half an hour.
use strict;
use warnings;
use OneReplTest;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(sleep time);

my $rows = $ENV{REFRESH_ROWS} // 200_000;
my $kills = $ENV{REFRESH_KILLS} // 8;
my $speed = $rows / 100 > 20_000 ? int($rows / 100) : 20_000;    # rows per second
my $patience = 240 + $rows / 2000 + 20 * $kills;
my $pair = OneReplTest->new(proxy => { delay => '0:0.02' }, schema => <<'SQL');
CREATE TABLE big (id int PRIMARY KEY, u int UNIQUE, v text, n int DEFAULT 0, long text);
ALTER TABLE big ALTER long SET STORAGE EXTERNAL;
CREATE TABLE other (id int PRIMARY KEY, v text);
SQL
$pair->a(<<SQL);
INSERT INTO big SELECT n, n, 'row ' || n, 0, CASE WHEN n % 1000 = 0 THEN repeat(n::text, 3000) END FROM generate_series(1, $rows) AS n;
ANALYZE big;
SQL

# Random changes of random rows, all of them by key; unique values move about too.
my $load = "$PostgreSQL::Test::Utils::tmp_check/load.sql";
append_to_file($load, <<SQL);
\\set id random(1, $rows)
\\set other random(1, $rows)
\\set kind random(1, 6)
\\set truncate random(1, 200)
\\if :kind = 1
DELETE FROM big WHERE id = :id;
\\elif :kind = 2
INSERT INTO big VALUES (:id, :other, 'new') ON CONFLICT DO NOTHING;
\\elif :kind = 3
UPDATE big SET id = :other WHERE id = :id AND NOT EXISTS (SELECT FROM big WHERE id = :other);
\\elif :kind = 4
UPDATE big SET u = :other WHERE id = :id AND NOT EXISTS (SELECT FROM big WHERE u = :other);
\\elif :kind = 5
BEGIN;
DELETE FROM big WHERE id = :id;
INSERT INTO big VALUES (:id, :id, 'again') ON CONFLICT DO NOTHING;
COMMIT;
\\else
UPDATE big SET v = v || '.', n = n + 1 WHERE id BETWEEN :id AND :id + 3;
\\endif
INSERT INTO other VALUES (:id, 'x') ON CONFLICT (id) DO UPDATE SET v = other.v || 'y';
\\if :truncate = 1
TRUNCATE other;
\\endif
SQL

sub digest
{
	my $node = shift;
	my $copy = 'COPY (SELECT * FROM big ORDER BY id) TO STDOUT';
	my $connection = $node->connstr('postgres');
	my $digest = `psql -XAtq -d "$connection" -c "$copy" | md5sum`;
	return $? == 0 ? $digest : '';
}

sub wait_refreshed
{
	my $name = shift;
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	$pair->poll_a("SELECT count(*) = 0 FROM onerepl.refresh WHERE state IN ('waiting', 'running', 'paused', 'sent', 'cancelling')",
		"$name: done", deadline => $patience) or $pair->show_state;
	return;
}

sub run_refresh
{
	my $method = shift;
	if ($method eq 'empty')
	{
		$pair->a("SELECT onerepl_add_table('other'); BEGIN; SELECT onerepl_add_table('big', initial => 'refresh');
		          UPDATE onerepl.refresh SET chunk_rows = 5000, rows_per_second = $speed; COMMIT");
	}
	else { $pair->a("SELECT onerepl_refresh('hq', 'big', 'repair', chunk_rows => 5000, rows_per_second => $speed)"); }
	# Only now: what is changed before a table is tracked, or before the mending of what differs has begun, is another matter.
	my $client = OneReplTest::start_pgbench($pair->node_a, '-c', '2', '-T', '600', '-R', '300', '-f', $load, '--max-tries=10');
	my $id = $pair->a("SELECT max(id) FROM onerepl.refresh");
	my ($killed, $highest, $end) = (0, 0, time + $patience);
	while (time < $end)
	{
		sleep 0.7;
		my ($status, $state) = OneReplTest::ask($pair->node_a, "SELECT state || ' ' || rows_done FROM onerepl.refresh WHERE id = $id");
		next if $status != 0 || !$state;
		my ($word, $done) = split / /, $state;
		ok(0, "$method: begun again at $done, was at $highest") if $done < $highest;
		$highest = $done;
		last if $word !~ /waiting|running|sent/;
		next if $killed >= $kills || $done == 0;
		if ($killed % 5 == 4) { OneReplTest::crash($killed % 2 ? $pair->node_a : $pair->node_b); }
		else { OneReplTest::kill_worker($killed % 2 ? ($pair->node_a, 'sender') : ($pair->node_b, 'receiver')) or next; }
		$killed++;
		OneReplTest::wait_up($_) for $pair->nodes;
		# The load ends when its server does.
		if (!$client->pumpable)
		{
			eval { $client->finish };
			$client = OneReplTest::start_pgbench($pair->node_a, '-c', '2', '-T', '600', '-R', '300', '-f', $load, '--max-tries=10');
		}
	}
	note "$killed kills";
	cmp_ok($killed, '>=', $kills / 2, "$method: there were kills");
	is($pair->a("SELECT state FROM onerepl.refresh WHERE id = $id"), 'done', "$method: done") or $pair->show_state('big');
	$client->kill_kill;
	eval { $client->finish };
	$pair->calm_proxy;
	$pair->wait_settled($method, 60 + $rows / 10000);
	my ($on_a, $on_b) = map { digest($_) } $pair->nodes;
	is($on_b, $on_a, "$method: identical");
	isnt($on_a, '', 'and there is something');
	note `psql -XAt -d "@{[ $pair->node_a->connstr('postgres') ]}" -c "SELECT rows_done, chunks, finished_at - started_at FROM onerepl.refresh WHERE id = $id"`;
	$pair->a("SELECT onerepl_verify('hq', 'big')");
	wait_refreshed("$method: verification");
	is($pair->b("SELECT complete || ' ' || differences FROM onerepl.verified WHERE relation = 'big'::regclass"), 'true 0', "$method: and verified");
	$pair->wait_identical('other');
	is($pair->b('SELECT count(*) FROM onerepl.failure'), '0', "$method: no failure");
	return;
}

$pair->tell_proxy('/set?loss=0.1&repeat=0.1&reorder=0.05&damage=0.05&cut=0.03');
run_refresh('empty');
$pair->tell_proxy('/set?loss=0.1&repeat=0.1&reorder=0.05&damage=0.05&cut=0.03');
$pair->b("SET onerepl.allow_writes = on; DELETE FROM big WHERE id % 11 = 0; UPDATE big SET v = 'stale' WHERE id % 13 = 0;
          UPDATE big SET u = -u WHERE id % 17 = 0; INSERT INTO big SELECT n, n FROM generate_series(10 * $rows, 10 * $rows + 100) AS n");
run_refresh('repair');

# --- one byte
my $spoilt = $pair->b("SELECT min(id) FROM big WHERE id > $rows / 2 AND v <> ''");
$pair->b("CREATE TABLE before AS SELECT id, xmin::text AS x, ctid AS c FROM big WHERE id <> $spoilt;
          SET onerepl.allow_writes = on; UPDATE big SET v = 'R' || substr(v, 2) WHERE id = $spoilt");
$pair->a("SELECT onerepl_verify('hq', 'big')");
wait_refreshed('one byte');
is($pair->b('SELECT count(*) FROM onerepl.differences'), '1', 'one byte: found');
my $range = $pair->b("SELECT format('key_from => %L, key_to => %L', key_from, key_to) FROM onerepl.differences");
$pair->a("SELECT onerepl_verify('hq', 'big', with_rows => true, $range)");
wait_refreshed('its name');
is($pair->b('SELECT key, columns FROM onerepl.differing_rows'), "{$spoilt}|{v}", 'named');
$pair->a("SELECT onerepl_refresh('hq', 'big', 'repair', $range)");
wait_refreshed('mended');
is(digest($pair->node_b), digest($pair->node_a), 'mended');
is($pair->b('SELECT count(*) FROM before AS o LEFT JOIN big USING (id) WHERE big.xmin::text IS DISTINCT FROM o.x OR big.ctid IS DISTINCT FROM o.c'), '0',
	'nothing else was rewritten');

$pair->finish;
done_testing();
