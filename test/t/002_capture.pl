# Whatever way a change is made on A, B ends with the same rows; what rolls back leaves nothing; writers never wait.
use strict;
use warnings;
use OneReplTest;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(time);

my @tables = qw(t parent child swap holder part_root noisy deferred);
my $pair = OneReplTest->new(track => \@tables, schema => <<'SQL');
CREATE TABLE t (id int PRIMARY KEY, v text, n int DEFAULT 0);
CREATE TABLE parent (id int PRIMARY KEY, v int);
CREATE TABLE child (id int PRIMARY KEY, parent int REFERENCES parent ON DELETE CASCADE ON UPDATE CASCADE);
CREATE TABLE swap (id int PRIMARY KEY, u int UNIQUE, v text);
CREATE TABLE holder (id int PRIMARY KEY, code text UNIQUE);
CREATE TABLE part_root (id int, region int, v text, PRIMARY KEY (id, region)) PARTITION BY LIST (region);
CREATE TABLE part_1 PARTITION OF part_root FOR VALUES IN (1);
CREATE TABLE part_2 PARTITION OF part_root FOR VALUES IN (2);
CREATE TABLE noisy (id int PRIMARY KEY, v int, echo int);
CREATE TABLE deferred (id int PRIMARY KEY, u int UNIQUE DEFERRABLE INITIALLY DEFERRED, v text);
SQL

# --- users' triggers, on A only: B gets their effects as changes
$pair->a(<<'SQL');
CREATE FUNCTION touch_same() RETURNS trigger LANGUAGE plpgsql AS
$$ BEGIN IF NEW.echo IS DISTINCT FROM NEW.v THEN UPDATE noisy SET echo = v WHERE id = NEW.id; END IF; RETURN NULL; END $$;
CREATE TRIGGER a_touch AFTER INSERT OR UPDATE ON noisy FOR EACH ROW EXECUTE FUNCTION touch_same();
CREATE FUNCTION free_code() RETURNS trigger LANGUAGE plpgsql AS
$$ BEGIN DELETE FROM holder WHERE code = NEW.code AND id <> NEW.id; RETURN NEW; END $$;
CREATE TRIGGER free_code BEFORE INSERT ON holder FOR EACH ROW EXECUTE FUNCTION free_code();
CREATE FUNCTION touch_other() RETURNS trigger LANGUAGE plpgsql AS
$$ BEGIN IF pg_trigger_depth() = 1 THEN UPDATE t SET n = n + 1 WHERE id = NEW.id + 1; END IF; RETURN NULL; END $$;
CREATE TRIGGER touch_other AFTER UPDATE ON t FOR EACH ROW EXECUTE FUNCTION touch_other();
SQL

sub check
{
	my ($name, $sql, @checked) = @_;
	$pair->a($sql);
	$pair->wait_identical(@checked ? @checked : @tables, { name => $name, deadline => 20 });
}

check('a transaction of many statements', <<'SQL', 't');
BEGIN; INSERT INTO t SELECT n, 'v' || n FROM generate_series(1, 300) AS n; UPDATE t SET v = v || '!' WHERE id % 2 = 0;
DELETE FROM t WHERE id % 5 = 0; UPDATE t SET id = id + 10000 WHERE id % 9 = 0; COMMIT;
SQL

check('subtransactions: what is rolled back is not sent', <<'SQL', 't');
BEGIN; INSERT INTO t VALUES (1001, 'kept');
SAVEPOINT a; INSERT INTO t VALUES (1002, 'lost'); UPDATE t SET v = 'lost' WHERE id = 1001; ROLLBACK TO a;
SAVEPOINT b; INSERT INTO t VALUES (1003, 'kept'); SAVEPOINT c; DELETE FROM t WHERE id = 1003; ROLLBACK TO c;
UPDATE t SET v = 'kept twice' WHERE id = 1003; RELEASE b; COMMIT;
SQL

