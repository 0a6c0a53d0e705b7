# Partitions of B on other servers, by postgres_fdw: every change is there exactly once, whatever crashes between the commit there and
# the commit here. C has two databases, so that there are two foreign servers of which one can commit without the other.
use strict;
use warnings;
use OneReplTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes ();

my $pair = OneReplTest->new(links => 0);
my $c    = PostgreSQL::Test::Cluster->new('c');
$c->init(extra => [ '--locale=C', '--encoding=UTF8' ]);
$c->append_conf('postgresql.conf', 'log_statement = none');
$c->start;
$c->safe_psql('postgres', "CREATE DATABASE $_") for qw(south west);

# ------------------------------------------------------------------------------------------------ the tables

# On C: a table by this name in a database, which B has as a partition of $of.
sub foreign_partition
{
	my ($name, $database, $of, $bound, $columns) = @_;
	$c->safe_psql($database, "CREATE TABLE $name ($columns)");
	$pair->b("CREATE FOREIGN TABLE $name PARTITION OF $of $bound SERVER $database OPTIONS (table_name '$name')");
	return;
}

my $orders = 'id int, region text NOT NULL, n int NOT NULL, v text, big text';
$pair->a("CREATE TABLE orders ($orders, PRIMARY KEY (id)); ALTER TABLE orders ALTER big SET STORAGE EXTERNAL");
$pair->a('CREATE TABLE by_key (id int PRIMARY KEY, v numeric); CREATE TABLE nokey (a int, j json, v numeric)');
$pair->b('CREATE EXTENSION postgres_fdw');
for my $database (qw(south west))
{
	my ($host, $port) = ($c->host, $c->port);
	$pair->b("CREATE SERVER $database FOREIGN DATA WRAPPER postgres_fdw OPTIONS (host '$host', port '$port', dbname '$database', connect_timeout '10',
		    tcp_user_timeout '30000', options '-c session_replication_role=replica -c lock_timeout=60s -c lc_monetary=C');
		CREATE USER MAPPING FOR PUBLIC SERVER $database");
}
$pair->b(<<"SQL");
CREATE TABLE orders ($orders) PARTITION BY LIST (region);
CREATE TABLE orders_north PARTITION OF orders (PRIMARY KEY (id)) FOR VALUES IN ('north');
CREATE TABLE orders_east PARTITION OF orders FOR VALUES IN ('east') PARTITION BY RANGE (n);
CREATE TABLE orders_east_low (v text, id int, big text, region text NOT NULL, n int NOT NULL);
ALTER TABLE orders_east ATTACH PARTITION orders_east_low FOR VALUES FROM (MINVALUE) TO (100);
CREATE TABLE by_key (id int, v numeric) PARTITION BY RANGE (id);
CREATE TABLE by_key_low PARTITION OF by_key (PRIMARY KEY (id)) FOR VALUES FROM (MINVALUE) TO (1000);
CREATE TABLE nokey (a int, j json, v numeric) PARTITION BY LIST (a);
CREATE TABLE nokey_1 PARTITION OF nokey FOR VALUES IN (1);
SQL
# by_key is not a superuser's: another user, and so another transaction at the server.
my $user = $c->safe_psql('postgres', 'SELECT current_user');
$pair->b("CREATE ROLE shop; ALTER TABLE by_key OWNER TO shop; ALTER TABLE by_key_low OWNER TO shop;
	CREATE USER MAPPING FOR shop SERVER west OPTIONS (user '$user', password_required 'false')");
foreign_partition('orders_south', 'south', 'orders', "FOR VALUES IN ('south')", "$orders, PRIMARY KEY (id)");
foreign_partition('orders_west', 'west', 'orders', "FOR VALUES IN ('west')", "$orders, PRIMARY KEY (id)");
foreign_partition('orders_east_high', 'south', 'orders_east', 'FOR VALUES FROM (100) TO (MAXVALUE)', "$orders, PRIMARY KEY (id)");
foreign_partition('by_key_high', 'west', 'by_key', 'FOR VALUES FROM (1000) TO (MAXVALUE)', 'id int PRIMARY KEY, v numeric');
$pair->b('ALTER FOREIGN TABLE by_key_high OWNER TO shop');
foreign_partition('nokey_2', 'south', 'nokey', 'FOR VALUES IN (2)', 'a int, j json, v numeric');

$pair->link;
my @tables = qw(orders by_key nokey);
$pair->track(@tables);

# ------------------------------------------------------------------------------------------------ set-up

$pair->a("INSERT INTO orders VALUES (1, 'south', 1, 'first')");
$pair->poll_b("SELECT sqlstate FROM onerepl.failed", 'a server without the table of positions is F', wanted => '42P01');
my $hint = $pair->b('SELECT hint FROM onerepl.failed');
my ($statements) = $hint =~ /(CREATE SCHEMA.*\)\));/s;
ok($statements, 'the failure has the statements') or diag($hint);
$c->safe_psql($_, $statements) for qw(south west);
$pair->b("SELECT onerepl_resolve('branch', n, 'retry') FROM onerepl.failed");
$pair->wait_identical(@tables, { name => 'the first row on another server' });

