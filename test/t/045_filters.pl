# Filters: a link gets some rows and columns only, with the right kind of change where an update moves a row in or out; tables
# that are called otherwise on B, and one table for several branches.
use strict;
use warnings;
use IO::Socket::INET;
use OneReplTest;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $pair = OneReplTest->new(
	track  => [ 'customer', 'note', 'keyed' ],
	schema => <<'SQL');
CREATE TYPE mood AS ENUM ('ok', 'bad');
CREATE TABLE customer (id int PRIMARY KEY, region text, secret text, big text, m mood DEFAULT 'ok', amount numeric);
CREATE TABLE note (id int PRIMARY KEY, body text);
CREATE TABLE keyed (id int PRIMARY KEY, u int UNIQUE DEFERRABLE INITIALLY DEFERRED, wanted bool);
INSERT INTO customer SELECT n, CASE n % 2 WHEN 0 THEN 'east' ELSE 'west' END, 's' || n, repeat(md5(n::text), 300), 'ok', n FROM generate_series(1, 20) AS n;
SQL

# What B must have: the rows of A that fulfil the condition, in the columns given.
sub filtered
{
	my ($columns, $table, $condition, $name, $there) = @_;
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	my $query = sub { "SELECT string_agg(t::text, E'\\n' ORDER BY t) FROM (SELECT $columns FROM $_[0] WHERE $_[1]) AS t" };
	$pair->a("SELECT onerepl_wait('hq', '30 s')");
	$pair->poll_b($query->($there // $table, 'true'), $name, wanted => $pair->a($query->($table, $condition)), deadline => 20)
	  or $pair->show_state;
	return;
}

# --- rows
my $east = "region = 'east' AND m IS DISTINCT FROM 'bad'::public.mood";
$pair->a("SELECT onerepl_set_filter('hq', 'customer', rows => \$\$$east\$\$)");
filtered('*', 'customer', $east, 'rows that were there and do not fulfil the condition go from B');
$pair->a("INSERT INTO customer VALUES (21, 'east', 'x', 'new'), (22, 'west', 'x', 'new'), (23, NULL, 'x', 'new')");
filtered('*', 'customer', $east, 'insert');
$pair->a("UPDATE customer SET amount = amount + 1; UPDATE customer SET region = 'west' WHERE id IN (2, 4); UPDATE customer SET region = 'east' WHERE id IN (1, 3)");
filtered('*', 'customer', $east, 'updates inside, outside, out of it, and into it, with values out of line that did not change');
$pair->a("UPDATE customer SET m = 'bad' WHERE id = 6; UPDATE customer SET id = id + 100 WHERE id IN (8, 9); UPDATE customer SET id = id + 100, region = 'east' WHERE id = 11;"
	  . "UPDATE customer SET id = id + 100, region = 'west' WHERE id = 12; DELETE FROM customer WHERE id IN (13, 14)");
filtered('*', 'customer', $east, 'enums, keys that move, deletes');
$pair->a("BEGIN; UPDATE customer SET region = 'east' WHERE id = 5; UPDATE customer SET region = 'west' WHERE id = 5; UPDATE customer SET region = 'east', amount = 0 WHERE id = 5; COMMIT");
filtered('*', 'customer', $east, 'in, out, and in again in one transaction');
my $seed = $ENV{SEED} // int rand 1000000;
note "SEED=$seed";
$pair->a(<<"SQL");
DO \$\$
DECLARE
    k int;
    r text;
BEGIN
    PERFORM setseed($seed / 1000000.0);
    FOR i IN 1..600 LOOP
        k := 200 + floor(random() * 20);
        r := (ARRAY['east', 'west', NULL])[1 + floor(random() * 3)];
        CASE floor(random() * 5)
            WHEN 0 THEN INSERT INTO customer VALUES (k, r, 's', repeat(md5(i::text), 300)) ON CONFLICT (id) DO UPDATE SET region = r;
            WHEN 1 THEN UPDATE customer SET region = r WHERE id = k;
            WHEN 2 THEN DELETE FROM customer WHERE id = k;
            WHEN 3 THEN UPDATE customer SET id = id + 20, region = r
                        WHERE id = k AND NOT EXISTS (SELECT FROM customer AS c WHERE c.id = k + 20);
            ELSE UPDATE customer SET id = id - 20, m = (ARRAY['ok', 'bad']::mood[])[1 + floor(random() * 2)]
                 WHERE id = k + 20 AND NOT EXISTS (SELECT FROM customer AS c WHERE c.id = k);
        END CASE;
        IF random() < 0.2 THEN
            COMMIT;
        END IF;
    END LOOP;
END \$\$
SQL
filtered('*', 'customer', $east, 'anything in any order');
$pair->a("INSERT INTO keyed SELECT n, n, n % 2 = 0 FROM generate_series(1, 10) AS n; SELECT onerepl_set_filter('hq', 'keyed', 'wanted'); UPDATE keyed SET u = 11 - u, wanted = NOT wanted");
filtered('*', 'keyed', 'wanted', 'unique values that are swapped among rows inside and outside');
is($pair->b("SELECT count(*) FROM onerepl.failed"), '0', 'nothing failed');
is($pair->a('SELECT numbered_to FROM onerepl_status()'), $pair->b('SELECT written_to FROM onerepl_status()'), 'numbers that the link does not get count as written');

# --- refresh and verification respect it
$pair->b("SET onerepl.allow_writes = on; DELETE FROM customer WHERE id = 10; INSERT INTO customer VALUES (999, 'west', 'not of A')");
$pair->a("SELECT onerepl_verify('hq', 'customer')");
$pair->poll_b('SELECT count(*) > 0 FROM onerepl.differences', 'a verification finds what differs');
$pair->a("SELECT onerepl_refresh('hq', 'customer', 'repair')");
filtered('*', 'customer', $east, 'a refresh brings the rows of the filter, and takes others');
$pair->poll_a("SELECT bool_and(state = 'done') FROM onerepl.refresh_progress", 'it is done');
$pair->a("SELECT onerepl_verify('hq', 'customer')");
$pair->poll_a("SELECT bool_and(state = 'done') FROM onerepl.refresh_progress", 'a verification is done');
is($pair->b('SELECT count(*) FROM onerepl.differences'), '0', 'and finds nothing');

# --- columns, with the rows
$pair->b("SET onerepl.allow_writes = on; ALTER TABLE customer DROP secret, DROP big");
$pair->a("SELECT onerepl_set_filter('hq', 'customer', \$\$$east\$\$, '{region,m,amount}')");
$pair->a("INSERT INTO customer VALUES (31, 'east', 'top secret', 'big'); UPDATE customer SET secret = 'changed' WHERE id = 31; UPDATE customer SET region = 'east' WHERE id = 22");
filtered('id, region, m, amount', 'customer', $east, 'B lacks the columns that the link does not get');
unlike($pair->b("SELECT encode(description, 'escape') FROM onerepl.remote_description WHERE encode(description, 'escape') ~ 'customer' ORDER BY id DESC LIMIT 1"),
	qr/secret/, 'nor does the description name them');

# --- what cannot be
for my $case (
	[ '42703', "'customer', 'nowhere = 1'" ], [ '42703', "'customer', NULL, '{nowhere}'" ], [ '42P17', "'customer', 'now() > ''2020-01-01''::timestamptz'" ],
	[ '0A000', "'customer', 'id IN (SELECT 1)'" ], [ '42804', "'customer', 'id + 1'" ], [ '55000', "'pg_class', 'true'" ], [ '22023', "'customer', 'true', refresh => 'maybe'" ])
{
	my ($state) = OneReplTest::fails($pair->node_a, "SELECT onerepl_set_filter('hq', $case->[1])");
	is($state, $case->[0], "refused: $case->[1]");
}
my ($state, $message) = OneReplTest::fails($pair->node_a, 'ALTER TABLE customer RENAME region TO area');
is($state, '2BP01', "ALTER TABLE that would break it is refused: $message");
$pair->a('ALTER TABLE customer ADD more int DEFAULT 7; ALTER TABLE customer DROP big');
$pair->a("UPDATE customer SET region = 'east', more = 8 WHERE id = 15");
filtered('id, region, m, amount', 'customer', $east, 'another one is not');

# --- a condition that fails for some rows does not stop the link
$pair->a("SELECT onerepl_set_filter('hq', 'note', '10 / length(body) > 1', refresh => NULL)");
$pair->a("INSERT INTO note VALUES (1, 'abc'), (2, ''), (3, 'de'), (4, repeat('x', 100)); UPDATE note SET body = '' WHERE id = 3; UPDATE note SET body = 'xyz' WHERE id = 2");
filtered('*', 'note', 'id IN (1, 2)', 'rows for which the condition fails are not sent');
is(OneReplTest::journal_count($pair->node_a, level => 'critical', like => 'the row filter of table public.note fails'), '1', 'which the journal says');

# --- the end of a filter
$pair->a("SELECT onerepl_set_filter('hq', 'keyed')");
$pair->a("UPDATE keyed SET u = u + 100 WHERE NOT wanted");
$pair->wait_identical('keyed', { name => 'without a filter all comes again' });

# --- other names on B
$pair->a("CREATE SCHEMA sales; CREATE TABLE sales.orders (id serial PRIMARY KEY, v text); CREATE TABLE sales.item (id int PRIMARY KEY, v text)");
$pair->b("CREATE SCHEMA branch_17; CREATE TABLE branch_17.orders (id serial PRIMARY KEY, v text); CREATE TABLE branch_17.things (id int PRIMARY KEY, v text)");
$pair->b("SELECT onerepl_set_target('branch', 'sales', schema => 'branch_17'), onerepl_set_target('branch', 'sales', 'item', 'branch_17', 'things')");
$pair->a("SELECT onerepl_add_schema('sales'); INSERT INTO sales.orders (v) VALUES ('a'), ('b'); INSERT INTO sales.item VALUES (1, 'x'); UPDATE sales.orders SET v = 'c' WHERE id = 1");
filtered('*', 'sales.orders', 'true', 'a schema under another name', 'branch_17.orders');
filtered('*', 'sales.item', 'true', 'a table under another name', 'branch_17.things');
$pair->poll_b('SELECT last_value FROM branch_17.orders_id_seq', 'its sequence follows there', wanted => '2');
$pair->a("SELECT onerepl_refresh('hq', 'sales.item')");
filtered('*', 'sales.item', 'true', 'and it can be refreshed', 'branch_17.things');
($state) = OneReplTest::fails($pair->node_b, 'DELETE FROM branch_17.things');
is($state, '25006', 'the table is read-only there');

$pair->b("CREATE TABLE branch_17.others (id int PRIMARY KEY, v text); SELECT onerepl_set_target('branch', 'sales', 'item', 'branch_17', 'others')");
$pair->a("INSERT INTO sales.item VALUES (2, 'y')");
$pair->poll_b('SELECT v FROM branch_17.others WHERE id = 2', 'another target holds from the next row on', wanted => 'y');

# --- many branches in one table
my $port = PostgreSQL::Test::Cluster::get_free_port();
my $second = OneReplTest::start_node('a2', 0, "onerepl.listen = '127.0.0.1:$port'");
my $schema = 'CREATE TABLE stock (id int PRIMARY KEY, v text)';
$second->safe_psql('postgres', "CREATE EXTENSION onerepl; $schema");
$pair->a($schema);
$pair->b('CREATE TABLE stock (branch int, id int, v text, PRIMARY KEY (branch, id))');
$pair->b("SELECT onerepl_add_remote('branch2', 'another secret, also long enough', tables => '{*}'); SELECT onerepl_set_target(l.name, 'public', 'stock', branch_column => 'branch', branch => (16 + l.id)::text) FROM onerepl.link AS l");
$second->safe_psql('postgres', "SELECT onerepl_add_central('hq', 'http://127.0.0.1:$pair->{listen}', 'another secret, also long enough')");
$_->safe_psql('postgres', "SELECT onerepl_add_table('stock')") for $pair->node_a, $second;
$pair->a("INSERT INTO stock SELECT n, 'first' FROM generate_series(1, 5) AS n; UPDATE stock SET v = 'changed' WHERE id = 2; DELETE FROM stock WHERE id = 3; UPDATE stock SET id = 10 WHERE id = 4");
$second->safe_psql('postgres', "INSERT INTO stock SELECT n, 'second' FROM generate_series(1, 5) AS n; UPDATE stock SET v = 'other' WHERE id = 2; DELETE FROM stock WHERE id = 1");
$pair->poll_b("SELECT string_agg(concat_ws(':', branch, id, v), ' ' ORDER BY branch, id) FROM stock", 'rows of two branches in one table',
	wanted => '17:1:first 17:2:changed 17:5:first 17:10:first 18:2:other 18:3:second 18:4:second 18:5:second');
$second->safe_psql('postgres', "TRUNCATE stock; INSERT INTO stock VALUES (7, 'again')");
$pair->poll_b("SELECT string_agg(concat_ws(':', branch, id, v), ' ' ORDER BY branch, id) FROM stock", 'TRUNCATE takes those of its own branch',
	wanted => '17:1:first 17:2:changed 17:5:first 17:10:first 18:7:again');
$second->safe_psql('postgres', "UPDATE stock SET v = 'goes on'");
$pair->poll_b("SELECT v FROM stock WHERE branch = 18", 'and it goes on', wanted => 'goes on');
is($pair->b("SELECT count(*) FROM stock WHERE branch = 17"), '4', 'the other branch has lost nothing');

# --- from a read point on, each record meets the filter of its time
$pair->wait_settled('before the read point');
my $from = $pair->a("SELECT numbered_to + 1 FROM onerepl_status() WHERE link = 'hq'");
my $pointed = 'CREATE TABLE pointed (id int PRIMARY KEY)';
$pair->a($pointed);
$pair->b($pointed);
$pair->track('pointed');
for my $limit (100, 50, 40)
{
	$pair->a("SELECT onerepl_set_filter('hq', 'pointed', 'id % 1000 < $limit', refresh => NULL)");
	$pair->a("INSERT INTO pointed SELECT n + 1000 * $limit FROM generate_series(1, 470) AS n");
	$pair->wait_settled("rows with id % 1000 < $limit");
}
my $wanted = $pair->b('SELECT count(*) FROM pointed');
is($wanted, '187', 'three filters, one after the other');
$pair->b("SELECT onerepl_pause('branch'); DROP TABLE pointed; $pointed; SELECT onerepl_restart_link('branch')");
$pair->a("SELECT onerepl_restart_link('hq', read_point => $from)");
$pair->b("SELECT onerepl_resume('branch')");
$pair->wait_settled('from the read point on');
is($pair->b('SELECT count(*) FROM pointed'), $wanted, 'the same rows come once more, and none that a filter kept back');
$pair->a("SELECT onerepl_refresh('hq', 'pointed', method => 'repair')");
$pair->verify_equal('pointed');

# --- another link has a choice of its own
$second->safe_psql('postgres', "CREATE TABLE keyed (id int PRIMARY KEY, u int UNIQUE DEFERRABLE INITIALLY DEFERRED, wanted bool); SELECT onerepl_add_remote('a', 'the third secret, long enough too', tables => '{*}')");
OneReplTest::wait_for(sub { IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $port) }, 20);
$pair->a("SELECT onerepl_set_filter('hq', 'keyed', 'wanted')");
$pair->a("BEGIN; SELECT onerepl_add_central('all', 'http://127.0.0.1:$port', 'the third secret, long enough too'), onerepl_refresh('all', 'keyed'); COMMIT");
$pair->a("UPDATE keyed SET wanted = NOT wanted WHERE id < 6; DELETE FROM keyed WHERE id IN (7, 8); UPDATE keyed SET id = id + 50 WHERE id > 8; INSERT INTO keyed VALUES (20, 20, false), (21, 21, true)");
filtered('*', 'keyed', 'wanted', 'one link gets a part');
ok(OneReplTest::wait_for(sub { (OneReplTest::fingerprint($second, 'keyed') // '') eq OneReplTest::fingerprint($pair->node_a, 'keyed') }, 20), 'and another one all');

$second->stop('fast');
$pair->finish;
done_testing();
