# The window of a refresh, case by case: the copy stands still while rows change that it has reached, has not, and never will. Behind
# LIDEnd the same are conflicts. Then: one snapshot for a whole table; a link that starts anew under load, and at a read point.
use strict;
use warnings;
use IPC::Run ();
use OneReplTest;
use PostgreSQL::Test::Utils;
use Test::More;

# Every third row has a TOAST value: an update that leaves it alone does not carry the whole row.
my $fill = "INSERT INTO w SELECT n, n, 'old', CASE WHEN n % 3 = 0 THEN repeat(n::text, 2000) END FROM generate_series(1, 1000) AS n";
my $pair = OneReplTest->new(schema => <<'SQL');
CREATE TABLE w (id int PRIMARY KEY, u int UNIQUE, v text, big text);
ALTER TABLE w ALTER big SET STORAGE EXTERNAL;
CREATE TABLE names (name text PRIMARY KEY, n int);
SQL

# name; changes; keys whose rows are at once as on A; keys of rows with a TOAST value that only the copy will bring
my @cases = (
	[ 'an insert that the copy will catch',     "INSERT INTO w VALUES (5000, 5000, 'ahead', repeat('a', 3000))", [5000] ],
	[ 'an insert that it will not catch',       "INSERT INTO w VALUES (-5, -5, 'behind', repeat('b', 3000))", [-5] ],
	[ 'an update of a row that it has reached', "UPDATE w SET v = 'reached' WHERE id IN (9, 10)", [ 9, 10 ] ],
	[ 'of one that it has not',                 "UPDATE w SET v = 'not reached' WHERE id IN (989, 990)", [989], [990] ],
	[ 'of one that it will not reach',          "UPDATE w SET v = 'behind, changed' WHERE id = -5", [-5] ],
	[ 'a delete of a row that it has reached',  'DELETE FROM w WHERE id IN (20, 21)', [ 20, 21 ] ],
	[ 'of one that it has not',                 'DELETE FROM w WHERE id IN (980, 981)', [ 980, 981 ] ],
	[ 'of one that it will not reach',          "INSERT INTO w VALUES (-6, -6); DELETE FROM w WHERE id = -6", [-6] ],
	[ 'a key that comes again, reached',        "DELETE FROM w WHERE id = 30; INSERT INTO w VALUES (30, 30, 'again', 'z')", [30] ],
	[ 'and not reached',                        "DELETE FROM w WHERE id = 969; INSERT INTO w VALUES (969, 969, 'again', 'z')", [969] ],
	[ 'and within one transaction',             "BEGIN; DELETE FROM w WHERE id = 966; INSERT INTO w VALUES (966, 966, 'again', 'z'); COMMIT", [966] ],
	[ 'keys that move to what is not copied',   'UPDATE w SET id = 6000 + id WHERE id IN (40, 42)', [ 40, 42, 6040, 6042 ] ],
	[ 'keys that move to what is',              'UPDATE w SET id = -id WHERE id IN (950, 951)', [ 950, 951, -950, -951 ] ],
	[ 'a key that moves there and back',        'UPDATE w SET id = -948 WHERE id = 948; UPDATE w SET id = 948 WHERE id = -948', [ 948, -948 ] ],
	[ 'and the other way',                      'UPDATE w SET id = 7045 WHERE id = 45; UPDATE w SET id = 45 WHERE id = 7045', [ 45, 7045 ] ],
	[ 'keys that change places',                'BEGIN; UPDATE w SET id = 0 WHERE id = 48; UPDATE w SET id = 48 WHERE id = 945; UPDATE w SET id = 945 WHERE id = 0; COMMIT',
		[ 48, 945 ] ],
	[ 'a unique value from not copied to copied', 'UPDATE w SET u = -930 WHERE id = 931; UPDATE w SET u = 931 WHERE id = 70', [70] ],
	[ 'and from copied to not copied',          'UPDATE w SET u = -80 WHERE id = 80; UPDATE w SET u = 80 WHERE id = 925', [ 80, 925 ] ],
	[ 'and both at once',                       'BEGIN; UPDATE w SET u = -1 WHERE id = 90; UPDATE w SET u = 90 WHERE id = 920; UPDATE w SET u = 920 WHERE id = 90; COMMIT',
		[ 90, 920 ] ],
);

sub rows_of
{
	my ($node, $keys) = @_;
	return $node->safe_psql('postgres', 'SELECT id, u, v, md5(big) FROM w WHERE id IN (' . join(', ', @$keys) . ') ORDER BY id');
}

sub wait_done
{
	my $name = shift;
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	$pair->poll_a("SELECT count(*) = 0 FROM onerepl.refresh WHERE state IN ('waiting', 'running', 'paused', 'sent', 'cancelling')",
		"$name: done", deadline => 60) or $pair->show_state('w');
	return;
}