# --- the owner's user mapping is used, not a superuser's
$pair->b("ALTER USER MAPPING FOR shop SERVER west OPTIONS (SET user 'nobody')");
$pair->a('INSERT INTO by_key VALUES (999999, 1)');
$pair->poll_b("SELECT message ~ 'could not connect to server \"west\"' FROM onerepl.failed UNION ALL SELECT bool_or(last_error ~ 'west') FROM onerepl_status()", 'the owner has no user there', wanted => 't');
$pair->b("ALTER USER MAPPING FOR shop SERVER west OPTIONS (SET user '$user'); SELECT onerepl_resolve_all('branch', 'retry') FROM onerepl.failed LIMIT 1");
$pair->wait_identical(@tables, { name => 'he has one again' });

# ------------------------------------------------------------------------------------------------ all kinds of changes

sub rows_at { my ($database, $sql) = @_; return $c->safe_psql($database, $sql); }

# C's tables hold exactly the rows of A that belong there.
sub check_places
{
	my $name = shift;
	my %where = (
		orders_south => [ 'south', "SELECT * FROM orders WHERE region = 'south'" ],
		orders_west => [ 'west', "SELECT * FROM orders WHERE region = 'west'" ],
		orders_east_high => [ 'south', "SELECT * FROM orders WHERE region = 'east' AND n >= 100" ],
		by_key_high => [ 'west', 'SELECT * FROM by_key WHERE id >= 1000' ],
		nokey_2 => [ 'south', 'SELECT * FROM nokey WHERE a = 2' ]);
	for my $table (sort keys %where)
	{
		my ($database, $sql) = @{ $where{$table} };
		my $digest = "SELECT count(*) || coalesce(md5(string_agg(t::text, '|' ORDER BY t::text COLLATE \"C\")), '') FROM";
		is(rows_at($database, "$digest $table AS t"), $pair->a("$digest ($sql) AS t"), "$name: $table holds its rows");
	}
	return;
}

$pair->a(<<'SQL');
INSERT INTO orders SELECT g, (ARRAY['north', 'south', 'west', 'east'])[1 + g % 4], g, 'v' || g, repeat(md5(g::text), CASE WHEN g < 20 THEN 500 ELSE 1 END)
    FROM generate_series(2, 300) AS g;
