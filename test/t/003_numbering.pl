# P4: numbers without gaps for what is committed, whatever is open meanwhile; B follows in an order that keeps dependencies.
use strict;
use warnings;
use IPC::Run;
use OneReplTest;
use PostgreSQL::Test::Utils;
use Test::More;

my $pair = OneReplTest->new(track => [qw(counter ledger)], schema => <<'SQL');
CREATE TABLE counter (id int PRIMARY KEY, value int8 NOT NULL);
CREATE TABLE ledger (id bigserial PRIMARY KEY, counter int, value int8, who text, UNIQUE (counter, value));
INSERT INTO counter SELECT n, 0 FROM generate_series(1, 20) AS n;
SQL
my $dir = PostgreSQL::Test::Utils::tempdir();

# --- transactions that stay open over all that follows
my @open;
for my $i (1 .. 3)
{
	my $session = $pair->node_a->background_psql('postgres');
	$session->query_safe("BEGIN; INSERT INTO ledger (counter, value, who) VALUES (100 + $i, 1, 'long open')");
	push @open, $session;
}
$pair->a("BEGIN; INSERT INTO ledger (counter, value, who) VALUES (200, 1, 'prepared'); PREPARE TRANSACTION 'long'");

# --- many sessions: each takes the next value of a counter, a third rolls back
append_to_file("$dir/take.sql", <<'SQL');
\set c random(1, 20)
\set fate random(1, 3)
BEGIN;
UPDATE counter SET value = value + 1 WHERE id = :c;
INSERT INTO ledger (counter, value, who) SELECT id, value, 'client' FROM counter WHERE id = :c;
\if :fate = 1
ROLLBACK;
\else
COMMIT;
\endif
SQL
append_to_file("$dir/nested.sql", <<'SQL');
\set c random(1, 20)
BEGIN;
SAVEPOINT a;
UPDATE counter SET value = value + 1 WHERE id = :c;
ROLLBACK TO a;
UPDATE counter SET value = value + 1 WHERE id = :c;
SAVEPOINT b;
INSERT INTO ledger (counter, value, who) SELECT id, value, 'nested' FROM counter WHERE id = :c;
RELEASE b;
COMMIT;
SQL
my @loads = map { OneReplTest::start_pgbench($pair->node_a, '-c', 6, '-T', 8, '-f', "$dir/$_.sql") } qw(take nested);

# B always shows a prefix: a counter's value is the number of its ledger rows, at every moment.
my $looks = 0;
my $torn  = 0;
my $seen  = 0;
for (1 .. 25)
{
	my $wrong = $pair->b(<<'SQL');
SELECT count(*) FROM counter WHERE value <> (SELECT count(*) FROM ledger WHERE ledger.counter = counter.id)
   OR value <> (SELECT coalesce(max(ledger.value), 0) FROM ledger WHERE ledger.counter = counter.id)
SQL
	$looks++;
	$torn++ if $wrong;
	$seen = $pair->b('SELECT sum(value) FROM counter');
	select undef, undef, undef, 0.25;
}
IPC::Run::finish($_) for @loads;
is($torn, 0, "B was a state of A at each of $looks looks");
cmp_ok($seen, '>', 0, "changes arrive while transactions are open ($seen seen)");

$pair->a("SELECT onerepl_wait('hq', '30 s')");
is($pair->b("SELECT count(*) FROM ledger WHERE who IN ('long open', 'prepared')"), '0', 'what is open has not arrived');
is($pair->b('SELECT sum(value) FROM counter'), $pair->a('SELECT sum(value) FROM counter'), 'what is committed has');

$open[0]->query_safe('COMMIT');
$open[1]->query_safe('ROLLBACK');
$pair->a("COMMIT PREPARED 'long'");
$open[2]->query_safe("UPDATE counter SET value = value + 1000 WHERE id = 1; INSERT INTO ledger (counter, value, who) SELECT 1, value, 'late' FROM counter WHERE id = 1; COMMIT");
$_->quit for @open;
$pair->wait_identical('counter', 'ledger', { name => 'the long ones arrive after all' });
$pair->wait_settled('in the end');

is($pair->a('SELECT count(*) = max(n) AND min(n) = 1 FROM onerepl.log'), 't', 'numbers from 1 without a gap');
is($pair->a('SELECT count(*) FROM onerepl.batch AS b WHERE first <> 1 AND NOT EXISTS (SELECT FROM onerepl.batch AS p WHERE p.last = b.first - 1)'),
	'0', 'batches follow each other');
is($pair->b('SELECT count(*) FROM onerepl.failed'), '0', 'nothing failed on B');

# --- what is numbered is on disk although the sessions do not wait for theirs
$pair->a("SET synchronous_commit = off; INSERT INTO ledger (counter, value, who) SELECT 300, n, 'asynchronous' FROM generate_series(1, 1000) AS n");
$pair->poll_b("SELECT count(*) FROM ledger WHERE who = 'asynchronous'", 'asynchronous commits arrive', wanted => '1000');
OneReplTest::crash($pair->node_a);
$pair->wait_identical('ledger', { name => 'and are still there after a crash of A' });
is($pair->a("SELECT count(*) FROM onerepl.journal WHERE level = 'critical'"), '0', 'no fork found');

$pair->finish;
done_testing();