# Refreshes w, and stops when between 300 and 900 rows are copied.
sub stand_still
{
	my $method = shift;
	$pair->a("SELECT onerepl_refresh('hq', 'w', '$method', chunk_rows => 100, rows_per_second => 300)");
	$pair->poll_a("SELECT rows_done >= 300 FROM onerepl.refresh ORDER BY id DESC LIMIT 1", "$method: rows are copied");
	$pair->a("SELECT onerepl_refresh_pause('hq')");
	$pair->wait_settled($method);
	cmp_ok($pair->a('SELECT last_key[1] FROM onerepl.refresh ORDER BY id DESC LIMIT 1'), '<', 900, "$method: and others are not");
	is($pair->b("SELECT state FROM onerepl_status()"), 'refreshing', "$method: the status tells it");
	return;
}

$pair->a($fill);
for my $method ('empty', 'repair')
{
	# Stale rows, too few, too many, and such that hold unique values which chunks and changes will bring.
	$pair->b("SET onerepl.allow_writes = on; UPDATE w SET u = u + 20000; UPDATE w SET u = 20999 - u + 1, v = 'stale' WHERE id > 300;
	          DELETE FROM w WHERE id % 7 = 0; INSERT INTO w VALUES (-1, -1), (2000000, 12345), (-950, 5000)") if $method eq 'repair';
	$pair->a("SELECT onerepl_add_table('w')") if $method eq 'empty';
	stand_still($method);
	for my $case (@cases)
	{
		my ($name, $sql, $now, $later) = @$case;
		$pair->a($sql);
		$pair->wait_settled("$method: $name");
		is(rows_of($pair->node_b, $now), rows_of($pair->node_a, $now), "$method: $name");
		is(rows_of($pair->node_b, $later), '', "$method: $name, with a value that only the copy brings") if $later && $method eq 'empty';
	}
	$pair->a("SELECT onerepl_refresh_resume('hq'); UPDATE onerepl.refresh SET rows_per_second = NULL WHERE state = 'running'");
	wait_done("window, $method");
	$pair->wait_identical('w', { name => "window, $method: identical" });
	is($pair->b('SELECT count(*) FROM onerepl.failure'), '0', "$method: no failure");
	$pair->a("TRUNCATE w; $fill");
	$pair->wait_identical('w');
}

# --- behind LIDEnd the same are conflicts: what is done on B, what on A, the error
for my $conflict (
	[ 'an insert of a row that is there', "INSERT INTO w VALUES (7777, 7777)", "INSERT INTO w VALUES (7777, 7777, 'strict')", '23505' ],
	[ 'an update of a missing row', 'DELETE FROM w WHERE id = 101', "UPDATE w SET v = 'strict' WHERE id = 101", 'P0002' ],
	[ 'a delete of a missing row', 'DELETE FROM w WHERE id = 103', 'DELETE FROM w WHERE id = 103', 'P0002' ],
	[ 'a unique value that is there', 'INSERT INTO w VALUES (8888, 8001)', 'INSERT INTO w VALUES (8001, 8001)', '23505' ],
	[ 'a key that moves to one that is there', 'INSERT INTO w VALUES (8002, 8002)', 'UPDATE w SET id = 8002 WHERE id = 104', '23505' ],
	[ 'a key that moves from a missing one', 'DELETE FROM w WHERE id = 106', 'UPDATE w SET id = 8003 WHERE id = 106', 'P0002' ])
{
	my ($name, $on_b, $on_a, $sqlstate) = @$conflict;
	$pair->b("SET onerepl.allow_writes = on; $on_b");
	$pair->a($on_a);
	$pair->poll_b("SELECT sqlstate = '$sqlstate' FROM onerepl.failed", "behind LIDEnd: $name is F");
	$pair->b("SELECT onerepl_resolve_all('branch', 'overwrite')");
	$pair->wait_settled($name);
}
$pair->wait_identical('w', { name => 'resolved' });

# --- a range of keys is mended: a missing row of it may be left to the copy, one outside is missed
$pair->b("SET onerepl.allow_writes = on; DELETE FROM w WHERE id IN (303, 510, 594)");
$pair->a("SELECT onerepl_refresh('hq', 'w', 'repair', key_from => '{500}', key_to => '{600}', chunk_rows => 10, rows_per_second => 20)");
$pair->poll_a("SELECT rows_done >= 20 FROM onerepl.refresh ORDER BY id DESC LIMIT 1", 'a range: rows are copied');
$pair->a("SELECT onerepl_refresh_pause('hq')");
$pair->a("UPDATE w SET v = 'in the range' WHERE id IN (510, 594)");
$pair->wait_settled('in the range');
is($pair->b("SELECT string_agg(id || v, ' ') FROM w WHERE id IN (510, 594)"), '510in the range', 'a missing row that the range brings is left to it');
$pair->a("UPDATE w SET v = 'outside' WHERE id = 303");
$pair->poll_b("SELECT sqlstate = 'P0002' FROM onerepl.failed", 'one that it does not bring is F');
$pair->b("SELECT onerepl_resolve_all('branch', 'skip')");
$pair->wait_settled('outside');
$pair->a("SELECT onerepl_refresh_resume('hq'); UPDATE onerepl.refresh SET rows_per_second = NULL WHERE state = 'running'");
wait_done('a range');
$pair->a("SELECT onerepl_refresh('hq', 'w', 'repair', key_from => '{302}', key_to => '{303}')");
wait_done('another one');
$pair->wait_identical('w', { name => 'ranges are mended' });

# --- one snapshot for a whole table
$pair->a("INSERT INTO names SELECT chr(65 + n % 57) || n, n FROM generate_series(1, 500) AS n; SELECT onerepl_add_table('names')");
$pair->b("SET onerepl.allow_writes = on; INSERT INTO names VALUES ('zz', 1), ('B1', 7); UPDATE w SET v = 'stale' WHERE id % 5 = 0; DELETE FROM w WHERE id % 11 = 0");
$pair->a("BEGIN; SELECT onerepl_refresh('hq', 'w', chunk_rows => 100, isolation => 'repeatable read'),
          onerepl_refresh('hq', 'names', 'repair', chunk_rows => 30, isolation => 'repeatable read'); COMMIT;
          UPDATE w SET id = -id WHERE id = 700; UPDATE names SET n = -n WHERE n < 20");
wait_done('one snapshot');
$pair->wait_identical('w', 'names', { name => 'one snapshot: identical' });
is($pair->a("SELECT count(*) || ' ' || bool_and(one_snapshot) FROM onerepl.refresh_progress WHERE lid_end - lid_start > 10 AND started_at > now() - interval '1 min' AND one_snapshot"),
	'2 true', 'and in chunks');
is($pair->b("SELECT count(DISTINCT xmin::text) FROM w WHERE id > 0"), '1', 'written by one transaction');
is(scalar((OneReplTest::fails($pair->node_a, "SELECT onerepl_refresh('hq', 'w', isolation => 'serializable')"))[0]), '22023', 'there are two isolations');

# --- a link that starts anew while A is in use: what is numbered belongs to the refresh that starts with it
$pair->b("SELECT onerepl_restart_link('branch'); SET onerepl.allow_writes = on; DELETE FROM w WHERE id IN (200, 201, 202)");
my $session = IPC::Run::start([ 'psql', '-XAtq', '-v', 'ON_ERROR_STOP=1', '-d', $pair->node_a->connstr('postgres'),
	map { ('-c', $_) } 'BEGIN', "SELECT onerepl_restart_link('hq')", "SELECT onerepl_refresh('hq', 'w', 'repair')", 'SELECT pg_sleep(2)', 'COMMIT' ],
	'>', '/dev/null');
$pair->poll_a("SELECT count(*) > 0 FROM pg_locks WHERE relation = 'onerepl.database'::regclass AND mode = 'ExclusiveLock'", 'it starts anew');
$pair->a("UPDATE w SET v = 'meanwhile' WHERE id IN (200, 201); DELETE FROM w WHERE id = 202");
IPC::Run::finish($session);
wait_done('anew');
$pair->wait_settled('anew');
is($pair->b('SELECT count(*) FROM onerepl.failure'), '0', 'what changed while the link was started anew is no conflict');
$pair->wait_identical('w', { name => 'started anew: identical' });

# --- at a read point: the central is as it was before that number
my $last = $pair->a('SELECT numbered_to FROM onerepl_status()');
$pair->a("SELECT onerepl_verify('hq', 'w')");
wait_done('verification');
$pair->a("INSERT INTO w VALUES (3001, 3001), (3002, 3002); DELETE FROM w WHERE id = 500");
$pair->wait_settled('before the read point');
$pair->b("SELECT onerepl_restart_link('branch'); SET onerepl.allow_writes = on; DELETE FROM w WHERE id > 3000 AND id < 4000; INSERT INTO w VALUES (500)");
my $newest = $pair->a('SELECT numbered_to FROM onerepl_status()');
is(scalar((OneReplTest::fails($pair->node_a, "SELECT onerepl_restart_link('hq', read_point => $newest + 2)"))[0]), '22023', 'a read point behind LIDStart + 1 is refused');
is(scalar((OneReplTest::fails($pair->node_a, "SELECT onerepl_restart_link('hq', read_point => 0)"))[0]), '22023', 'one before all that is known, too');
is(scalar((OneReplTest::fails($pair->node_b, "SELECT onerepl_restart_link('branch', read_point => 1)"))[0]), '55000', 'and one at the central');
$pair->a("SELECT onerepl_restart_link('hq', read_point => $last + 1)");
$pair->wait_identical('w', { name => 'what is behind the read point comes again' });
$pair->wait_settled('read point');
is($pair->b('SELECT count(*) FROM onerepl.failure'), '0', 'without a conflict');

$pair->finish;
done_testing();