UPDATE orders SET v = v || 'x' WHERE id % 3 = 0;
UPDATE orders SET region = 'south' WHERE id BETWEEN 10 AND 15;
UPDATE orders SET region = 'north' WHERE id BETWEEN 12 AND 17;
UPDATE orders SET region = 'west' WHERE id BETWEEN 14 AND 19;
UPDATE orders SET n = 300 - n WHERE region = 'east';
UPDATE orders SET id = id + 1000 WHERE id % 10 = 1;
DELETE FROM orders WHERE id % 7 = 0;
BEGIN;
INSERT INTO orders VALUES (5000, 'south', 1), (5001, 'west', 1), (5002, 'north', 1), (5003, 'east', 1), (5004, 'east', 1000);
UPDATE orders SET region = 'west' WHERE id = 5000; UPDATE orders SET region = 'south' WHERE id = 5001; UPDATE orders SET region = 'north', id = 6000 WHERE id = 5001;
SAVEPOINT s; DELETE FROM orders WHERE id >= 5000; ROLLBACK TO s;
DELETE FROM orders WHERE id = 5002; UPDATE orders SET v = NULL WHERE id = 5003;
COMMIT;
INSERT INTO by_key SELECT g * 100, 1.0 FROM generate_series(1, 20) AS g;
UPDATE by_key SET v = 1.00; UPDATE by_key SET id = CASE WHEN id < 1000 THEN id + 1005 ELSE id - 895 END WHERE id NOT IN (100, 2000);
DELETE FROM by_key WHERE id IN (305, 1305);
INSERT INTO nokey SELECT 1 + g % 2, '{"a":1}', CASE WHEN g > 6 THEN 1.00 ELSE 1.0 END FROM generate_series(1, 12) AS g; INSERT INTO nokey VALUES (2, NULL, NULL), (2, NULL, NULL);
DELETE FROM nokey WHERE ctid = (SELECT max(ctid) FROM nokey WHERE a = 2 AND v::text = '1.00');
UPDATE nokey SET a = 3 - a WHERE ctid IN (SELECT min(ctid) FROM nokey WHERE v IS NULL OR a = 1 GROUP BY a);
SQL
$pair->wait_identical(@tables, { name => 'inserts, updates, deletes, moves in all directions' });
check_places('changes');

# ------------------------------------------------------------------------------------------------ one server commits, the other does not

# From now on a statement is executed at each COMMIT in a database of C.
sub at_commit
{
	my ($database, $statement) = @_;
	$c->safe_psql($database, <<"SQL");
CREATE OR REPLACE FUNCTION at_commit() RETURNS trigger LANGUAGE plpgsql AS \$\$ BEGIN $statement; RETURN NULL; END \$\$;
CREATE CONSTRAINT TRIGGER at_commit AFTER UPDATE ON onerepl_foreign.position DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION at_commit();
ALTER TABLE onerepl_foreign.position ENABLE ALWAYS TRIGGER at_commit;
SQL
	return;
}

