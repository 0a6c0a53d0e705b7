# Rows: very large ones, with bounded memory; the limit and what the administrator has chosen beyond it; values that did not change are
# not sent again; a row that is changed very often; values that are equal but not the same.
use strict;
use warnings;
use OneReplTest;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(sleep time);

my $pair = OneReplTest->new(
	track  => [qw(wide inline often equal nokey)],
	conf   => "max_wal_size = '4GB'\nshared_buffers = '128MB'",
	schema => <<'SQL');
CREATE EXTENSION citext;
CREATE TABLE wide (id int PRIMARY KEY, a text, b text, c bytea, n int);
ALTER TABLE wide ALTER a SET STORAGE EXTERNAL, ALTER b SET STORAGE EXTERNAL, ALTER c SET STORAGE EXTERNAL;
CREATE TABLE inline (id int PRIMARY KEY, u text, v text, g int, n int, c text, UNIQUE (u, g));
ALTER TABLE inline ALTER u SET STORAGE PLAIN, ALTER v SET STORAGE PLAIN;
CREATE TABLE often (id int PRIMARY KEY, n int, v text);
CREATE TABLE equal (k citext PRIMARY KEY, n numeric, f float8, j jsonb, d numeric(10, 3), e text);
CREATE TABLE nokey (n numeric, v text);
ALTER TABLE nokey ALTER v SET STORAGE EXTERNAL;
SQL

my %peak;

