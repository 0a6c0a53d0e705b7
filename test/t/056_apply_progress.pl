# What is around apply's rows: a catalog that changes all the time, triggers of B that keep rows (P22: a failure, and no loop),
# indexes that CREATE INDEX CONCURRENTLY and REINDEX CONCURRENTLY have only begun, on both sides.
use strict;
use warnings;
use IPC::Run ();
use OneReplTest;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(sleep);

my $pair = OneReplTest->new(track => [qw(kept back own w)], schema => <<'SQL');
CREATE TABLE kept (id int PRIMARY KEY, u int UNIQUE, v text);
CREATE TABLE back (id int PRIMARY KEY, u int UNIQUE, v text);
CREATE TABLE own (id int PRIMARY KEY, v text);
CREATE TABLE w (id int PRIMARY KEY, u int, v text);
CREATE TABLE late (id int PRIMARY KEY, v text);
SQL
my $b = $pair->node_b;

sub on_b { my $sql = shift; return $pair->b("SET onerepl.allow_writes = on; $sql"); }

sub wait_failed
{
	my $name = shift;
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	return OneReplTest::poll_ok($b, 'SELECT string_agg(sqlstate, \',\') FROM onerepl.failed WHERE resolution IS NULL', "$name: F", wanted => '27000')
	  && like($pair->b('SELECT message FROM onerepl.failed'), qr/a trigger kept the row/, "$name: it says what is wrong");
}

sub wait_clear
{
	my ($name, @tables) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	OneReplTest::poll_ok($b, 'SELECT count(*) FROM onerepl.failed', "$name: resolved", wanted => '0');
	$pair->wait_settled($name);
	$pair->wait_identical(@tables, { name => "$name: identical" });
	return;
}

# A session that waits for something; gives its handle.
sub in_background
{
	my ($node, $sql) = @_;
	my $out = '';
	return IPC::Run::start([ 'psql', '-XAtq', '-d', $node->connstr('postgres'), '-c', $sql ], '<', \undef, '>', \$out, '2>', \$out);
}

# ---------------------------------------------------------------- descriptions while the catalog changes
{
	my @tables = map { "many_$_" } 1 .. 20;
	$_->safe_psql('postgres', join '', map { "CREATE TABLE $_ (id int PRIMARY KEY);" } @tables) for $pair->nodes;
	my $script = "$PostgreSQL::Test::Utils::tmp_check/temporary.sql";
	append_to_file($script, "CREATE TEMP TABLE x1 (a int);\nDROP TABLE x1;\n");
	my $load = OneReplTest::start_pgbench($b, '-c', 3, '-T', 600, '-f', $script);
	OneReplTest::poll_ok($b, "SELECT count(*) >= 2 FROM pg_stat_activity WHERE query ~ '^(CREATE TEMP|DROP) TABLE x1'", 'the catalog of B changes');
	for my $table (@tables)
	{
		$pair->track($table);
		$pair->a("INSERT INTO $table VALUES (1)");
	}
	$pair->wait_identical(@tables, { name => 'tables that are described meanwhile' });
	$load->kill_kill;
	unlike(slurp_file($b->logfile), qr/terminated by signal/, 'no server process died');
	$pair->verify_equal($tables[0], $tables[19]) if $pair->can('verify_equal');
}

# ---------------------------------------------------------------- a trigger keeps the row
$pair->b(<<'SQL');
CREATE FUNCTION keep() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';
CREATE TRIGGER keep BEFORE DELETE ON kept FOR EACH ROW EXECUTE FUNCTION keep();
ALTER TABLE kept ENABLE REPLICA TRIGGER keep;
CREATE FUNCTION bring_back() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN INSERT INTO public.back SELECT OLD.*; RETURN NULL; END';
CREATE TRIGGER bring_back AFTER DELETE ON back FOR EACH ROW EXECUTE FUNCTION bring_back();
ALTER TABLE back ENABLE ALWAYS TRIGGER bring_back;
CREATE TABLE moved (id int, k text, v text, PRIMARY KEY (id, k)) PARTITION BY LIST (k);
CREATE TABLE moved_a PARTITION OF moved FOR VALUES IN ('a');
CREATE TABLE moved_b PARTITION OF moved FOR VALUES IN ('b');
CREATE TRIGGER keep BEFORE DELETE ON moved_a FOR EACH ROW EXECUTE FUNCTION keep();
ALTER TABLE moved_a ENABLE ALWAYS TRIGGER keep;
SQL

