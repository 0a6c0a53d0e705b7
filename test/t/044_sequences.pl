# Sequences follow: whatever number B stops at, a promoted B gives no value that is in a row already.
use strict;
use warnings;
use OneReplTest;
use PostgreSQL::Test::Utils;
use Test::More;

my $pair = OneReplTest->new(
	conf_a => "onerepl.batch_bytes = '64kB'",
	track  => [ 'item', 'ident', 'cached' ],
	schema => <<'SQL');
CREATE TABLE item (id bigserial PRIMARY KEY, v text);
CREATE TABLE ident (id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, v text);
CREATE SEQUENCE cached_seq CACHE 100;
CREATE TABLE cached (id int PRIMARY KEY DEFAULT nextval('cached_seq'), v text);
CREATE SEQUENCE "Odd seq" INCREMENT -5;
CREATE SEQUENCE untracked;
SQL

my $state = sub { return "SELECT last_value || ' ' || is_called FROM $_[0]"; };
sub follows
{
	my ($sequence, $name) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	$pair->poll_b($state->($sequence), $name, wanted => $pair->a($state->($sequence)));
	return;
}

# --- they follow
$pair->a(q{SELECT onerepl_add_sequence('cached_seq'), onerepl_add_sequence('"Odd seq"')});
$pair->a("INSERT INTO item (v) SELECT 'a' || n FROM generate_series(1, 50) AS n; INSERT INTO ident (v) VALUES ('x'), ('y'); INSERT INTO cached (v) VALUES ('z')");
$pair->a(q{SELECT nextval('"Odd seq"'), nextval('"Odd seq"'), nextval('untracked')});
follows('item_id_seq', 'a serial column\'s sequence, without being asked');
follows('ident_id_seq', 'an identity column\'s');
follows('cached_seq', 'one with a cache');
follows('"Odd seq"', 'one by itself, that only nextval has moved');
is($pair->b($state->('untracked')), '1 false', 'no other one');
$pair->a("SELECT setval('item_id_seq', 1000, false)");
follows('item_id_seq', 'setval');
$pair->a("SELECT setval('item_id_seq', 60)");
follows('item_id_seq', 'also backwards');
$pair->a('ALTER SEQUENCE "Odd seq" RESTART -100');
follows('"Odd seq"', 'ALTER SEQUENCE');
$pair->a("CREATE TABLE later (id serial PRIMARY KEY, v text)");
$pair->b("CREATE TABLE later (id serial PRIMARY KEY, v text)");
$pair->a("SELECT onerepl_add_table('later'); INSERT INTO later (v) SELECT 'l' FROM generate_series(1, 7)");
follows('later_id_seq', 'a table that is tracked later');
$pair->a("TRUNCATE later RESTART IDENTITY; INSERT INTO later (v) VALUES ('first'), ('second')");
$pair->wait_identical('later', { name => 'TRUNCATE ... RESTART IDENTITY' });
follows('later_id_seq', 'and its sequence');
# Nothing else happens on A.
$pair->a('CREATE SEQUENCE own_seq; CREATE SEQUENCE named_seq; CREATE TABLE owner (id int PRIMARY KEY)');
$pair->b('CREATE SEQUENCE own_seq; CREATE SEQUENCE named_seq; CREATE TABLE owner (id int PRIMARY KEY)');
$pair->track('owner');
$pair->a("SELECT onerepl_wait('hq', '10 s'); SELECT pg_sleep(2.5)");
for my $change ([ 'own_seq', 'ALTER SEQUENCE own_seq OWNED BY owner.id' ], [ 'named_seq', "SELECT onerepl_add_sequence('named_seq')" ])
{
	$pair->a("$change->[1]; SELECT nextval('$change->[0]') FROM generate_series(1, 100)");
	follows($change->[0], "alone: $change->[1]");
	$pair->a("SELECT onerepl_wait('hq', '10 s'); SELECT pg_sleep(2.5)");
}
my $m = $pair->a('SELECT max(n) FROM onerepl.log');
$pair->a("SELECT onerepl_wait('hq', '10 s'); SELECT pg_sleep(2.5)");
is($pair->a('SELECT max(n) FROM onerepl.log'), $m, 'a sequence that stands still makes no records');
OneReplTest::nothing_told($pair->node_b, 'nothing to tell on B');
my ($error) = OneReplTest::fails($pair->node_a, "SELECT onerepl_add_sequence('item')");
is($error, '42809', 'a table is no sequence');