sub wait_written
{
	my ($name, $deadline) = @_;
	my $good = OneReplTest::wait_for(
		sub {
			for my $kind ([ 'sender', $pair->node_a ], [ 'receiver', $pair->node_b ])
			{
				my $memory = 0;
				$memory += OneReplTest::anonymous_memory($_) for OneReplTest::workers($kind->[1], $kind->[0]);
				$peak{ $kind->[0] } = $memory if $memory > ($peak{ $kind->[0] } // 0);
			}
			my ($status, $done) = $pair->node_a->psql('postgres', "SELECT onerepl_wait('hq', '100ms')");
			return $status == 0 && $done eq 't';
		},
		$deadline // 60);
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	ok($good, $name) or $pair->show_state;
	return;
}

sub same
{
	my ($name, $columns, $table) = @_;
	my $sql = "SELECT md5(string_agg(md5(concat_ws('|', $columns)), ' ' ORDER BY md5(concat_ws('|', $columns)))) FROM $table";
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	return is($pair->b($sql), $pair->a($sql), $name);
}

# How much has gone over the line, in bytes: what the central keeps of it, before compression.
sub log_bytes { return $pair->a('SELECT sum(pg_total_relation_size(format(\'onerepl.change_%s\', i)::regclass)) FROM generate_series(0, 3) AS i'); }

# ---------------------------------------------------------------- large
my $noise = "(SELECT string_agg(md5(g::text), '') FROM generate_series(1, 1000) AS g)";
$pair->a("INSERT INTO wide (id, a, n) SELECT 1, repeat($noise, 9400), 0");
wait_written('300 MB in one field');
is($pair->b('SELECT length(a) FROM wide WHERE id = 1'), '300800000', 'its length');
$pair->a("INSERT INTO wide SELECT 2, repeat($noise, 3200), repeat('x', 102400000), decode(repeat(md5('c'), 6400000), 'hex'), 0");
wait_written('300 MB in the fields of a row');
cmp_ok($peak{$_}, '<', 2200, sprintf 'the %s had %.0f MB at most', $_, $peak{$_}) for sort keys %peak;

# ---------------------------------------------------------------- unchanged
my $before = log_bytes();
$pair->a('UPDATE wide SET n = n + 1; UPDATE wide SET c = NULL WHERE id = 2; UPDATE wide SET n = n + 1');
wait_written('updates that leave the large values alone');
cmp_ok(log_bytes() - $before, '<', 1_000_000, 'these are not logged again');
same('rows are the same', 'id, md5(a), md5(b), md5(c), n', 'wide');
$pair->a('DELETE FROM wide');

# Values that are large, but in the row. One of them is unique, together with another column.
$before = log_bytes();
$pair->a("INSERT INTO inline SELECT i, repeat(md5(i::text), 6), repeat('v', 1200) || i, i, i, NULL FROM generate_series(1, 500) AS i");
my $inserts = log_bytes() - $before;
$before = log_bytes();
$pair->a("UPDATE inline SET n = n + 1, c = 'x'; UPDATE inline SET n = n + 1 WHERE id % 2 = 0; UPDATE inline SET v = lower(v) WHERE id < 100");
$pair->a('BEGIN; UPDATE inline SET g = -1 WHERE id = 1; UPDATE inline SET u = (SELECT u FROM inline WHERE id = 1), g = 1 WHERE id = 2; COMMIT');
wait_written('updates that leave values in the row alone');
cmp_ok(log_bytes() - $before, '<', 0.8 * $inserts, 'nor are these');
$pair->a("UPDATE inline SET v = overlay(v placing 'w' from 200) WHERE id % 3 = 0; UPDATE inline SET v = v || 'longer', u = u || 'x' WHERE id % 3 = 1;
	UPDATE inline SET v = NULL WHERE id % 7 = 0; UPDATE inline SET v = repeat('v', 300) WHERE id % 7 = 0; UPDATE inline SET id = id + 1000 WHERE id < 5");
wait_written('and such that do not');
same('rows are the same', 'id, u, v, g, n, c', 'inline');

# ---------------------------------------------------------------- often, and equal but not the same
$pair->a(<<'SQL');
INSERT INTO often VALUES (1, 0, 'x'), (2, 0, 'x');
DO $$
DECLARE place tid;
BEGIN
    SELECT ctid INTO place FROM often WHERE id = 1;
    FOR i IN 1 .. 100000 LOOP UPDATE often SET n = i WHERE ctid = place RETURNING ctid INTO place; END LOOP;
END $$;
UPDATE often SET v = n::text;
INSERT INTO equal VALUES ('abc', 1.0, '0', '1.0', 1.5, 'x'), ('def', 100, '-0', '{"a": 1.00}', 1, 'y');
UPDATE equal SET k = 'ABC', n = 1.00, f = '-0', j = '1.00' WHERE k = 'aBC';
UPDATE equal SET n = 100.000, f = '0', j = '{"a": 1.0}' WHERE k = 'DEF';
INSERT INTO nokey SELECT 1.0 FROM generate_series(1, 2); UPDATE nokey SET n = 1.00 WHERE ctid = '(0,1)'; UPDATE nokey SET n = 1.000 WHERE n::text = '1.0';
SQL
wait_written('100,000 updates of a row in a transaction, values that are equal but not the same');
same('the row that was changed often', 'id, n, v', 'often');
same('text and scale of equal values', 'k::text, n::text, f::text, j::text', 'equal');
same('without a key', 'n::text', 'nokey');

# ---------------------------------------------------------------- beyond the limit
$pair->a("ALTER DATABASE postgres SET onerepl.max_row_size = '3MB'");
$pair->a("ALTER DATABASE postgres SET onerepl.row_limit_policy = 'refuse'");
my $large = "INSERT INTO wide (id, a, b) VALUES (10, repeat('x', 2000000), repeat('y', 2000000))";
my ($state, $message) = OneReplTest::fails($pair->node_a, $large);
is("$state $message", '54000 row of table "wide" is too large to be replicated', 'refuse: the writer is told');
$pair->a("INSERT INTO wide (id, a) VALUES (10, repeat('x', 2000000)); UPDATE wide SET b = repeat('y', 2000000) WHERE id = 10");
wait_written('by one value at a time it goes');
same('and arrives', 'id, a, b', 'wide');

$pair->a("ALTER DATABASE postgres SET onerepl.row_limit_policy = 'log_without_data'");
$pair->a($large =~ s/10,/11,/r);
$pair->a('INSERT INTO often VALUES (3)');
my $failed = 'SELECT string_agg(concat_ws(\' \', relation, operation, key, sqlstate), \', \' ORDER BY n) FROM onerepl.failed';
$pair->poll_b($failed, 'log_without_data: F at the central, with table and key', wanted => 'public.wide insert (id)=(11) 54000') or $pair->show_state;
is(OneReplTest::journal_count($_, level => 'critical', like => 'too large'), '1', 'critical in the journal of ' . $_->name) for $pair->nodes;
is($pair->b('SELECT count(*) FROM often WHERE id = 3'), '0', 'nothing passes it');
$pair->b('SET onerepl.allow_writes = on; INSERT INTO wide (id, a, b) VALUES (11, repeat(\'x\', 2000000), repeat(\'y\', 2000000))');
$pair->b("SELECT onerepl_resolve('branch', n, 'skip') FROM onerepl.failed");
wait_written('goes on when the row was brought by other means');
same('rows are the same', 'id, a, b', 'wide');

# The others: an update that grows a row and moves its key; without a key; a value that has no form as a message.
$pair->a("UPDATE wide SET id = 12, a = repeat('z', 3500000) WHERE id = 11");
$pair->poll_b($failed, 'an update with another key', wanted => 'public.wide update (id)=(11) 54000');
$pair->b("SET onerepl.allow_writes = on; UPDATE wide SET id = 12, a = repeat('z', 3500000) WHERE id = 11");
$pair->b("SELECT onerepl_resolve('branch', n, 'skip') FROM onerepl.failed");
$pair->a("BEGIN; INSERT INTO nokey SELECT 7, repeat('x', 4000000); DELETE FROM nokey WHERE n = 7; COMMIT");
$pair->poll_b('SELECT count(*) FROM onerepl.failed', 'without a key: insert and delete', wanted => '2');
$pair->b("SELECT onerepl_resolve('branch', n, 'skip') FROM onerepl.failed");
wait_written('and on');
same('rows are the same', 'id, a, b', 'wide');
same('without a key', 'n, v', 'nokey');

# ---------------------------------------------------------------- of which the remote cannot make a message
sub failed_is
{
	my ($name, $wanted) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	$pair->poll_b("SELECT string_agg(concat_ws(' ', operation, sqlstate, key), ';' ORDER BY n) FROM onerepl.failed", $name, wanted => $wanted)
	  or $pair->show_state;
	$pair->b("SELECT onerepl_resolve_all('branch', 'skip')");
	return;
}
$pair->a(q{CREATE FUNCTION send_point(point) RETURNS bytea LANGUAGE plpgsql AS
	$$BEGIN IF $1[0] = 13 THEN RAISE 'an unlucky point'; END IF; RETURN point_send($1); END$$;
	UPDATE pg_type SET typsend = 'send_point(point)'::regprocedure WHERE oid = 'point'::regtype});
$_->safe_psql('postgres', 'CREATE TABLE points (id int PRIMARY KEY, p point)') for $pair->nodes;
$pair->track('points');
$pair->a("INSERT INTO points VALUES (1, '(1,1)'); INSERT INTO points VALUES (2, '(13,1)'); INSERT INTO points VALUES (3, '(3,3)'); UPDATE points SET p = '(13,0)' WHERE id = 1");
failed_is('the first one is F', 'insert 54000 (id)=(2)');
failed_is('and the next one', 'update 54000 (id)=(1)');
$pair->poll_b('SELECT string_agg(id::text || p::text, $$ $$ ORDER BY id) FROM points', 'the link goes on', wanted => '1(1,1) 3(3,3)');
is(OneReplTest::journal_count($pair->node_a, level => 'critical', like => 'a row cannot be sent: an unlucky point'), '2', 'A tells the reason, once for each');
$pair->a("UPDATE pg_type SET typsend = 'point_send(point)'::regprocedure WHERE oid = 'point'::regtype; SELECT onerepl_refresh('hq', 'points', 'repair')");
$pair->wait_identical('points', { name => 'mended by a refresh' });

# ---------------------------------------------------------------- too large, on a link with a row filter
$pair->a("ALTER DATABASE postgres SET onerepl.max_row_size = '1MB'; ALTER DATABASE postgres SET onerepl.row_limit_policy = 'log_without_data'");
$pair->a("SELECT onerepl_set_filter('hq', 'wide', 'n > 0', refresh => NULL)");
$pair->a("INSERT INTO wide (id, n) VALUES (50, 1), (51, -1); INSERT INTO wide (id, n, a) VALUES (52, 1, repeat('x', 2000000)); INSERT INTO wide (id, n) VALUES (53, 1)");
failed_is('a row that the filter cannot judge is F', 'insert 54000 (id)=(52)');
$pair->poll_b('SELECT string_agg(id::text, $$ $$ ORDER BY id) FROM wide WHERE id >= 50', 'the others are filtered', wanted => '50 53');
$pair->finish;
done_testing();