check('large subtransactions that are flushed and rolled back', <<'SQL', 't');
BEGIN; INSERT INTO t SELECT n, repeat('x', 500) FROM generate_series(2000, 3000) AS n;
SAVEPOINT a; INSERT INTO t SELECT n, repeat('y', 500) FROM generate_series(3001, 6000) AS n; ROLLBACK TO a;
INSERT INTO t SELECT n, repeat('z', 500) FROM generate_series(3001, 3500) AS n; COMMIT;
SQL

check('exception blocks', <<'SQL', 't');
DO $$ BEGIN
    FOR i IN 4000 .. 4100 LOOP
        BEGIN
            INSERT INTO t VALUES (i, 'tried');
            IF i % 3 = 0 THEN RAISE division_by_zero; END IF;
        EXCEPTION WHEN division_by_zero THEN
            INSERT INTO t VALUES (i + 1000, 'in the handler');
        END;
    END LOOP;
END $$;
SQL

my $m = $pair->a('SELECT numbered_to FROM onerepl_status()');
$pair->a('BEGIN; INSERT INTO t VALUES (-1); UPDATE parent SET v = 1; TRUNCATE child; ROLLBACK');
my ($status) = OneReplTest::fails($pair->node_a, "BEGIN; INSERT INTO t VALUES (-2); SELECT 1/0; COMMIT");
is($status, '22012', 'a transaction that fails');
sleep 1;
is($pair->a('SELECT numbered_to FROM onerepl_status()'), $m, 'a transaction that rolls back leaves no number');

check('COPY', "COPY t (id, v) FROM STDIN;\n" . join('', map { "$_\tcopied $_\n" } 20000 .. 20500) . "\\.\n", 't');

check('INSERT ... ON CONFLICT', <<'SQL', 't');
INSERT INTO t (id, v) SELECT n, 'upsert' FROM generate_series(20400, 20600) AS n ON CONFLICT (id) DO UPDATE SET v = excluded.v, n = t.n + 1;
INSERT INTO t (id, v) SELECT n, 'ignored' FROM generate_series(20590, 20610) AS n ON CONFLICT DO NOTHING;
SQL

check('MERGE', <<'SQL', 't');
MERGE INTO t USING (SELECT n FROM generate_series(20550, 20700) AS n) AS s ON t.id = s.n
WHEN MATCHED AND s.n % 2 = 0 THEN DELETE WHEN MATCHED THEN UPDATE SET v = 'merged' WHEN NOT MATCHED THEN INSERT VALUES (s.n, 'by merge');
SQL

check('foreign keys that cascade', <<'SQL', 'parent', 'child');
INSERT INTO parent SELECT n, n FROM generate_series(1, 50) AS n;
INSERT INTO child SELECT n, n % 50 + 1 FROM generate_series(1, 500) AS n;
DELETE FROM parent WHERE id % 3 = 0; UPDATE parent SET id = id + 100 WHERE id % 4 = 0;
SQL

check('an AFTER trigger that changes the same row', <<'SQL', 'noisy');
INSERT INTO noisy SELECT n, n FROM generate_series(1, 100) AS n; UPDATE noisy SET v = v * 2;
SQL

check('an AFTER trigger that changes another row of the statement', <<'SQL', 't');
UPDATE t SET v = 'by statement', n = 0 WHERE id BETWEEN 2000 AND 2100; UPDATE t SET v = 'again' WHERE id BETWEEN 2000 AND 2100;
SQL

check('a BEFORE INSERT trigger that deletes the holder of the value', <<'SQL', 'holder');
INSERT INTO holder SELECT n, 'c' || n FROM generate_series(1, 20) AS n;
INSERT INTO holder SELECT n + 100, 'c' || n FROM generate_series(1, 20) AS n;
BEGIN; INSERT INTO holder VALUES (500, 'c1'); INSERT INTO holder VALUES (501, 'c1'), (502, 'c1'); COMMIT;
SQL