# --- never behind a row: looked at again and again under a load of small transactions
$pair->a('SELECT onerepl_wait(\'hq\', \'10 s\')');
$pair->node_a->safe_psql('postgres', 'CREATE FUNCTION put(n int) RETURNS void LANGUAGE sql AS $$INSERT INTO item (v) SELECT repeat(md5(g::text), 5) FROM generate_series(1, n) AS g; INSERT INTO ident (v) VALUES (1)$$');
my $script = "$PostgreSQL::Test::Utils::tmp_check/put.sql";
append_to_file($script, "\\set n random(1, 20)\nSELECT put(:n);\n");
my $load = OneReplTest::start_pgbench($pair->node_a, '-c', '4', '-t', '400', '-f', $script);
my ($looks, $behind) = (0, 0);
while ($load->pumpable)
{
	$load->pump_nb;
	# One statement, one snapshot for the rows; the sequence is read after it was taken.
	my $late = $pair->b("SELECT i.id > s.last_value OR d.id > t.last_value FROM (SELECT coalesce(max(id), 0) AS id FROM item) AS i, (SELECT max(id) AS id FROM ident) AS d, item_id_seq AS s, ident_id_seq AS t");
	$looks++;
	$behind++ if $late ne 'f';
}
IPC::Run::finish($load);
cmp_ok($looks, '>', 3, "looked at B $looks times under load");
is($behind, 0, 'a sequence is never behind a row on B');
$pair->wait_identical('item', 'ident');

# --- sequences that A renames, moves, drops or lets follow no longer are forgotten: they would stand in the way of a promotion
$_->safe_psql('postgres', 'CREATE SCHEMA moved; ' . join ' ', map { "CREATE SEQUENCE free_$_;" } 1 .. 5) for $pair->nodes;
$pair->a("SELECT onerepl_add_sequence(('free_' || n)::regclass), setval('free_' || n, 10 * n) FROM generate_series(1, 5) AS n");
my $free = "SELECT string_agg(schema || '.' || name, ' ' ORDER BY name) FROM onerepl.sequence_state WHERE name ~ 'free'";
$pair->poll_b($free, 'sequences by themselves', wanted => join ' ', map { "public.free_$_" } 1 .. 5);
$pair->b('ALTER SEQUENCE free_1 RENAME TO free_one; ALTER SEQUENCE free_2 SET SCHEMA moved; DROP SEQUENCE free_3, free_4');
$pair->a("ALTER SEQUENCE free_1 RENAME TO free_one; ALTER SEQUENCE free_2 SET SCHEMA moved; DROP SEQUENCE free_3; SELECT onerepl_remove_sequence('free_4')");
$pair->poll_b($free, 'those that are gone are forgotten, those with other names known by these', wanted => 'moved.free_2 public.free_5 public.free_one');
$pair->a("SELECT setval('free_one', 77)");
$pair->poll_b('SELECT last_value FROM free_one', 'one with another name goes on to follow', wanted => '77');
$pair->a("DROP SEQUENCE free_5, free_one, moved.free_2");
$pair->poll_b("SELECT count(*) FROM onerepl.sequence_state WHERE name ~ 'free'", 'and all of them', wanted => '0');
is($pair->b("SELECT count(*) FROM onerepl.link AS l, onerepl.why_not_promoted(l) AS w WHERE w.reason ~ 'free'"), '0', 'nothing of them is in the way');

# --- all that follow are gone while nobody is there to tell it
$_->safe_psql('postgres', 'CREATE DATABASE beside') for $pair->nodes;
{
	my ($on_a, $on_b) = map { my $node = $_; sub { $node->safe_psql('beside', $_[0]) } } $pair->nodes;
	my $listen = PostgreSQL::Test::Cluster::get_free_port();
	$pair->b("ALTER DATABASE beside SET onerepl.listen = '127.0.0.1:$listen'; ALTER SYSTEM SET onerepl.databases = 'postgres, beside'; SELECT pg_reload_conf()");
	$_->('CREATE EXTENSION onerepl; CREATE TABLE counted (id serial PRIMARY KEY); CREATE SEQUENCE alone') for $on_a, $on_b;
	$on_b->("SELECT onerepl_add_remote('branch', '$OneReplTest::secret', tables => '{*}')");
	$on_a->("SELECT onerepl_add_central('hq', 'http://127.0.0.1:$listen', '$OneReplTest::secret'); SELECT onerepl_add_table('counted'), onerepl_add_sequence('alone'); INSERT INTO counted DEFAULT VALUES; SELECT nextval('alone')");
	my $known = sub { my ($name, $wanted) = @_; ok(OneReplTest::wait_for(sub { $on_b->('SELECT count(*) FROM onerepl.sequence_state') eq $wanted }, 30), $name) };
	my $serves = sub {
		my ($databases, $count) = @_;
		$pair->a("ALTER SYSTEM SET onerepl.databases = '$databases'; SELECT pg_reload_conf()");
		$pair->poll_a("SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'onerepl sender' AND datname = 'beside'", "a sender: $count", wanted => $count);
	};
	$serves->('postgres, beside', 1);
	$known->('two sequences follow', 2);
	ok(OneReplTest::wait_for(sub { $on_a->('SELECT bool_and(written_to = numbered_to) FROM onerepl_status()') eq 't' }, 30), 'and are confirmed');
	$serves->('postgres', 0);
	$on_a->('ALTER TABLE counted ALTER id DROP DEFAULT; DROP SEQUENCE counted_id_seq, alone');
	$serves->('postgres, beside', 1);
	$known->('none is known any more', 0);
	ok(OneReplTest::wait_for(sub { $on_a->('SELECT bool_and(written_to = numbered_to) FROM onerepl_status()') eq 't' }, 30), 'which is told once');
	my $told = $on_a->('SELECT numbered_to FROM onerepl_status()');
	$serves->('postgres', 0);
	$serves->('postgres, beside', 1);
	$on_a->('INSERT INTO counted VALUES (2)');
	ok(OneReplTest::wait_for(sub { $on_b->('SELECT count(*) FROM counted') eq 2 }, 30), 'and not again by the next sender');
	is($on_a->("SELECT string_agg(operation, ', ' ORDER BY n) FROM onerepl.log WHERE n > $told"), 'insert', 'the insert is the next number');
	$serves->('postgres', 0);
	$pair->b("ALTER SYSTEM SET onerepl.databases = 'postgres'; SELECT pg_reload_conf()");
}

