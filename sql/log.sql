-- The log on a remote whose central is away: numbers, states I, L and B, what a transaction leaves, as the views show it.
SET client_min_messages = warning;
\set SHOW_CONTEXT never
CREATE EXTENSION IF NOT EXISTS onerepl;
-- numbers come from the sender
CREATE PROCEDURE numbered_to(expected int8) LANGUAGE plpgsql AS $$
BEGIN
    FOR i IN 1..600 LOOP
        EXIT WHEN (SELECT coalesce(max(last), 0) FROM onerepl.batch) >= expected;
        PERFORM pg_sleep(0.05);
    END LOOP;
    IF (SELECT coalesce(max(last), 0) FROM onerepl.batch) <> expected THEN
        RAISE EXCEPTION 'the newest number is %, not %', (SELECT coalesce(max(last), 0) FROM onerepl.batch), expected;
    END IF;
END $$;
CREATE TABLE item (id int PRIMARY KEY, name text);
CREATE TABLE pair (a int, b text, value int, PRIMARY KEY (a, b));
CREATE TABLE "No Key" (value int);
SELECT onerepl_add_central('east', 'http://127.0.0.1:1', 'a secret of the east') IS NOT NULL AS added;
SELECT onerepl_add_central('west', 'http://127.0.0.1:1', 'a secret of the west') IS NOT NULL AS added;
SELECT onerepl_add_table('item'), onerepl_add_table('pair'), onerepl_add_table('"No Key"');

INSERT INTO item VALUES (1, 'one'), (2, 'two');
-- the descriptions of the tables go before
CALL numbered_to(5);
SELECT n, relation, object_id, operation, state FROM onerepl.log WHERE link = 'east' ORDER BY n;
SELECT n, relation, object_id, operation, state FROM onerepl.log WHERE link = 'west' ORDER BY n;
SELECT link, written_to, numbered_to, lag_records, lag_seconds > 0 AS is_late, lag_bytes > 0 AS has_bytes FROM onerepl_status();

-- what is rolled back has no number; a rolled back part neither
BEGIN;
INSERT INTO item VALUES (3, 'three');
ROLLBACK;
BEGIN;
UPDATE item SET name = 'eins' WHERE id = 1;
SAVEPOINT a;
DELETE FROM item WHERE id = 1;
ROLLBACK TO a;
DELETE FROM item WHERE id = 2;
COMMIT;
CALL numbered_to(7);
SELECT n, object_id, operation, state FROM onerepl.log WHERE link = 'east' AND n > 5 ORDER BY n;

-- keys of several columns, quoted where needed; no key; a key that moves; TRUNCATE
INSERT INTO pair VALUES (1, 'x', 1), (2, 'a "b", c', 2);
INSERT INTO "No Key" VALUES (7);
UPDATE item SET id = 10 WHERE id = 1;
TRUNCATE item;
CALL numbered_to(12);
SELECT n, relation, object_id, moved_to, operation, state FROM onerepl.log WHERE link = 'east' AND n > 7 ORDER BY n;

SELECT n, state FROM onerepl.log_records('west', 5, 7);

-- states of objects
SELECT * FROM onerepl_object_state('item', '99') ORDER BY link;
SELECT link, state, n, changed_at IS NOT NULL AS has_time FROM onerepl_object_state('item', '2') ORDER BY link;
SELECT link, state, n FROM onerepl_object_state('pair', '(1,x)') ORDER BY link;
SELECT link, state, n FROM onerepl_object_state('pair', (SELECT (a, b)::text FROM pair WHERE a = 2)) ORDER BY link;
SELECT link, state, n FROM onerepl_object_state('item', '1') ORDER BY link;
SELECT link, state, n FROM onerepl_object_state('item', '10') ORDER BY link;
-- blocked on one link, and only there
SELECT onerepl_block('east', 7);
SELECT link, state, n FROM onerepl_object_state('item', '2') ORDER BY link;
SELECT link, n, state FROM onerepl.log WHERE n IN (6, 7, 8) ORDER BY n, link;
SELECT onerepl_unblock('east', 7);
SELECT link, state, n FROM onerepl_object_state('item', '2') ORDER BY link;

-- B has none of it
SELECT onerepl_wait('east', '50 ms');
SELECT onerepl_wait('east', '0');
BEGIN ISOLATION LEVEL REPEATABLE READ;
SELECT onerepl_wait('west', '50 ms');
COMMIT;
BEGIN;
INSERT INTO item VALUES (4, 'four');
SELECT onerepl_wait('east');
\echo :LAST_ERROR_SQLSTATE
ROLLBACK;
SET statement_timeout = '200 ms';
SELECT onerepl_wait('east');
\echo :LAST_ERROR_SQLSTATE
RESET statement_timeout;

-- started anew, the link begins after what is there, and with the descriptions of the tables
SELECT onerepl_restart_link('east');
CALL numbered_to(15);
SELECT link, written_to, numbered_to FROM onerepl_status();
SELECT count(*) FROM onerepl.log WHERE link = 'east';
SELECT onerepl_wait('east', '0');

SELECT onerepl_remove_central('east'), onerepl_remove_central('west');
DROP PROCEDURE numbered_to;
DROP EXTENSION onerepl;
DROP TABLE item, pair, "No Key";
CREATE EXTENSION onerepl;