sub refuse_commits { my ($database, $state) = @_; return at_commit($database, "RAISE 'not now' USING ERRCODE = '" . ($state // '40001') . "'"); }

sub allow_commits { return $c->safe_psql($_[0], 'DROP TRIGGER at_commit ON onerepl_foreign.position'); }

sub position { return $c->safe_psql($_[0], 'SELECT max(written) FROM onerepl_foreign.position'); }

my %other = (south => 'west', west => 'south');
my $half_done = 0;
for my $refusing (qw(south west))
{
	my $s_b = $pair->b('SELECT written_to FROM onerepl_status()');
	refuse_commits($refusing);
	$pair->a(<<'SQL');
BEGIN;
INSERT INTO orders SELECT g, (ARRAY['north', 'south', 'west', 'east'])[1 + g % 4], g % 200, 'half' FROM generate_series(7000, 7039) AS g;
UPDATE orders SET region = (ARRAY['north', 'south', 'west', 'east'])[1 + (id / 4) % 4], v = 'moved' WHERE id BETWEEN 7000 AND 7031;
UPDATE orders SET id = id + 100 WHERE id BETWEEN 7020 AND 7039;
DELETE FROM orders WHERE id % 5 = 2 AND id BETWEEN 7000 AND 7200;
UPDATE by_key SET id = CASE WHEN id < 1000 THEN id + 10000 ELSE id - 799 END WHERE id IN (105, 205, 1405, 1505);
INSERT INTO nokey VALUES (1, '1', 1), (2, '2', 2), (2, '2', 2); DELETE FROM nokey WHERE ctid = (SELECT max(ctid) FROM nokey WHERE v = 2);
UPDATE nokey SET a = 3 - a WHERE v IN (1, 2) AND v::text IN ('1', '2');
TRUNCATE nokey; INSERT INTO nokey VALUES (1, '3', 3), (2, '4', 4), (2, '4', 4); DELETE FROM nokey WHERE ctid = (SELECT max(ctid) FROM nokey WHERE v = 4);
COMMIT;
SQL
	$pair->poll_b("SELECT state = 'put off' AND last_error ~ 'not now' FROM onerepl_status()", "$refusing does not commit: told, and no F");
	is($pair->b('SELECT written_to FROM onerepl_status()'), $s_b, 'B has written nothing');
	$half_done++ if position($other{$refusing}) > $s_b;
	allow_commits($refusing);
	$pair->wait_identical(@tables, { name => "after $refusing commits again" });
	check_places("half done, $refusing last");
	$pair->a("DELETE FROM orders WHERE id BETWEEN 7000 AND 7200; DELETE FROM by_key WHERE id > 10000 OR id % 100 = 6; INSERT INTO by_key VALUES (105, 2), (205, 2), (1405, 1), (1505, 1)");
	$pair->wait_identical(@tables);
}
is($half_done, 1, 'one of the two servers commits first, and had its rows before B');

# A row moves from one to the other, and its large value does not travel. If the one that gave it away commits first, nobody has it.
sub big_row { return $pair->a("INSERT INTO orders SELECT 8000, '$_[0]', 1, 'big', string_agg(md5(g::text), '') FROM generate_series(1, 500) AS g"); }
my ($failed, $moved) = (0, 0);
for my $from (qw(south west))
{
	big_row($from);
	$pair->wait_identical(@tables);
	my $n = $pair->b('SELECT written_to FROM onerepl_status()') + 1;
	refuse_commits($other{$from});
	$pair->a("UPDATE orders SET region = '$other{$from}' WHERE id = 8000");
	$pair->poll_b("SELECT state = 'put off' AND last_error ~ 'not now' FROM onerepl_status()", "the row leaves $from");
	allow_commits($other{$from});
	$pair->poll_b("SELECT written_to >= $n OR state ~ 'failed' FROM onerepl_status()", 'the link goes on or stops with F');
	if ($pair->b('SELECT count(*) FROM onerepl.failed'))
	{
		$failed++;
		is($pair->b("SELECT sqlstate || ' ' || n FROM onerepl.failed"), "55000 $n", 'a value that is nowhere is F');
		my $big = $pair->a('SELECT big FROM orders WHERE id = 8000');
		$pair->b("SET onerepl.allow_writes = on; INSERT INTO orders VALUES (8000, '$other{$from}', 1, 'big', '$big')");
		$pair->b("SELECT onerepl_resolve('branch', $n, 'skip')");
	}
	else { $moved++; }
	$pair->wait_identical(@tables, { name => "the row is at $other{$from}" });
	$pair->a('DELETE FROM orders WHERE id = 8000');
}
is("$failed $moved", '1 1', 'one way it is F, the other way the row was there already');

# ------------------------------------------------------------------------------------------------ F

$c->safe_psql('south', "ALTER TABLE orders_south ADD CONSTRAINT no_bad CHECK (v <> 'bad')");
$pair->a("BEGIN; INSERT INTO orders VALUES (9001, 'west', 1, 'good'), (9002, 'south', 1, 'bad'), (9003, 'north', 1, 'good'); COMMIT");
$pair->poll_b('SELECT sqlstate || key FROM onerepl.failed', 'a constraint there is F', wanted => '23514(id)=(9002)');
is(rows_at('west', 'SELECT count(*) FROM orders_west WHERE id = 9001'), 0, 'and nothing of its transaction is anywhere');
$pair->b("SELECT onerepl_resolve('branch', n, 'skip') FROM onerepl.failed");
$pair->a("INSERT INTO orders VALUES (9004, 'west', 1, 'behind')");
$pair->poll_b("SELECT string_agg(id::text, ',' ORDER BY id) FROM orders WHERE id > 9000", 'one record is skipped', wanted => '9001,9003,9004');
$pair->a('DELETE FROM orders WHERE id = 9002');
$pair->poll_b('SELECT sqlstate || key FROM onerepl.failed', 'a missing row is F', wanted => 'P0002(id)=(9002)');
$pair->b("SELECT onerepl_resolve('branch', n, 'overwrite') FROM onerepl.failed");
$c->safe_psql('south', 'ALTER TABLE orders_south DROP CONSTRAINT no_bad');
$c->safe_psql('west', "INSERT INTO orders_west VALUES (9005, 'west', 1, 'surplus')");
$pair->a("INSERT INTO orders VALUES (9005, 'west', 1, 'of A')");
$pair->poll_b('SELECT sqlstate || key FROM onerepl.failed', 'a surplus row is F', wanted => '23505(id)=(9005)');
$pair->b("SELECT onerepl_resolve('branch', n, 'overwrite') FROM onerepl.failed");
$pair->wait_identical(@tables, { name => 'the incoming row wins' });
my (undef, $refused) = OneReplTest::fails($pair->node_b, "UPDATE orders_south SET v = 'x'");
like($refused, qr/is written by onerepl only/, 'a foreign partition is guarded');

# ------------------------------------------------------------------------------------------------ TRUNCATE, refresh, verification

$pair->a("BEGIN; TRUNCATE nokey; INSERT INTO nokey VALUES (1, '1', 1), (2, '2', 2); COMMIT");
$pair->wait_identical(@tables, { name => 'TRUNCATE' });
check_places('TRUNCATE');
$pair->b("SET onerepl.allow_writes = on; DELETE FROM orders WHERE id % 3 = 0; UPDATE orders SET v = 'changed' WHERE id % 3 = 1; INSERT INTO orders VALUES (9100, 'south', 1), (9101, 'north', 1)");
$pair->a("SELECT onerepl_verify('hq', 'orders')");
$pair->poll_b('SELECT count(*) > 0 FROM onerepl.differences', 'a verification sees rows on other servers');
$pair->a("SELECT onerepl_refresh('hq', 'orders', 'repair')");
$pair->wait_identical(@tables, { name => 'a repair mends them' });
$pair->b("SET onerepl.allow_writes = on; DELETE FROM orders WHERE id % 3 = 0; DELETE FROM nokey");
$pair->a("SELECT onerepl_refresh('hq', 'orders'), onerepl_refresh('hq', 'nokey')");
$pair->wait_identical(@tables, { name => 'they are copied anew' });
check_places('refresh');
$pair->poll_a("SELECT bool_and(state = 'done') FROM onerepl.refresh_progress", 'the copies are complete');
$pair->a("SELECT onerepl_verify('hq', t) FROM unnest(ARRAY['orders', 'by_key', 'nokey']::regclass[]) AS t");
$pair->poll_b("SELECT count(*) >= 3 FROM onerepl.journal WHERE message ~ 'was verified: equal'", 'a verification finds them equal');

# Half of a chunk is committed when the other half cannot.
for my $refusing (qw(south west))
{
	for my $method (qw(repair empty))
	{
		$pair->b("SET onerepl.allow_writes = on; DELETE FROM orders WHERE id % 2 = 0; UPDATE orders SET v = 'changed' WHERE id % 3 = 1;
			INSERT INTO orders VALUES (9100, 'south', 1), (9101, 'north', 1), (9102, 'west', 1)");
		refuse_commits($refusing);
		$pair->a("SELECT onerepl_refresh('hq', 'orders', '$method'); UPDATE orders SET v = v || '$method' WHERE id % 5 = 0; UPDATE orders SET id = id + 40000 WHERE id IN (9002, 9005, 9201)");
		$pair->poll_b("SELECT last_error ~ 'not now' FROM onerepl_status()", "$method: $refusing does not commit");
		allow_commits($refusing);
		$pair->wait_identical(@tables, { name => "$method with a server that commits later" });
		check_places("$method, $refusing last");
		$pair->a('UPDATE orders SET id = id - 40000 WHERE id > 40000');
		$pair->wait_settled('all is written');
	}
}

# F at COMMIT, and the transaction is skipped.
sub told_of_skipped { return OneReplTest::journal_count($pair->node_b, level => 'critical', like => 'but a foreign server may have committed'); }
my $told = told_of_skipped();
for my $refusing (qw(south west))
{
	refuse_commits($refusing, '23514');
	$pair->a("BEGIN; INSERT INTO orders VALUES (9300, 'south', 1), (9301, 'west', 1); COMMIT");
	$pair->poll_b('SELECT at_commit FROM onerepl.failed', "$refusing: F at COMMIT");
	allow_commits($refusing);
	$pair->b("SELECT onerepl_resolve('branch', n, 'skip') FROM onerepl.failed");
	$pair->a("DELETE FROM orders WHERE id = 9002; INSERT INTO orders VALUES (9002, 'north', 1)");
	$pair->wait_settled('skipped');
	$pair->a("SELECT onerepl_refresh('hq', 'orders', 'repair')");
	$pair->wait_identical(@tables, { name => 'a repair mends what was skipped' });
	$pair->a('DELETE FROM orders WHERE id IN (9300, 9301)');
	$pair->wait_identical(@tables);
}
is(told_of_skipped() - $told, 1, 'a server that has what is skipped is told');

# ------------------------------------------------------------------------------------------------ C is away, B crashes

$c->stop;
$pair->a("INSERT INTO orders VALUES (9200, 'north', 1, 'near')");
$pair->poll_b('SELECT count(*) FROM orders_north WHERE id = 9200', 'C is down: local rows are written', wanted => '1');
$pair->a("INSERT INTO orders VALUES (9201, 'south', 1, 'far')");
$pair->poll_b("SELECT state = 'put off' AND last_error ~ 'SQLSTATE 08' FROM onerepl_status()", 'others are put off, and the status says why');
is($pair->b('SELECT count(*) FROM onerepl.failed'), 0, 'no F');
$c->start;
$pair->wait_identical(@tables, { name => 'they are written when C is back' });

# B dies while a server commits: its COMMIT comes to an end only after B is up again. The other server has committed, or never will.
for my $slow (qw(south west))
{
	at_commit($slow, 'PERFORM pg_advisory_lock(1); PERFORM pg_advisory_unlock(1)');
	my $holder = $c->background_psql($slow);
	$holder->query_safe('SELECT pg_advisory_lock(1)');
	$pair->a("BEGIN; UPDATE orders SET region = CASE region WHEN 'south' THEN 'west' ELSE 'south' END WHERE id IN (9002, 9005, 9201); UPDATE orders SET v = v || 'x' WHERE id > 9000; COMMIT");
	OneReplTest::poll_ok($c, "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted", "$slow is committing", wanted => 1);
	OneReplTest::crash($pair->node_b);
	OneReplTest::poll_ok($c, "SELECT count(*) > 0 FROM pg_stat_activity WHERE datname = '$slow' AND wait_event_type = 'Lock' AND wait_event = 'tuple' OR wait_event = 'transactionid'",
		'the next attempt waits for it');
	$holder->quit;
	allow_commits($slow);
	$pair->wait_identical(@tables, { name => "B dies while $slow commits" });
	check_places("$slow commits alone");
}

my $script = "$PostgreSQL::Test::Utils::tmp_check/foreign.sql";
append_to_file($script, <<'SQL');
\set id random(20000, 20300)
\set r random(0, 3)
\set n random(0, 200)
BEGIN;
INSERT INTO orders VALUES (:id, (ARRAY['north', 'south', 'west', 'east'])[1 + :r], :n, 'new') ON CONFLICT (id) DO UPDATE SET region = excluded.region, n = excluded.n, v = orders.v || 'u';
DELETE FROM orders WHERE id = :id + 7;
UPDATE orders SET id = id + 1000, n = 200 - n WHERE id = :id - 5 AND NOT EXISTS (SELECT FROM orders AS o WHERE o.id = orders.id + 1000);
INSERT INTO by_key VALUES (:id - 19000, :n) ON CONFLICT (id) DO UPDATE SET v = excluded.v;
UPDATE by_key SET id = id - 1000 WHERE id = :id - 18990 AND NOT EXISTS (SELECT FROM by_key AS o WHERE o.id = by_key.id - 1000);
INSERT INTO nokey VALUES (1 + :r % 2, '{}', :n); DELETE FROM nokey WHERE ctid = (SELECT min(ctid) FROM nokey WHERE v = :r);
UPDATE nokey SET a = 3 - a WHERE ctid = (SELECT min(ctid) FROM nokey WHERE v = :n);
COMMIT;
SQL
my $load = OneReplTest::start_pgbench($pair->node_a, '-c', '2', '-R', '60', '-T', '9', '-f', $script);
for my $round (1 .. 5)
{
	Time::HiRes::sleep(0.4 + rand 0.8);
	OneReplTest::crash_only($pair->node_b) if $round % 2;
	$pair->node_b->stop('immediate') unless $round % 2;
	$pair->node_b->start;
}
$load->finish;
$pair->wait_settled('after five crashes of B', 60);
$pair->wait_identical(@tables, { name => 'identical after five crashes of B' });
check_places('crashes');
is($pair->b('SELECT count(*) FROM onerepl.failed'), 0, 'no F');

# ------------------------------------------------------------------------------------------------ what a trigger there keeps

# B cannot see why: whatever a statement about one row does to none, or to two, is F, deletes included.
$c->safe_psql('south', "CREATE FUNCTION keep() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'");
$pair->a("INSERT INTO orders VALUES (40000, 'south', 1, 'kept')");
$pair->wait_identical('orders');
my %kept = (INSERT => "INSERT INTO orders VALUES (40001, 'south', 1, 'kept')", UPDATE => "UPDATE orders SET v = 'changed' WHERE id = 40000", DELETE => 'DELETE FROM orders WHERE id = 40000');
for my $operation (qw(INSERT UPDATE DELETE))
{
	$c->safe_psql('south', "CREATE TRIGGER keep BEFORE $operation ON orders_south FOR EACH ROW EXECUTE FUNCTION keep(); ALTER TABLE orders_south ENABLE ALWAYS TRIGGER keep");
	$pair->a($kept{$operation});
	my $verb = lc $operation . ($operation =~ /E$/ ? 'd' : 'ed');
	$pair->poll_b("SELECT sqlstate || ' ' || (message ~ 'has $verb 0 rows instead of one') FROM onerepl.failed", "a trigger of the server keeps a row: $operation", wanted => 'HV000 true');
	$c->safe_psql('south', 'DROP TRIGGER keep ON orders_south');
	$pair->b("SELECT onerepl_resolve_all('branch', 'retry')");
	$pair->wait_identical('orders', { name => 'and without it all is right' });
}

# ------------------------------------------------------------------------------------------------ histories that do not fit

$c->safe_psql('south', 'UPDATE onerepl_foreign.position SET written = written - 1');
$pair->a("UPDATE orders SET v = 'newer' WHERE region = 'south'");
$pair->poll_b("SELECT DISTINCT sqlstate || ' ' || (message ~ 'has lost changes') FROM onerepl.failed", 'a server that has lost changes is F', wanted => '55000 true');
$pair->b("SELECT onerepl_restart_link('branch')");
$pair->a("BEGIN; SELECT onerepl_restart_link('hq'); SELECT onerepl_refresh('hq', method => 'repair'); COMMIT");
$pair->a("UPDATE orders SET v = 'newest' WHERE region = 'south'");
$pair->wait_identical(@tables, { name => 'a new start of the link' });
check_places('a new start');

$pair->b("SELECT onerepl_promote('branch')");
$pair->b("INSERT INTO orders VALUES (30000, 'south', 1), (30001, 'north', 1)");
is(rows_at('south', 'SELECT count(*) FROM orders_south WHERE id = 30000'), 1, 'B is promoted: foreign partitions are writable');

$c->stop;
$pair->finish;
done_testing;
