-- The central's failures (state F) and what the administrator decides about them. The failures are made by hand here.
SET client_min_messages = warning;
\set SHOW_CONTEXT never
CREATE EXTENSION IF NOT EXISTS onerepl;
SELECT onerepl_add_remote('north', 'a secret of the north') AS link \gset
UPDATE onerepl.link SET start = 0, start_identity = '\x00', peer = gen_random_uuid() WHERE id = :link;
INSERT INTO onerepl.failure (link, n, transaction_first, transaction_last, relation, operation, key, row, sqlstate, message, constraint_name)
SELECT :link, n, 10, 20, CASE WHEN n < 14 THEN 'public.item' ELSE 'public.sale' END, 'insert', format('(id)=(%s)', n), format('(id, name)=(%s, x)', n),
       CASE WHEN n % 2 = 0 THEN '23505' ELSE '23514' END, 'it does not fit', 'some_constraint'
FROM generate_series(11, 17) AS n;
SELECT state, what_to_do FROM onerepl_status();

SELECT onerepl_resolve('north', 11, 'retry');
SELECT onerepl_resolve('north', 12, 'overwrite');
SELECT onerepl_resolve('north', 13, 'skip');
SELECT n, relation, sqlstate, resolution, resolved_by = session_user AS by_me FROM onerepl.failed ORDER BY n;
SELECT state FROM onerepl_status();
SELECT onerepl_resolve_all('north', 'overwrite', sqlstate => '23505', relation => 'public.sale');
SELECT onerepl_resolve_all('north', 'skip', relation => 'nothing');
SELECT onerepl_resolve_all('north', 'skip', constraint_name => 'some_constraint');
SELECT n, relation, sqlstate, resolution FROM onerepl.failed ORDER BY n;
SELECT n, relation, object_id, operation, state FROM onerepl.log WHERE link = 'north' ORDER BY n;
SELECT level, first, last, replace(message, session_user, 'USER') AS message FROM onerepl.journal WHERE rule = 'P13' ORDER BY id;

SELECT onerepl_resolve('north', 10, 'skip');
\echo :LAST_ERROR_SQLSTATE
SELECT onerepl_resolve('north', 11, 'ignore');
\echo :LAST_ERROR_SQLSTATE
SELECT onerepl_resolve('north', 11, NULL);
\echo :LAST_ERROR_SQLSTATE
SELECT onerepl_resolve_all('north', 'ignore');
\echo :LAST_ERROR_SQLSTATE
SELECT onerepl_resolve('nobody', 11, 'skip');
\echo :LAST_ERROR_SQLSTATE
SELECT onerepl_remove_remote('north');
SELECT count(*) FROM onerepl.failure;
DROP EXTENSION onerepl;
CREATE EXTENSION onerepl;
