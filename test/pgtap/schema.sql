-- Tables, views and their columns; rights on them; what pg_dump keeps.
BEGIN;
SELECT no_plan();

CREATE TEMPORARY VIEW ours AS
    SELECT c.oid, c.relname, c.relkind, c.relacl, c.relowner
    FROM pg_depend AS d
    JOIN pg_extension AS e ON e.oid = d.refobjid AND d.refclassid = 'pg_extension'::regclass AND e.extname = 'onerepl'
    JOIN pg_class AS c ON c.oid = d.objid AND d.classid = 'pg_class'::regclass;

SELECT has_schema('onerepl');
SELECT has_table('onerepl', name::name) FROM unnest(ARRAY['database', 'link', 'tracked', 'description', 'change_0', 'change_1', 'change_2', 'change_3',
    'log_state', 'batch', 'sent_progress', 'blocked', 'apply_progress', 'waiting', 'remote_description', 'failure', 'received', 'guarded', 'foreign_position',
    'journal_entry', 'contact', 'checked', 'problem']) AS t (name);
SELECT has_view('onerepl', name::name) FROM unnest(ARRAY['log', 'journal', 'queue', 'failed', 'problems']) AS v (name);

SELECT columns_are('onerepl', 'log', ARRAY['link', 'n', 'relation', 'object_id', 'moved_to', 'operation', 'state', 'changed_at']);
SELECT columns_are('onerepl', 'journal', ARRAY['id', 'at', 'level', 'link', 'rule', 'message', 'hint', 'first', 'last']);
SELECT columns_are('onerepl', 'queue', ARRAY['link', 'first', 'last', 'part', 'parts', 'last_end', 'size', 'received_at']);
SELECT columns_are('onerepl', 'failed', ARRAY['link', 'n', 'transaction_first', 'transaction_last', 'relation', 'operation', 'key', 'row',
    'sqlstate', 'message', 'detail', 'hint', 'constraint_name', 'at_commit', 'failed_at', 'resolution', 'resolved_by', 'conflict']);
SELECT columns_are('onerepl', 'refresh_progress', ARRAY['link', 'role', 'relation', 'method', 'state', 'one_snapshot', 'rows', 'rows_estimate', 'bytes',
    'percent', 'rows_per_second', 'estimated_end', 'lid_start', 'lid_end', 'start_at', 'started_at', 'finished_at', 'error']);
SELECT columns_are('onerepl', 'differences', ARRAY['link', 'relation', 'n', 'key_from', 'key_to', 'rows_remote', 'rows_here', 'at']);
SELECT columns_are('onerepl', 'differing_rows', ARRAY['link', 'relation', 'n', 'key', 'difference', 'columns']);
SELECT columns_are('onerepl', 'problems', ARRAY['relation', 'kind', 'message', 'hint', 'since']);
SELECT bag_eq($$SELECT unnest(proargnames) FROM pg_proc WHERE proname = 'onerepl_status'$$,
    ARRAY['link', 'role', 'peer', 'written_to', 'numbered_to', 'lag_records', 'lag_seconds', 'lag_bytes', 'state', 'last_contact', 'last_error', 'what_to_do',
          'problems', 'log_size', 'may_write'], 'columns of onerepl_status');

-- lessons: another tool's FOR ALL TABLES publication must not make our writes fail
SELECT is_empty($$SELECT relname FROM ours WHERE relkind = 'r'
                  AND NOT EXISTS (SELECT FROM pg_index AS i WHERE i.indrelid = ours.oid AND i.indisprimary)$$,
                'every table has a primary key');
SELECT is_empty($$SELECT relname FROM ours WHERE relkind = 'v' AND relname IN ('log', 'journal', 'queue', 'failed', 'problems', 'refresh_progress', 'differences', 'differing_rows')
                  AND obj_description(oid, 'pg_class') IS NULL$$, 'every view of the administrator has a comment');

-- rights
SELECT is_empty($$SELECT relname, a.* FROM ours, aclexplode(relacl) AS a WHERE a.grantee NOT IN (relowner, 'pg_monitor'::regrole)$$,
                'nobody but the owner and pg_monitor has a right on a table or view');
SELECT set_eq($$SELECT relname::text || ' ' || a.privilege_type FROM ours, aclexplode(relacl) AS a WHERE a.grantee = 'pg_monitor'::regrole$$,
              ARRAY['journal SELECT', 'queue SELECT', 'problems SELECT', 'refresh_progress SELECT'], 'pg_monitor reads views without rows of tables');
SELECT schema_privs_are('onerepl', 'public', ARRAY[]::text[]);
SELECT schema_privs_are('onerepl', 'pg_monitor', ARRAY['USAGE']);
CREATE ROLE onerepl_tap_reader IN ROLE pg_monitor, pg_read_all_settings;
SELECT table_privs_are('onerepl', 'link_key', 'onerepl_tap_reader', ARRAY[]::text[], 'keys are readable by nobody');
SELECT ok(NOT has_column_privilege('onerepl_tap_reader', 'onerepl.link_key', 'signs_with', 'SELECT'), 'not by a column either');
SELECT is_empty($$SELECT v.relname FROM ours AS v JOIN pg_rewrite AS r ON r.ev_class = v.oid
                  JOIN pg_depend AS d ON d.classid = 'pg_rewrite'::regclass AND d.objid = r.oid AND d.refobjid = 'onerepl.link_key'::regclass
                  JOIN pg_attribute AS a ON a.attrelid = d.refobjid AND a.attnum = d.refobjsubid AND a.attname IN ('signs_with', 'checks_with')$$,
                'no view reads a key');