for my $table ('kept', 'back')
{
	on_b("INSERT INTO $table VALUES (1, 10, 'stands in the way')");
	$pair->a("INSERT INTO $table VALUES (2, 10, 'from A')");
	OneReplTest::poll_ok($b, 'SELECT sqlstate FROM onerepl.failed', "$table: a row stands in the way", wanted => '23505');
	$pair->b("SELECT onerepl_resolve_all('branch', 'overwrite')");
	wait_failed("$table: the incoming row is to win") or $pair->show_state($table);
	is($pair->b("SELECT count(*) FROM pg_locks WHERE relation = '$table'::regclass AND mode = 'RowExclusiveLock'"), '0', "$table: no lock is held");
	$pair->b("ALTER TABLE $table DISABLE TRIGGER USER");
	$pair->b("SELECT onerepl_resolve_all('branch', 'overwrite')");
	wait_clear("$table: without the trigger", $table);
}

# A row that moves to another partition of B would be there twice.
$pair->a('CREATE TABLE moved (id int, k text, v text, PRIMARY KEY (id, k))');
$pair->track('moved');
$pair->a("INSERT INTO moved VALUES (1, 'a', 'x'), (2, 'a', 'y')");
$pair->wait_identical('moved');
$pair->a("UPDATE moved SET k = 'b' WHERE id = 1");
wait_failed('a row that moves to another partition');
$pair->b("ALTER TABLE moved_a DISABLE TRIGGER keep; SELECT onerepl_resolve_all('branch', 'retry')");
wait_clear('a row that moves', 'moved');

# A refresh that repairs: a row that clashes, then one that is too many; then one that empties the table by DELETE.
$pair->b('ALTER TABLE kept ENABLE ALWAYS TRIGGER keep');
on_b("UPDATE kept SET id = 1 WHERE id = 2");
$pair->a("SELECT onerepl_refresh('hq', 'kept', 'repair')");
wait_failed('repair: a row clashes');
on_b("UPDATE kept SET id = 1000, u = 1000");
$pair->b("SELECT onerepl_resolve_all('branch', 'retry')");
OneReplTest::poll_ok($b, "SELECT count(*) FROM onerepl.failed WHERE sqlstate = '27000' AND message ~ 'kept the row'", 'repair: a row is too many', wanted => '1');
$pair->b("ALTER TABLE kept DISABLE TRIGGER keep; SELECT onerepl_resolve_all('branch', 'retry')");
wait_clear('repair', 'kept');
$pair->b("ALTER TABLE kept ENABLE ALWAYS TRIGGER keep; CREATE TABLE refers (id int REFERENCES kept)");
$pair->a("SELECT onerepl_refresh('hq', 'kept', 'empty')");
wait_failed('empty: a row stays');
$pair->b("DROP TABLE refers; SELECT onerepl_resolve_all('branch', 'retry')");
wait_clear('empty', 'kept');
$pair->b('ALTER TABLE kept DISABLE TRIGGER keep');

