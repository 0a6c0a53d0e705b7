# P4, P5, P13: B writes many transactions of A at once, and updates in the order of their keys where nothing can tell. Whatever
# can tell (the same row twice, unique values handed on, triggers, a row that is missing) finds A's order.
use strict;
use warnings;
use OneReplTest;
use PostgreSQL::Test::Utils;
use Test::More;

my @tables = qw(plain pair passing moving watched);
my $pair = OneReplTest->new(track => \@tables, schema => <<'SQL');
CREATE TABLE plain (id int PRIMARY KEY, v int, w text);
INSERT INTO plain SELECT g, 0, repeat('x', 3000) FROM generate_series(1, 2000) g;
ALTER TABLE plain ALTER w SET STORAGE EXTERNAL;
UPDATE plain SET w = repeat('y', 3000) WHERE id % 2 = 0;
CREATE TABLE pair (a text COLLATE "C", b int, v int, PRIMARY KEY (b, a));
INSERT INTO pair SELECT chr(97 + g % 26), g / 26, 0 FROM generate_series(1, 2000) g;
CREATE TABLE passing (id int PRIMARY KEY, u int UNIQUE);
INSERT INTO passing SELECT g, g FROM generate_series(1, 100) g;
CREATE TABLE moving (id int PRIMARY KEY, v int);
INSERT INTO moving SELECT g, 0 FROM generate_series(1, 300) g;
CREATE TABLE watched (id int PRIMARY KEY, v int);
INSERT INTO watched SELECT g, 0 FROM generate_series(1, 50) g;
CREATE TABLE only_b_unique (id int PRIMARY KEY, u int);
INSERT INTO only_b_unique SELECT g, g FROM generate_series(1, 100) g;
SQL
$pair->track('only_b_unique');
push @tables, 'only_b_unique';
$pair->wait_identical(@tables, { name => 'the beginning' });
$pair->b(<<'SQL');
ALTER TABLE only_b_unique ADD UNIQUE (u);
CREATE TABLE seen (n serial, id int);
CREATE FUNCTION see() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN INSERT INTO public.seen (id) VALUES (NEW.id); RETURN NULL; END $$;
CREATE TRIGGER see AFTER UPDATE ON watched FOR EACH ROW EXECUTE FUNCTION see();
ALTER TABLE watched ENABLE ALWAYS TRIGGER see;
SQL

# A backlog, so that B has many transactions at once.
sub backlog
{
	my ($sql) = @_;
	$pair->a("SELECT onerepl_pause('hq')");
	$pair->a("DO \$\$ DECLARE r int; k int; BEGIN $sql END \$\$");
	$pair->a("SELECT onerepl_resume('hq')");
	return;
}

backlog(<<'SQL');
FOR i IN 1 .. 4000 LOOP
	k := 1 + floor(random() * 2000);
	r := floor(random() * 10);
	IF r < 5 THEN UPDATE plain SET v = v * 3 + i WHERE id = k;
	ELSIF r = 5 THEN UPDATE plain SET v = i, w = repeat(chr(97 + i % 26), 3000) WHERE id = k;
	ELSIF r = 6 THEN DELETE FROM plain WHERE id = k;
	ELSIF r = 7 THEN INSERT INTO plain VALUES (k, i, 'new') ON CONFLICT DO NOTHING;
	ELSIF r = 8 THEN UPDATE plain SET id = 2001 + i WHERE id = k;
	ELSE UPDATE pair SET v = v + i WHERE b = k % 76 AND a < 'd';
	END IF;
	IF i % 3 = 0 THEN COMMIT; END IF;
END LOOP;
SQL
$pair->wait_identical(@tables, { name => 'updates among inserts, deletes and new keys, large values unchanged or not' });

backlog(<<'SQL');
FOR i IN REVERSE 99 .. 1 LOOP
	SELECT u INTO k FROM passing WHERE id = i;
	SELECT u INTO r FROM passing WHERE id = i + 1;
	UPDATE passing SET u = NULL WHERE id = i; UPDATE only_b_unique SET u = NULL WHERE id = i; COMMIT;
	UPDATE passing SET u = k WHERE id = i + 1; UPDATE only_b_unique SET u = k WHERE id = i + 1; COMMIT;
	UPDATE passing SET u = r WHERE id = i; UPDATE only_b_unique SET u = r WHERE id = i; COMMIT;