-- pg_dump keeps the configuration, and not the log
SELECT set_eq($$SELECT unnest(extconfig)::regclass::text FROM pg_extension WHERE extname = 'onerepl'$$,
              ARRAY['onerepl.allowed', 'onerepl.filter', 'onerepl.filter_id_seq', 'onerepl.guarded', 'onerepl.link', 'onerepl.link_id_seq', 'onerepl.link_key', 'onerepl.target', 'onerepl.tracked', 'onerepl.tracked_schema', 'onerepl.tracked_sequence'], 'pg_dump keeps links and tracked tables');
-- Every other table holds what is of this database and its log alone. Whoever makes a table decides where it belongs.
SELECT set_eq($$SELECT c.oid::regclass::text FROM pg_class AS c WHERE c.relnamespace = 'onerepl'::regnamespace AND c.relkind = 'r'
                AND c.oid <> ALL ((SELECT extconfig FROM pg_extension WHERE extname = 'onerepl')::oid[])$$,
              ARRAY['onerepl.apply_progress', 'onerepl.batch', 'onerepl.blocked', 'onerepl.change_0', 'onerepl.change_1', 'onerepl.change_2', 'onerepl.change_3', 'onerepl.checked', 'onerepl.chunk', 'onerepl.contact', 'onerepl.database', 'onerepl.description', 'onerepl.difference', 'onerepl.differing_row', 'onerepl.failure', 'onerepl.foreign_position', 'onerepl.journal_entry', 'onerepl.log_seal', 'onerepl.log_state', 'onerepl.pending', 'onerepl.sent_progress', 'onerepl.problem', 'onerepl.received', 'onerepl.refresh', 'onerepl.refresh_window', 'onerepl.remote_description', 'onerepl.sequence_record', 'onerepl.sequence_state', 'onerepl.verified', 'onerepl.waiting'], 'the administrator''s decisions are in dumps');

-- nothing is without a comment
SELECT is_empty($$
    SELECT pg_describe_object(d.classid, d.objid, 0)
    FROM pg_depend AS d JOIN pg_extension AS e ON e.oid = d.refobjid AND d.refclassid = 'pg_extension'::regclass AND e.extname = 'onerepl'
    WHERE d.deptype = 'e'
      AND NOT EXISTS (SELECT FROM pg_description AS c WHERE c.objoid = d.objid AND c.classoid = d.classid AND c.objsubid = 0)
      -- Types of rows and arrays go with their tables.
      AND NOT (d.classid = 'pg_type'::regclass AND EXISTS (SELECT FROM pg_type AS t WHERE t.oid = d.objid AND (t.typrelid <> 0 OR t.typelem <> 0)))$$,
    'everything has a comment');
SELECT is_empty($$
    SELECT a.attrelid::regclass, a.attname
    FROM pg_attribute AS a JOIN pg_class AS c ON c.oid = a.attrelid AND c.relnamespace = 'onerepl'::regnamespace AND c.relkind IN ('r', 'v')
    WHERE a.attnum > 0 AND NOT a.attisdropped AND col_description(c.oid, a.attnum) IS NULL$$, 'every column has a comment');

-- the shape of a public function's comment: a line that says what it does, then each argument and column on a line of its own
CREATE TEMPORARY VIEW public_function AS
    SELECT p.oid::regprocedure AS signature, p.proargnames, obj_description(p.oid, 'pg_proc') AS comment
    FROM pg_depend AS d
    JOIN pg_extension AS e ON e.oid = d.refobjid AND d.refclassid = 'pg_extension'::regclass AND e.extname = 'onerepl'
    JOIN pg_proc AS p ON p.oid = d.objid AND d.classid = 'pg_proc'::regclass
    WHERE d.deptype = 'e' AND p.pronamespace <> 'onerepl'::regnamespace;
SELECT isnt_empty('SELECT FROM public_function', 'there are public functions');
SELECT is_empty($$SELECT signature FROM public_function WHERE length(split_part(comment, E'\n', 1)) > 120$$,
                'the first line of a public function''s comment has at most 120 characters');
SELECT is_empty($$SELECT signature, name FROM public_function, unnest(proargnames) AS a (name)
                  WHERE comment !~ format('(^|\n)  %s: \S', name)$$, 'each argument and column is on a line of its own');
SELECT is_empty($$SELECT o.signature FROM public_function AS o JOIN pg_proc AS p ON p.oid = o.signature
                  WHERE p.prorettype <> 'void'::regtype AND comment !~ '\nReturns: \S'$$, 'what returns something says what');

-- what must not be in a table is refused
SELECT throws_ok($$INSERT INTO onerepl.link_key VALUES (0, 'short', 'short')$$, '23514');
SELECT throws_ok($$INSERT INTO onerepl.link (name, role, url) VALUES ('a', 'remote', NULL)$$, '23514');
SELECT throws_ok($$INSERT INTO onerepl.link (name, role, url) VALUES ('a', 'peer', NULL)$$, '23514');

SELECT * FROM finish();
ROLLBACK;