# --- promotion
$pair->a("SELECT onerepl_pause('hq')");
$pair->a("INSERT INTO item (v) VALUES ('too late')");
$pair->poll_b('SELECT c.peer_number > onerepl.written_to(c.link) FROM onerepl.contact AS c', 'A has told of a record that it does not send');
($error) = OneReplTest::fails($pair->node_b, "SELECT onerepl_promote('branch')");
is($error, '55000', 'B is not promoted while something is missing');
($error) = OneReplTest::fails($pair->node_b, "INSERT INTO item (v) VALUES ('no')");
is($error, '25006', 'and stays read-only');
$pair->a("SELECT onerepl_resume('hq'); SELECT onerepl_wait('hq', '20 s')");
$pair->wait_identical('item');
# Behind the last change there may be one more record of where sequences stand.
my $last_change = $pair->a("SELECT max(n) FROM onerepl.log WHERE operation = 'insert'");
cmp_ok($pair->b("SELECT onerepl_promote('branch')"), '>=', $last_change, 'promoted at the last change');
$pair->b("INSERT INTO item (v) SELECT 'on B' FROM generate_series(1, 100); INSERT INTO ident (v) VALUES ('on B'); INSERT INTO cached (v) VALUES ('on B'); INSERT INTO later (v) VALUES ('on B'); DELETE FROM item WHERE id < 10; TRUNCATE later");
is($pair->b("SELECT count(*) FROM item WHERE v = 'on B'"), '100', 'B is written, without collisions');
$pair->poll_a("SELECT state FROM onerepl_status()", 'the remote stops with it', wanted => 'stopped: the central was promoted');
is($pair->b("SELECT state FROM onerepl_status()"), 'stopped: the central was promoted', 'the link has ended on B');
is($pair->b('SELECT onerepl.self_check()'), '0', 'the self-check misses no guard');
is(OneReplTest::journal_count($pair->node_b, level => 'critical', like => 'promoted by postgres'), '1', 'the journal says it');

# --- and back again
$pair->b("SELECT onerepl_restart_link('branch')");
$pair->a("BEGIN; SELECT onerepl_restart_link('hq'); SELECT onerepl_refresh('hq', method => 'repair'); COMMIT");
$pair->wait_identical('item', 'ident', 'cached', 'later', { name => 'a new start with a refresh makes B a central again' });
($error) = OneReplTest::fails($pair->node_b, "INSERT INTO item (v) VALUES ('no')");
is($error, '25006', 'and read-only');
follows('item_id_seq', 'its sequences follow again, though A\'s have not moved');
$pair->poll_b("SELECT count(*) FROM onerepl.refresh_window WHERE state <> 'done'", 'all tables are complete', wanted => '0');

# --- forced, with A gone
$pair->a("SELECT onerepl_pause('hq'); INSERT INTO item (v) VALUES ('never arrives')");
$pair->poll_b('SELECT c.peer_number > onerepl.written_to(c.link) FROM onerepl.contact AS c', 'A has told of another one');
$pair->node_a->stop('immediate');
like($pair->b("SELECT onerepl_promote('branch', force => true)"), qr/^\d+$/, 'promoted by force');
is($pair->b("INSERT INTO item (v) VALUES ('on B') RETURNING id > 0"), 't', 'and written');
is(OneReplTest::journal_count($pair->node_b, level => 'critical', like => 'forced: the remote has told of its number'), '1', 'the journal says what is lost');

$pair->finish;
done_testing();
