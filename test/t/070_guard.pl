# The read-only guard of B (P8) holds for every way that reaches a row, and lets apply through.
use strict;
use warnings;
use OneReplTest;
use Test::More;

my $pair = OneReplTest->new(
	conf_a => "wal_level = logical\nmax_wal_senders = 5\nmax_replication_slots = 5",
	schema => <<'SQL');
CREATE TABLE child (id int PRIMARY KEY, v text);
CREATE TABLE parts (id int PRIMARY KEY, v text) PARTITION BY RANGE (id);
CREATE TABLE parts_low PARTITION OF parts FOR VALUES FROM (0) TO (100);
CREATE TABLE subscribed (id int PRIMARY KEY, v text);
SQL
my @tables = qw(child parts subscribed);
$pair->b('CREATE TABLE parent (id int, v text); ALTER TABLE parent ALTER id SET NOT NULL; ALTER TABLE child INHERIT parent');
$pair->track(@tables);
$pair->a("INSERT INTO $_ VALUES (1, 'one'), (2, 'two')") for @tables;
$pair->wait_identical(@tables);

sub refused_ok
{
	my ($sql, $name) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	my ($state) = OneReplTest::fails($pair->node_b, $sql);
	is($state, '25006', $name);
	return;
}

# --- by another table's name
refused_ok("UPDATE parent SET v = 'changed'", 'UPDATE of a table that it inherits from');
refused_ok('DELETE FROM parent', 'DELETE');
refused_ok('TRUNCATE parent', 'TRUNCATE');
is($pair->b("INSERT INTO parent VALUES (7, 'own'); SELECT count(*) FROM ONLY parent"), '1', 'that table itself is not guarded');
$pair->b('CREATE TABLE later (id int NOT NULL, v text); ALTER TABLE subscribed INHERIT later');
refused_ok("UPDATE later SET v = 'changed'", 'UPDATE of a table that it inherits from since the guard is there');

# --- partitions that are made later
$pair->b('CREATE TABLE parts_high PARTITION OF parts FOR VALUES FROM (100) TO (200)');
refused_ok("INSERT INTO parts_high VALUES (101, 'own')", 'INSERT into a new partition');
$pair->b(<<'SQL');
CREATE TABLE apart (id int PRIMARY KEY, v text) PARTITION BY RANGE (id);
CREATE TABLE apart_low PARTITION OF apart FOR VALUES FROM (200) TO (250);
ALTER TABLE parts ATTACH PARTITION apart FOR VALUES FROM (200) TO (300);
CREATE TABLE apart_high PARTITION OF apart FOR VALUES FROM (250) TO (300);
SQL
refused_ok("INSERT INTO apart_low VALUES (201, 'own')", 'INSERT into a partition of one that was attached');
refused_ok("INSERT INTO apart_high VALUES (251, 'own')", '... and into one that was made there later');
$pair->a('CREATE TABLE parts_rest PARTITION OF parts DEFAULT');
$pair->a("INSERT INTO parts VALUES (102, 'high'), (202, 'apart'), (252, 'apart, high')");
$pair->wait_identical('parts', { name => 'apply writes all of them' });
is($pair->b('SELECT onerepl.self_check()'), '0', 'the self-check misses nothing');

# --- a subscription of PostgreSQL's own
$pair->node_a->safe_psql('postgres', 'CREATE DATABASE elsewhere');
$pair->node_a->safe_psql('elsewhere', 'CREATE TABLE subscribed (id int PRIMARY KEY, v text); CREATE PUBLICATION p FOR TABLE subscribed');
my $from = $pair->node_a->connstr('elsewhere');
$pair->b("CREATE SUBSCRIPTION s CONNECTION '" . $from =~ s/'/''/gr . "' PUBLICATION p WITH (copy_data = false)");
$pair->node_a->safe_psql('elsewhere', "INSERT INTO subscribed VALUES (50, 'by the subscription')");
ok(OneReplTest::wait_for(sub {
		PostgreSQL::Test::Utils::slurp_file($pair->node_b->logfile) =~ /table "subscribed" is written by onerepl only/
	}, 30), 'a subscription is refused');
is($pair->b('SELECT count(*) FROM subscribed WHERE id = 50'), '0', '... and its row is not there');
$pair->b("ALTER SUBSCRIPTION s DISABLE; ALTER SUBSCRIPTION s SET (slot_name = NONE); DROP SUBSCRIPTION s");

# --- apply, and the administrator
$pair->a("UPDATE $_ SET v = v || '!'; DELETE FROM $_ WHERE id = 2") for @tables;
$pair->wait_identical(@tables, { name => 'apply updates and deletes' });
is($pair->b("SET onerepl.allow_writes = on; UPDATE parent SET v = 'mended' WHERE id = 1; SELECT v FROM child WHERE id = 1"), 'mended', 'the administrator may');
my ($state) = OneReplTest::fails($pair->node_b, "CREATE ROLE other; GRANT ALL ON child TO other; SET ROLE other; SET onerepl.allow_writes = on");
is($state, '42501', 'nobody else');

# --- triggers of B with settings of their own, beside the guard's
$pair->b(<<'SQL');
CREATE TABLE seen (id int, before text, after text);
CREATE FUNCTION see() RETURNS trigger LANGUAGE plpgsql SET search_path = public SET work_mem = '4MB' AS $$
BEGIN INSERT INTO seen VALUES (NEW.id, OLD.v, NEW.v); RETURN NEW; END $$;
CREATE TRIGGER see BEFORE UPDATE ON subscribed FOR EACH ROW EXECUTE FUNCTION see();
CREATE TRIGGER see_after AFTER UPDATE ON subscribed FOR EACH ROW EXECUTE FUNCTION see();
ALTER TABLE subscribed ENABLE ALWAYS TRIGGER see;
ALTER TABLE subscribed ENABLE ALWAYS TRIGGER see_after;
SQL
$pair->a("INSERT INTO subscribed SELECT n, 'v' || n FROM generate_series(1000, 1999) AS n; UPDATE subscribed SET v = v || '?' WHERE id >= 1000; UPDATE subscribed SET v = v || '!' WHERE id >= 1000");
$pair->wait_identical('subscribed', { name => 'apply through triggers' });
is($pair->b('SELECT count(*) FROM seen'), '4000', 'each of which has fired for each row');

# --- a trigger that is gone
$pair->b('DROP TRIGGER "!onerepl_guard_row" ON child');
is($pair->b('SELECT onerepl.self_check()'), '1', 'the self-check finds that one is missing');
$pair->b("SET onerepl.allow_writes = on; UPDATE child SET v = 'one!' WHERE id = 1");
$pair->a("INSERT INTO child VALUES (9, 'nine')");
$pair->wait_identical('child');
is($pair->b('SELECT onerepl.self_check()'), '0', '... and the next change makes it again');
$pair->b("SELECT onerepl_remove_remote('branch')");
is($pair->b("SELECT count(*) FROM pg_trigger WHERE tgname LIKE '!onerepl_guard%'"), '0', 'all go with the link');

$pair->finish;
done_testing();