# A copy ends with A's rows or not at all: neither an update of repair nor a row that comes is kept back unnoticed.
$pair->b("CREATE TRIGGER keep_update BEFORE UPDATE ON kept FOR EACH ROW EXECUTE FUNCTION keep(); CREATE TRIGGER keep_insert BEFORE INSERT ON kept FOR EACH ROW EXECUTE FUNCTION keep(); ALTER TABLE kept DISABLE TRIGGER USER");
on_b("UPDATE kept SET v = 'other'");
$pair->b('ALTER TABLE kept ENABLE ALWAYS TRIGGER keep_update');
$pair->a("SELECT onerepl_refresh('hq', 'kept', 'repair')");
wait_failed('repair: an update is kept back');
$pair->b("ALTER TABLE kept DISABLE TRIGGER keep_update; SELECT onerepl_resolve_all('branch', 'retry')");
wait_clear('repair, updated', 'kept');
on_b('DELETE FROM kept');
$pair->b('ALTER TABLE kept ENABLE REPLICA TRIGGER keep_insert');
for my $method ('repair', 'empty')
{
	$pair->a("SELECT onerepl_refresh('hq', 'kept', '$method')");
	wait_failed("$method: a row is kept out");
	$pair->b("ALTER TABLE kept DISABLE TRIGGER keep_insert; SELECT onerepl_resolve_all('branch', 'retry')");
	wait_clear("$method, inserted", 'kept');
	$pair->b('ALTER TABLE kept ENABLE ALWAYS TRIGGER keep_insert');
}
$pair->b('DROP TRIGGER keep_insert ON kept; DROP TRIGGER keep_update ON kept');

# A delete of A that a trigger of B keeps from happening is B's own rule: nothing stops.
$pair->b("CREATE TRIGGER keep BEFORE DELETE ON own FOR EACH ROW EXECUTE FUNCTION keep(); ALTER TABLE own ENABLE ALWAYS TRIGGER keep");
$pair->a("INSERT INTO own VALUES (1, 'x'), (2, 'y'); DELETE FROM own WHERE id = 1; UPDATE own SET v = 'z'");
$pair->wait_settled('a trigger that keeps all rows');
is($pair->b("SELECT string_agg(id || v, ',' ORDER BY id) FROM own"), '1x,2z', 'and the row stays');

# ---------------------------------------------------------------- indexes of B that are only begun, in a refresh window
$pair->a("INSERT INTO w SELECT n, n, 'old' FROM generate_series(1, 1000) AS n");
$pair->wait_settled('rows for a refresh');
$pair->a("SELECT onerepl_refresh('hq', 'w', 'repair', chunk_rows => 100, rows_per_second => 300)");
$pair->poll_a('SELECT rows_done >= 300 FROM onerepl.refresh ORDER BY id DESC LIMIT 1', 'rows are copied');
$pair->a("SELECT onerepl_refresh_pause('hq')");
my $holder = $b->background_psql('postgres');
$holder->query_safe('BEGIN; LOCK TABLE w IN ROW EXCLUSIVE MODE');
my $index = in_background($b, 'CREATE UNIQUE INDEX CONCURRENTLY w_u ON w (u)');
OneReplTest::poll_ok($b, "SELECT count(*) FROM pg_index WHERE indexrelid = to_regclass('w_u') AND NOT indisready", 'an index is begun', wanted => '1');
$pair->a("UPDATE w SET v = 'new' WHERE id IN (5, 995); INSERT INTO w VALUES (2000, 2000, 'new'); DELETE FROM w WHERE id = 7");
$pair->wait_settled('changes while it is');
is($pair->b('SELECT count(*) FROM onerepl.failed'), '0', 'it is not searched');
is($pair->b("SELECT NOT indisready FROM pg_index WHERE indexrelid = 'w_u'::regclass"), 't', 'it was not ready all the while');
$holder->query_safe('COMMIT');
$index->finish;
$holder->query_safe('BEGIN; LOCK TABLE w IN ROW EXCLUSIVE MODE');
$index = in_background($b, 'REINDEX TABLE CONCURRENTLY w');
OneReplTest::poll_ok($b, "SELECT count(*) >= 1 FROM pg_index WHERE indrelid = 'w'::regclass AND NOT indisready", 'indexes are made anew');
$pair->a("UPDATE w SET v = 'newer' WHERE id IN (5, 995); INSERT INTO w VALUES (2001, 2001, 'new'); DELETE FROM w WHERE id = 8");
$pair->wait_settled('changes while they are');
is($pair->b('SELECT count(*) FROM onerepl.failed'), '0', 'they are not searched');
$holder->query_safe('COMMIT');
$holder->quit;
$index->finish;
is($pair->b("SELECT count(*) FROM pg_index WHERE indrelid = 'w'::regclass AND indisvalid"), '2', 'and are valid in the end');
$pair->a("SELECT onerepl_refresh_resume('hq')");
$pair->poll_a("SELECT count(*) = 0 FROM onerepl.refresh WHERE state IN ('waiting', 'running', 'paused', 'sent')", 'the refresh ends');
$pair->wait_identical('w');
$pair->verify_equal('w', 'kept', 'back', 'moved') if $pair->can('verify_equal');