check('a unique value that changes hands in one transaction', <<'SQL', 'swap');
INSERT INTO swap SELECT n, n, 'v' FROM generate_series(1, 10) AS n;
BEGIN; UPDATE swap SET u = 100 WHERE id = 1; UPDATE swap SET u = 1 WHERE id = 2; UPDATE swap SET u = 2 WHERE id = 1; COMMIT;
BEGIN; DELETE FROM swap WHERE id = 3; INSERT INTO swap VALUES (30, 3, 'took over'); INSERT INTO swap VALUES (3, 33, 'again'); COMMIT;
SQL
check('a unique value that is swapped within one statement', <<'SQL', 'deferred');
INSERT INTO deferred SELECT n, n, 'v' FROM generate_series(1, 10) AS n;
UPDATE deferred SET u = CASE id WHEN 1 THEN 2 WHEN 2 THEN 1 END WHERE id IN (1, 2);
UPDATE deferred SET u = 11 - u;
BEGIN; UPDATE deferred SET u = u + 1; UPDATE deferred SET u = u + 1; DELETE FROM deferred WHERE id = 5; COMMIT;
SQL
check('keys that move up one by one', <<'SQL', 'swap');
BEGIN; DELETE FROM swap WHERE id = 10; DO $$ BEGIN FOR i IN REVERSE 9 .. 4 LOOP UPDATE swap SET id = i + 1 WHERE id = i; END LOOP; END $$; COMMIT;
SQL

check('rows of a partitioned table, moving between partitions', <<'SQL', 'part_root', 'part_1', 'part_2');
INSERT INTO part_root SELECT n, n % 2 + 1, 'v' FROM generate_series(1, 100) AS n;
UPDATE part_root SET region = 3 - region WHERE id < 30; UPDATE part_root SET v = 'x' WHERE id > 50; DELETE FROM part_root WHERE id > 90;
SQL

# --- two-phase commit: the prepared one commits later than what was done after it
$pair->a("BEGIN; INSERT INTO t VALUES (-10, 'prepared'); UPDATE swap SET v = 'prepared' WHERE id = 1; PREPARE TRANSACTION 'one'");
$pair->a("BEGIN; INSERT INTO t VALUES (-11, 'never'); PREPARE TRANSACTION 'two'");
$pair->a("INSERT INTO t VALUES (-12, 'after the prepared one')");
$pair->poll_b('SELECT count(*) FROM t WHERE id IN (-10, -12)', 'what is prepared does not hold back others', wanted => '1');
$pair->node_a->restart;
$pair->a("COMMIT PREPARED 'one'");
$pair->a("ROLLBACK PREPARED 'two'");
$pair->wait_identical('t', 'swap', { name => 'prepared transactions, across a restart' });

# --- truncates of several tables, with cascade
check('TRUNCATE ... CASCADE', 'BEGIN; INSERT INTO parent VALUES (1000, 1); TRUNCATE parent, noisy CASCADE; INSERT INTO parent VALUES (1, 1); COMMIT', 'parent', 'child', 'noisy');

# --- session_replication_role = replica does not silence the capture
check('under session_replication_role = replica', "SET session_replication_role = replica; INSERT INTO t VALUES (-20, 'replica role'); DELETE FROM t WHERE id = -12");

# --- roles without any right on onerepl
check('a role without rights on onerepl', <<'SQL', 't');
CREATE ROLE app; GRANT ALL ON t TO app; SET ROLE app; INSERT INTO t VALUES (-30, 'by app'); UPDATE t SET v = 'by app again' WHERE id = -30;
SQL

# --- a writer does not wait while another transaction is open, nor while the sender is stopped
my $open = $pair->node_a->background_psql('postgres');
$open->query_safe("BEGIN; INSERT INTO t VALUES (-40, 'long open'); UPDATE swap SET v = 'open' WHERE id = 30");
my $begin = time;
$pair->a("SET lock_timeout = '1s'; SET statement_timeout = '3s'; INSERT INTO t SELECT n FROM generate_series(-200, -100) AS n; DELETE FROM t WHERE id < -150");
cmp_ok(time - $begin, '<', 3, 'a writer does not wait for an open transaction');
$pair->poll_b('SELECT count(*) FROM t WHERE id BETWEEN -150 AND -100', 'nor do its changes', wanted => '51');
$open->query_safe('COMMIT');
$open->quit;
$pair->wait_identical(@tables, { name => 'all tables in the end' });
is($pair->b('SELECT count(*) FROM onerepl.failed'), '0', 'nothing failed on B');

$pair->finish;
done_testing();