END LOOP;
SQL
$pair->wait_identical(@tables, { name => 'unique values are handed on from row to row' });

$pair->b('TRUNCATE seen');
backlog('FOR i IN 1 .. 200 LOOP UPDATE watched SET v = i WHERE id = 1 + (i * 37) % 50; COMMIT; END LOOP;');
$pair->wait_identical(@tables, { name => 'a table with a trigger' });
is($pair->b("SELECT string_agg(id::text, ',' ORDER BY n) FROM seen"), join(',', map { 1 + ($_ * 37) % 50 } 1 .. 200),
	'the trigger of B sees the order of A');

# An insert that is resolved to win, behind updates that wait, and in one transaction with them; with a constraint to be checked.
$pair->b('ALTER TABLE moving ADD CHECK (v < 1000000)');
$pair->b('SET onerepl.allow_writes = on; INSERT INTO moving VALUES (1000, 1000)');
$pair->a('BEGIN; UPDATE moving SET v = 5 WHERE id <= 20; INSERT INTO moving VALUES (1000, 7); UPDATE moving SET v = 0 WHERE id <= 20; COMMIT');
$pair->poll_b('SELECT count(*) FROM onerepl.failed', 'a row is in the way', wanted => '1', deadline => 20);
$pair->b("SELECT onerepl_resolve_all('branch', 'overwrite')");
$pair->wait_identical(@tables, { name => 'an insert that wins, behind updates of its table' });

# A refresh that begins among updates: B gets them, its beginning and the inserts behind it together.
$pair->b("SELECT onerepl_pause('branch')");
$pair->a("DO \$\$ BEGIN FOR i IN 1 .. 50 LOOP UPDATE moving SET v = i WHERE id = i; COMMIT; END LOOP; END \$\$");
$pair->a("SELECT onerepl_refresh('hq', 'moving', 'repair')");
$pair->poll_a("SELECT state IN ('running', 'sent') FROM onerepl.refresh ORDER BY id DESC LIMIT 1", 'the refresh has begun', deadline => 20);
$pair->a("UPDATE moving SET v = 0 WHERE id <= 50; INSERT INTO moving SELECT 2000 + g, -1 FROM generate_series(1, 20) g");
$pair->b("SELECT onerepl_resume('branch')");
$pair->poll_a("SELECT state = 'done' FROM onerepl.refresh ORDER BY id DESC LIMIT 1", 'and is done', deadline => 30);
$pair->wait_identical(@tables, { name => 'a refresh that begins between updates and inserts' });

# Descending, so that keys and numbers run against each other.
$pair->b('SET onerepl.allow_writes = on; DELETE FROM moving WHERE id IN (90, 200)');
backlog('FOR i IN REVERSE 300 .. 1 LOOP UPDATE moving SET v = v + 1 WHERE id = i; COMMIT; END LOOP;');
for my $key (200, 90)
{
	$pair->poll_b('SELECT count(*) FROM onerepl.failed', "the missing row $key", wanted => '1', deadline => 20);
	is($pair->b('SELECT key FROM onerepl.failed'), "(id)=($key)", 'its key is told');
	like($pair->b('SELECT f::text FROM onerepl.failed f'), qr/row to be updated does not exist/, 'and the reason');
	is($pair->b('SELECT min(id) FROM moving WHERE v = 1'), $key + 1, 'all that came before is written');
	is($pair->b('SELECT count(*) FROM moving WHERE v = 0'), $pair->b("SELECT count(*) FROM moving WHERE id < $key"), 'and nothing that came behind');
	$pair->b("SELECT onerepl_resolve_all('branch', 'skip')");
}
$pair->b('SET onerepl.allow_writes = on; INSERT INTO moving VALUES (90, 1), (200, 1)');
$pair->wait_identical(@tables, { name => 'with the missing rows brought by hand' });
is($pair->b('SELECT count(*) FROM onerepl.failed'), '0', 'nothing has failed but these');

$pair->finish;
done_testing();
