-- Every function: signature, search_path, comment, rights.
BEGIN;
SELECT plan(51);

CREATE TEMPORARY VIEW ours AS
    SELECT p.oid, p.proname, p.prosecdef, p.proconfig, p.proacl, p.proowner, p.prolang, p.prorettype, p.provolatile, n.nspname,
           p.oid::regprocedure AS signature
    FROM pg_depend AS d
    JOIN pg_extension AS e ON e.oid = d.refobjid AND d.refclassid = 'pg_extension'::regclass AND e.extname = 'onerepl'
    JOIN pg_proc AS p ON p.oid = d.objid AND d.classid = 'pg_proc'::regclass
    JOIN pg_namespace AS n ON n.oid = p.pronamespace;

SELECT has_function('public', 'onerepl_add_central', ARRAY['text', 'text', 'text', 'interval', 'interval', 'interval']);
SELECT has_function('public', 'onerepl_add_remote', ARRAY['text', 'text', 'text[]', 'interval', 'interval']);
SELECT has_function('public', 'onerepl_allow', ARRAY['text', 'text[]']);
SELECT has_function('public', 'onerepl_forbid', ARRAY['text', 'text[]']);
SELECT has_function('public', 'onerepl_remove_central', ARRAY['text']);
SELECT has_function('public', 'onerepl_remove_remote', ARRAY['text']);
SELECT has_function('public', 'onerepl_restart_link', ARRAY['text', 'boolean', 'bigint']);
SELECT has_function('public', 'onerepl_change_link', ARRAY['text', 'text', 'text']);
SELECT has_function('public', 'onerepl_add_table', ARRAY['regclass', 'boolean', 'text']);
SELECT has_function('public', 'onerepl_add_schema', ARRAY['text', 'boolean']);
SELECT has_function('public', 'onerepl_execute_ddl', ARRAY['text', 'text']);
SELECT has_function('public', 'onerepl_set_ddl', ARRAY['text', 'text', 'name']);
SELECT has_function('public', 'onerepl_add_sequence', ARRAY['regclass']);
SELECT has_function('public', 'onerepl_remove_sequence', ARRAY['regclass']);
SELECT has_function('public', 'onerepl_promote', ARRAY['text', 'boolean']);
SELECT has_function('public', 'onerepl_set_filter', ARRAY['text', 'regclass', 'text', 'text[]', 'text']);
SELECT has_function('public', 'onerepl_set_target', ARRAY['text', 'text', 'text', 'text', 'text', 'text', 'text']);
SELECT has_function('public', 'onerepl_remove_table', ARRAY['regclass']);
SELECT has_function('public', 'onerepl_block', ARRAY['text', 'bigint']);
SELECT has_function('public', 'onerepl_unblock', ARRAY['text', 'bigint']);
SELECT has_function('public', 'onerepl_pause', ARRAY['text']);
SELECT has_function('public', 'onerepl_resume', ARRAY['text']);
SELECT has_function('public', 'onerepl_wait', ARRAY['text', 'interval']);
SELECT has_function('public', 'onerepl_resolve', ARRAY['text', 'bigint', 'text']);
SELECT has_function('public', 'onerepl_resolve_all', ARRAY['text', 'text', 'text', 'text', 'text']);
SELECT has_function('public', 'onerepl_status', ARRAY[]::text[]);
SELECT has_function('public', 'onerepl_object_state', ARRAY['regclass', 'text']);
SELECT has_function('onerepl', 'self_check', ARRAY[]::text[]);
SELECT has_function('onerepl', 'write_journal', ARRAY['integer', 'integer', 'text', 'text', 'text', 'bigint', 'bigint']);

SELECT function_returns('public', 'onerepl_add_central', ARRAY['text', 'text', 'text', 'interval', 'interval', 'interval'], 'integer');
SELECT function_returns('public', 'onerepl_add_remote', ARRAY['text', 'text', 'text[]', 'interval', 'interval'], 'integer');
SELECT function_returns('public', 'onerepl_add_table', ARRAY['regclass', 'boolean', 'text'], 'void');
SELECT function_returns('public', 'onerepl_add_schema', ARRAY['text', 'boolean'], 'integer');
SELECT function_returns('public', 'onerepl_wait', ARRAY['text', 'interval'], 'boolean');
SELECT function_returns('public', 'onerepl_resolve_all', ARRAY['text', 'text', 'text', 'text', 'text'], 'bigint');
SELECT function_returns('public', 'onerepl_status', ARRAY[]::text[], 'setof record');
SELECT function_returns('public', 'onerepl_object_state', ARRAY['regclass', 'text'], 'setof record');
SELECT function_returns('onerepl', 'self_check', ARRAY[]::text[], 'integer');

