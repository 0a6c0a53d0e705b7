# What B cannot write in one commit it writes in smaller ones (P22).
use strict;
use warnings;
use OneReplTest;
use Test::More;

my $pair = OneReplTest->new(schema => 'CREATE TABLE t (id int PRIMARY KEY)', links => 0);
$pair->a(sprintf "SELECT onerepl_add_central('hq', '%s', '%s')", $pair->url, $OneReplTest::secret);
$pair->track('t');

# B runs out of something, as of locks, when a transaction has more than seven rows.
$pair->b(<<'SQL');
CREATE FUNCTION short() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF (SELECT count(*) FROM public.t WHERE xmin::text = (pg_current_xact_id()::text::int8 % (1::int8 << 32))::text) > 7 THEN
        RAISE 'short of everything' USING ERRCODE = '53200';
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER short AFTER INSERT ON t FOR EACH ROW EXECUTE FUNCTION short();
ALTER TABLE t ENABLE ALWAYS TRIGGER short;
SQL

# All of it comes in one body.
$pair->a(join '', map { "INSERT INTO t VALUES ($_);\n" } 1 .. 60);
$pair->b("SELECT onerepl_add_remote('branch', '$OneReplTest::secret', tables => '{*}')");
$pair->wait_identical('t', { name => 'sixty transactions that do not fit into one commit', deadline => 60 });
$pair->wait_settled('and confirmed');
ok(OneReplTest::journal_count($pair->node_b, like => 'writing is put off.*SQLSTATE 53200') > 0, 'B was short of it meanwhile');
cmp_ok($pair->b('SELECT max(c) FROM (SELECT count(*) AS c FROM t GROUP BY xmin::text) AS commits'), '<=', 7, 'no commit was too large');
cmp_ok($pair->b('SELECT max(c) FROM (SELECT count(*) AS c FROM t GROUP BY xmin::text) AS commits'), '>', 1, 'and they grow again');

# One that does not fit at all waits, and goes once it can.
$pair->a('INSERT INTO t SELECT generate_series(100, 120)');
$pair->poll_b("SELECT state = 'put off' AND last_error LIKE '%SQLSTATE 53200%' FROM onerepl_status()", 'a single transaction that is too large is put off');
$pair->b('DROP TRIGGER short ON t');
$pair->wait_identical('t', { name => 'and is written when it can be', deadline => 60 });
$pair->poll_b("SELECT state = 'in step' AND last_error IS NULL FROM onerepl_status()", 'B is in step');
$pair->finish;
done_testing();