# ---------------------------------------------------------------- the same for onerepl's own tables, on A and B
$pair->track('late');
my $writer = $pair->node_a->background_psql('postgres');
$writer->query_safe("BEGIN; INSERT INTO late SELECT n, repeat(n::text, 300) FROM generate_series(1, 20000) AS n");
my $log_index = $pair->a(<<'SQL');
SELECT l.relation::regclass FROM pg_locks AS l JOIN pg_class AS c ON c.oid = l.relation
 WHERE c.relnamespace = 'onerepl'::regnamespace AND c.relname ~ '^change_' AND c.relkind = 'r' AND l.mode = 'RowExclusiveLock' LIMIT 1
SQL
isnt($log_index, '', 'a transaction has written into the log');
my $reindex = in_background($pair->node_a, "REINDEX TABLE CONCURRENTLY $log_index");
$pair->poll_a("SELECT count(*) >= 1 FROM pg_index WHERE indrelid = '$log_index'::regclass AND NOT indisready", "$log_index: its index is made anew");
$writer->query_safe("INSERT INTO late SELECT n, repeat(n::text, 300) FROM generate_series(20001, 40000) AS n");
$writer->query_safe("UPDATE late SET v = 'again' WHERE id % 100 = 0; COMMIT");
$writer->quit;
$reindex->finish;
is($pair->a("SELECT count(*) FROM pg_index WHERE indrelid = '$log_index'::regclass AND NOT indisvalid"), '0', 'and is valid in the end');
$pair->wait_identical('late', { name => 'a transaction that wrote meanwhile' });

# Batches, positions, the queue and what was received are written by hand too: rows go on while their indexes are made anew.
my $on = 1;
for my $node ($pair->nodes)
{
	my $own = $node->safe_psql('postgres', "SELECT string_agg(format('%I.%I', 'onerepl', relname), ' ' ORDER BY relname) FROM pg_class WHERE relnamespace = 'onerepl'::regnamespace AND relname IN ('batch', 'apply_progress', 'received', 'journal_entry')");
	my $long = $node->background_psql('postgres');
	for my $table (split / /, $own)
	{
		$long->query_safe("BEGIN; LOCK TABLE $table IN ROW EXCLUSIVE MODE");
		my $run = in_background($node, "REINDEX TABLE CONCURRENTLY $table");
		OneReplTest::poll_ok($node, "SELECT count(*) >= 1 FROM pg_index WHERE indrelid = '$table'::regclass AND NOT indisready", "$table: indexes are made anew");
		$pair->a("INSERT INTO late VALUES (" . (100000 + $on++) . ", 'meanwhile')");
		$pair->wait_settled("$table: rows go on");
		$long->query_safe('COMMIT');
		$run->finish;
	}
	$long->quit;
}
$pair->wait_identical('late');
unlike(slurp_file($_->logfile), qr/XX001|could not read block/, 'no index was read that has no pages: ' . $_->name) for $pair->nodes;
$pair->finish;
done_testing();