SELECT is_empty($$SELECT signature FROM ours WHERE nspname <> 'onerepl' AND proname NOT LIKE 'onerepl\_%'$$,
                'what is created in the target schema is called onerepl_...');
-- C triggers look up nothing by name, and setting search_path for each row would cost more than they do.
SELECT is_empty($$SELECT signature FROM ours WHERE (proconfig IS NULL OR NOT 'search_path=pg_catalog, pg_temp' = ANY (proconfig))
                  AND NOT (prorettype = 'trigger'::regtype AND prolang = (SELECT oid FROM pg_language WHERE lanname = 'c'))$$, 'every function sets its own search_path');
SELECT is_empty($$SELECT signature FROM ours, aclexplode(coalesce(proacl, acldefault('f', proowner))) AS a
                  WHERE a.grantee = 0 AND proname <> 'onerepl_capture'$$,
                'nothing is executable by PUBLIC, but the trigger function that owners of partitioned tables need');
SELECT is_empty($$SELECT signature FROM ours, aclexplode(proacl) AS a
                  WHERE a.grantee NOT IN (0, proowner, 'pg_monitor'::regrole)$$,
                'nothing is executable by anybody but the owner and pg_monitor');
SELECT set_eq($$SELECT proname::text FROM ours, aclexplode(proacl) AS a WHERE a.grantee = 'pg_monitor'::regrole$$,
              ARRAY['onerepl_status', 'qualified_name'], 'pg_monitor may call onerepl_status, and what views need, but nothing else');
SELECT is_empty($$SELECT signature FROM ours WHERE obj_description(oid, 'pg_proc') IS NULL$$, 'every function has a comment');
SELECT is_empty($$SELECT signature FROM ours AS o JOIN pg_language AS l ON l.oid = o.prolang
                  WHERE nspname <> 'onerepl' AND NOT prosecdef AND proname NOT IN ('onerepl_add_table', 'onerepl_add_schema', 'onerepl_remove_table', 'onerepl_execute_ddl',
                                                              'onerepl_add_sequence', 'onerepl_remove_sequence')$$,
                'EXECUTE is enough to use a function of the administrator');
SELECT is_empty($$SELECT signature FROM ours WHERE prosecdef AND nspname = 'onerepl'
                  AND proname NOT IN ('self_check', 'note_rewrite', 'adjust_partitions', 'note_ddl', 'note_drops', 'guard_new_parts', 'check_told_commands', 'check_told_drops', 'log_records')$$,
                'no other internal function is SECURITY DEFINER');
SELECT is_empty($$SELECT signature FROM ours WHERE proowner <> (SELECT extowner FROM pg_extension WHERE extname = 'onerepl')$$,
                'all functions are the extension owner''s');

-- the comments of the administrator's functions say which errors there are
SELECT is_empty($$SELECT signature FROM ours
                  WHERE nspname <> 'onerepl' AND proname NOT IN ('onerepl_status', 'onerepl_object_state')
                    AND obj_description(oid, 'pg_proc') NOT LIKE '%Errors: %'$$, 'the comments tell the errors');
SELECT is_empty($$SELECT evtname FROM pg_event_trigger WHERE evtname ~ '^!?onerepl' AND evtenabled <> 'A'$$, 'event triggers fire always');
SELECT results_eq($$SELECT count(*) FROM pg_event_trigger WHERE evtname ~ '^!?onerepl'$$, ARRAY[7::bigint], 'there are seven of them');
-- Every CREATE TABLE of a database with many tables would be compiled.
SELECT is_empty($$SELECT signature FROM ours WHERE prorettype = 'event_trigger'::regtype AND NOT 'jit=off' = ANY (proconfig)$$, 'and they are not compiled');

SELECT * FROM finish();
ROLLBACK;
