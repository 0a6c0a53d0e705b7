-- Which tables are captured, and their triggers.

CREATE TABLE onerepl.checked (
    relation    oid PRIMARY KEY,
    root        oid NOT NULL,
    name        text NOT NULL,
    dropped     bool NOT NULL DEFAULT false,
    rewritten   bool NOT NULL DEFAULT false,
    uncaptured  bool NOT NULL DEFAULT false
);
COMMENT ON TABLE onerepl.checked IS 'What the self-check knows of each tracked table and of each of its partitions.';
COMMENT ON COLUMN onerepl.checked.root IS 'The tracked table; itself, or the partitioned table that it belongs to.';
COMMENT ON COLUMN onerepl.checked.name IS 'Schema-qualified, as last seen.';
COMMENT ON COLUMN onerepl.checked.rewritten IS 'ALTER TABLE gave its rows new values, which nothing captures.';
COMMENT ON COLUMN onerepl.checked.uncaptured IS 'A statement has switched a trigger of capture off.';

-- A tracked table, and all partitions of a partitioned one. Without pg_partition_tree, which would wait for locks.
CREATE VIEW onerepl.tracked_member AS
    WITH RECURSIVE member (root, relation) AS (
        SELECT t.relation::oid, t.relation::oid FROM onerepl.tracked AS t
        UNION
        SELECT m.root, i.inhrelid
        FROM member AS m
        JOIN pg_catalog.pg_inherits AS i ON i.inhparent = m.relation AND NOT i.inhdetachpending
        JOIN pg_catalog.pg_class AS c ON c.oid = i.inhrelid AND c.relispartition
    )
    SELECT m.root, m.relation, pg_catalog.format('%I.%I', n.nspname, c.relname) AS name, c.relkind, c.relpersistence
    FROM member AS m
    JOIN pg_catalog.pg_class AS c ON c.oid = m.relation
    JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace;

CREATE FUNCTION onerepl.why_not_tracked(relation regclass, OUT code text, OUT reason text, OUT hint text)
    LANGUAGE sql STABLE
    SET search_path = pg_catalog, pg_temp AS $$
    SELECT r.*
    FROM pg_class AS c
    JOIN pg_namespace AS n ON n.oid = c.relnamespace
    CROSS JOIN LATERAL (
        SELECT '42809', 'it is a view', 'Add the tables that the view reads.' WHERE c.relkind IN ('v', 'm')
        UNION ALL
        SELECT '42809', 'it is a foreign table', 'Add the table in the database in which it is.' WHERE c.relkind = 'f'
        UNION ALL
        SELECT '42809', 'it is not a table', 'Only tables can be tracked.' WHERE c.relkind NOT IN ('r', 'p', 'v', 'm', 'f')
        UNION ALL
        SELECT '0A000', 'it is a system catalog', 'Each server has its own; what makes it what it is travels by no replication of rows.'
            WHERE n.nspname IN ('pg_catalog', 'information_schema', 'pg_toast')
        UNION ALL
        SELECT '0A000', 'it is a table of onerepl', 'It belongs to this database alone.' WHERE n.nspname = 'onerepl'
        UNION ALL
        SELECT '0A000', 'it is a temporary table', 'Only its session could replicate it; use a permanent table.'
            WHERE c.relpersistence = 't'
        UNION ALL
        SELECT '0A000', 'it is an unlogged table', 'Use ALTER TABLE ... SET LOGGED first: a crash would empty it, and the log would not know.'
            WHERE c.relpersistence = 'u'
        UNION ALL
        SELECT '0A000', format('its partition %s is %s', p.relid, CASE k.relkind WHEN 'f' THEN 'a foreign table' ELSE 'unlogged' END),
               CASE k.relkind WHEN 'f' THEN 'Track it in the database in which its rows are, and detach it here or add the other partitions one by one.'
                              ELSE 'Use ALTER TABLE ... SET LOGGED on the partition first.' END
            FROM pg_partition_tree(c.oid) AS p JOIN pg_class AS k ON k.oid = p.relid
            WHERE c.relkind = 'p' AND (k.relkind = 'f' OR k.relpersistence = 'u')
        UNION ALL
        SELECT '0A000', format('values of type %s of its column %I cannot be read again', format_type(a.atttypid, NULL), a.attname),
               'Use another type, as text.'
            FROM pg_attribute AS a JOIN pg_type AS y ON y.oid = a.atttypid
            WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
              AND (SELECT coalesce(e.typname, y.typname) FROM (VALUES (1)) AS one LEFT JOIN pg_type AS e ON e.oid = y.typelem AND y.typlen = -1)
                  IN ('pg_node_tree', 'pg_ndistinct', 'pg_dependencies', 'pg_mcv_list', 'pg_brin_bloom_summary',
                      'pg_brin_minmax_multi_summary', 'gtsvector')
        UNION ALL
        SELECT '42710', format('it is a partition of %s, which is tracked', m.root::regclass), 'It is tracked with that table already.'
            FROM onerepl.tracked_member AS m WHERE m.relation = c.oid AND m.root <> c.oid
        UNION ALL
        SELECT '42710', format('its partition %s is tracked by itself', p.relid), format('Call onerepl_remove_table(%L) first.', p.relid)
            FROM pg_partition_tree(c.oid) AS p JOIN onerepl.tracked AS t ON t.relation = p.relid WHERE p.relid <> c.oid
    ) AS r (code, reason, hint)
    WHERE c.oid = why_not_tracked.relation
    LIMIT 1
$$;
COMMENT ON FUNCTION onerepl.why_not_tracked(regclass) IS
'Why a relation cannot be tracked: SQLSTATE, reason, way out; nulls if it can.';

-- Our triggers: how they are made, and what pg_trigger.tgtype must say of them.
CREATE VIEW onerepl.trigger_definition (name, events, level, function, type) AS
    VALUES ('!onerepl_capture', 'AFTER INSERT OR UPDATE OR DELETE', 'ROW', 'onerepl.onerepl_capture()'::regprocedure, 29),
           ('!onerepl_truncate', 'AFTER TRUNCATE', 'STATEMENT', 'onerepl.onerepl_capture_truncate()', 32),
           ('!onerepl_lock', 'BEFORE INSERT OR UPDATE OR DELETE OR TRUNCATE', 'STATEMENT', 'onerepl.onerepl_lock_pending()', 62),
           ('!onerepl_guard', NULL, NULL, 'onerepl.guard()', NULL),     -- made by src/apply
           ('!onerepl_guard_row', NULL, NULL, 'onerepl.guard()', 31);

CREATE FUNCTION onerepl.execute_on_table(relation regclass, statement text) RETURNS void
    LANGUAGE c STRICT AS 'MODULE_PATHNAME', 'onerepl_execute_on_table'
    SET search_path = pg_catalog, pg_temp;
COMMENT ON FUNCTION onerepl.execute_on_table(regclass, text) IS
'Executes CREATE TRIGGER on a table so that functions in its partition keys run with the rights of its owner (P19).';

CREATE FUNCTION onerepl.create_trigger(relation regclass, name text) RETURNS void
    LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    target text := onerepl.qualified_name(relation);
    definition onerepl.trigger_definition;
BEGIN
    SELECT * INTO STRICT definition FROM onerepl.trigger_definition AS d WHERE d.name = create_trigger.name;
    PERFORM onerepl.execute_on_table(relation, format('CREATE OR REPLACE TRIGGER %I %s ON %s FOR EACH %s EXECUTE FUNCTION %s',
                                                      name, definition.events, target, definition.level, definition.function));
    -- Also under session_replication_role = replica: a restore, or a chain of databases.
    EXECUTE format('ALTER TABLE %s ENABLE ALWAYS TRIGGER %I', target, name);
    -- DROP EXTENSION takes the triggers along.
    EXECUTE format('ALTER TRIGGER %I ON %s DEPENDS ON EXTENSION onerepl', name, target);
END $$;
COMMENT ON FUNCTION onerepl.create_trigger(regclass, text) IS
'Creates one of onerepl''s triggers or makes it right again: fires always, goes with the extension.';

CREATE FUNCTION onerepl.drop_triggers(relation regclass, pattern text) RETURNS void
    LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    found record;
BEGIN
    FOR found IN
        SELECT t.tgname, format('%I.%I', n.nspname, c.relname) AS target
        FROM pg_trigger AS t JOIN pg_class AS c ON c.oid = t.tgrelid JOIN pg_namespace AS n ON n.oid = c.relnamespace
        WHERE t.tgrelid = drop_triggers.relation AND t.tgname LIKE pattern AND t.tgparentid = 0
    LOOP
        EXECUTE format('DROP TRIGGER %I ON %s', found.tgname, found.target);
    END LOOP;
END $$;
COMMENT ON FUNCTION onerepl.drop_triggers(regclass, text) IS
'Drops the triggers of a table whose names are LIKE the pattern, those of its partitions that came from them included.';

CREATE FUNCTION onerepl.create_statement_triggers(member regclass, lock_pending bool) RETURNS void
    LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM onerepl.create_trigger(member, '!onerepl_truncate');
    IF lock_pending THEN
        PERFORM onerepl.create_trigger(member, '!onerepl_lock');
    ELSE
        PERFORM onerepl.drop_triggers(member, '!onerepl\_lock');
    END IF;
END $$;
COMMENT ON FUNCTION onerepl.create_statement_triggers(regclass, bool) IS
'Creates the triggers that PostgreSQL does not clone to partitions: a tracked table and each of its partitions needs them.';

CREATE FUNCTION onerepl.track(relation regclass, lock_pending bool) RETURNS void
    LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
    refused record;
    member regclass;
    is_new bool;
BEGIN
    SELECT * INTO refused FROM onerepl.why_not_tracked(track.relation);
    IF refused.code IS NOT NULL THEN
        RAISE EXCEPTION 'table % cannot be tracked', track.relation USING
            ERRCODE = refused.code,
            DETAIL = format('%s.', upper(left(refused.reason, 1)) || substr(refused.reason, 2)),
            HINT = coalesce(refused.hint, 'The page limits.md lists what cannot be tracked, and why.');
    END IF;
    IF EXISTS (SELECT FROM pg_inherits AS i JOIN pg_class AS k ON k.oid = i.inhrelid
               WHERE i.inhparent = track.relation AND NOT k.relispartition) THEN
        RAISE WARNING 'tables that inherit from % are not tracked with it', track.relation USING
            HINT = 'Call onerepl_add_table for each of them.';
    END IF;
    INSERT INTO onerepl.tracked AS t (relation, lock_pending) VALUES (track.relation, track.lock_pending)
        ON CONFLICT (relation) DO UPDATE SET lock_pending = excluded.lock_pending
        RETURNING t.xmax = 0 INTO is_new;
    -- While its triggers are made it is not looked after.
    DELETE FROM onerepl.checked AS c WHERE c.root = track.relation;
    PERFORM onerepl.create_trigger(track.relation, '!onerepl_capture');
    FOR member IN SELECT m.relation FROM onerepl.tracked_member AS m WHERE m.root = track.relation LOOP
        PERFORM onerepl.create_statement_triggers(member, track.lock_pending);
        PERFORM onerepl.describe_partition(member) WHERE member <> track.relation;
        PERFORM onerepl.record_description(member) WHERE (SELECT c.relkind FROM pg_class AS c WHERE c.oid = member) IN ('r', 'p');
    END LOOP;
    PERFORM onerepl.remember_members(track.relation);
    PERFORM onerepl.write_journal(0, NULL, 'P6', format('table %s is tracked%s, by %s', track.relation,
        CASE WHEN is_new THEN '' ELSE ' anew' END, session_user));
    PERFORM onerepl.wake_at_commit(true, false);
END $$;
COMMENT ON FUNCTION onerepl.track(regclass, bool) IS 'onerepl_add_table, after the rights were checked.';

CREATE FUNCTION onerepl.describe_tracked() RETURNS void
    LANGUAGE sql
    SET search_path = pg_catalog, pg_temp AS $$
    SELECT onerepl.record_description(m.relation)
    FROM onerepl.tracked_member AS m JOIN pg_class AS c ON c.oid = m.relation WHERE c.relkind IN ('r', 'p')
$$;
COMMENT ON FUNCTION onerepl.describe_tracked() IS
'Records the descriptions of all tracked tables, for a link that begins: its central is to guard them before the first change (P8).';

CREATE FUNCTION onerepl.remember_members(root regclass) RETURNS void
    LANGUAGE sql
    SET search_path = pg_catalog, pg_temp AS $$
    DELETE FROM onerepl.checked AS c
        WHERE c.root = remember_members.root
           OR c.name IN (SELECT m.name FROM onerepl.tracked_member AS m WHERE m.root = remember_members.root);
    INSERT INTO onerepl.checked (relation, root, name)
        SELECT m.relation, m.root, m.name FROM onerepl.tracked_member AS m WHERE m.root = remember_members.root;
$$;
COMMENT ON FUNCTION onerepl.remember_members(regclass) IS
'Takes a tracked table and its partitions as they are now as what is right; the self-check tells of what differs later.';

CREATE FUNCTION onerepl.untrack(relation regclass) RETURNS void
    LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
    member regclass;
BEGIN
    DELETE FROM onerepl.checked AS c WHERE c.root = untrack.relation
        OR c.name = onerepl.qualified_name(untrack.relation);
    UPDATE onerepl.refresh AS r SET state = 'cancelling', outcome = 'cancelled'
        WHERE r.state IN ('waiting', 'running', 'paused')
          AND r.relation IN (SELECT m.relation FROM onerepl.tracked_member AS m WHERE m.root = untrack.relation);
    FOR member IN SELECT m.relation FROM onerepl.tracked_member AS m WHERE m.root = untrack.relation LOOP
        PERFORM onerepl.drop_triggers(member, '!onerepl\_truncate'), onerepl.drop_triggers(member, '!onerepl\_lock');
    END LOOP;
    PERFORM onerepl.drop_triggers(untrack.relation, '!onerepl\_capture');
    DELETE FROM onerepl.tracked AS t WHERE t.relation = untrack.relation;
    IF FOUND THEN
        PERFORM onerepl.write_journal(1, NULL, 'P6', format('table %s is no longer tracked, by %s', untrack.relation, session_user));
    ELSE
        RAISE NOTICE 'table % is not tracked', untrack.relation;
    END IF;
END $$;
COMMENT ON FUNCTION onerepl.untrack(regclass) IS 'onerepl_remove_table, after the rights were checked.';

-- PostgreSQL gives a partition the row triggers of its new parent, and refuses a table that has one of the same name.
CREATE FUNCTION onerepl.make_way_for_attach(parent regclass, child regclass) RETURNS void
    LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp SET jit = off AS $$
BEGIN
    IF EXISTS (SELECT FROM onerepl.tracked AS t WHERE t.relation = child)
       AND EXISTS (SELECT FROM onerepl.tracked_member AS m WHERE m.relation = parent) THEN
        PERFORM onerepl.write_journal(0, NULL, 'P6', format('table %s becomes a partition of %s: its changes are that table''s from now on', child, parent));
        PERFORM onerepl.untrack(child);
    END IF;
END $$;
COMMENT ON FUNCTION onerepl.make_way_for_attach(regclass, regclass) IS
'Ends the tracking of a table that is about to become a partition of another tracked one. The statement''s rights were checked.';

CREATE FUNCTION onerepl.track_schema(schema_name text, relations regclass[], new_tables bool) RETURNS int
    LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    relation regclass;
    refused record;
    added int := 0;
BEGIN
    IF new_tables THEN
        INSERT INTO onerepl.tracked_schema (schema) VALUES (schema_name) ON CONFLICT DO NOTHING;
    ELSE
        DELETE FROM onerepl.tracked_schema AS s WHERE s.schema = schema_name;
    END IF;
    FOREACH relation IN ARRAY relations LOOP
        SELECT * INTO refused FROM onerepl.why_not_tracked(relation);
        IF refused.code = '42710' THEN
            CONTINUE;   -- a partition of a table that was added before it
        END IF;
        -- P21: what an extension's script makes is the extension's, unless somebody names it.
        IF refused.code IS NULL THEN
            SELECT '0A000' AS code, format('it belongs to extension %I', e.extname) AS reason,
                   format('Call onerepl_add_table(%L) if its rows are yours.', relation) AS hint
                INTO refused
                FROM pg_depend AS d JOIN pg_extension AS e ON e.oid = d.refobjid
                WHERE d.classid = 'pg_class'::regclass AND d.objid = relation AND d.refclassid = 'pg_extension'::regclass AND d.deptype = 'e';
        END IF;
        IF refused.code IS NOT NULL THEN
            RAISE WARNING 'table % cannot be tracked: %', relation, refused.reason USING
                ERRCODE = refused.code, HINT = coalesce(refused.hint, 'The page limits.md lists what cannot be tracked, and why.');
            PERFORM onerepl.write_journal(1, NULL, 'P6', format('table %s of schema %I cannot be tracked: %s', relation,
                                                                schema_name, refused.reason), refused.hint);
        ELSE
            PERFORM onerepl.track(relation, false);
            added := added + 1;
        END IF;
    END LOOP;
    RETURN added;
END $$;
COMMENT ON FUNCTION onerepl.track_schema(text, regclass[], bool) IS 'onerepl_add_schema, after the rights were checked.';

-- These run with the caller's rights until they have found that the tables are the caller's, and then with their owner's.

CREATE FUNCTION onerepl_add_table(relation regclass, lock_pending bool DEFAULT false, initial text DEFAULT 'identical') RETURNS void
    LANGUAGE c STRICT AS 'MODULE_PATHNAME', 'onerepl_add_table'
    SET search_path = pg_catalog, pg_temp;
COMMENT ON FUNCTION onerepl_add_table(regclass, bool, text) IS
'Tracks a table: from now on each change of it goes to every central.
A partitioned table is tracked with all its partitions, those that come later included. Its rows travel under its own name, so that
the central''s table may have other partitions.
Calling it again makes damaged or missing triggers right, sets lock_pending anew, and ends what the self-check says about the table.
What changed while the triggers were missing was not captured.
It waits for writers of the table, as CREATE TRIGGER does.
  relation: the table.
  lock_pending: true: the lock rule of the state table, nobody may change a row again before every central has it (P6); default false.
  initial: ''identical'' (default): the central''s table is the same already; ''refresh'': onerepl fills it on every link, as
    onerepl_refresh does with method ''empty''.
Errors: 42501 when you do not own the table; 42809 when it is a view, a foreign table or no table; 0A000 when it is temporary,
    unlogged, a system catalog or onerepl''s own, has a partition that is foreign or unlogged, or a column whose values cannot be
    read again; 42710 when it is a partition of a tracked table, or has a partition that is tracked by itself; 22023 when initial
    is unknown.
See: docs/first-copy.md, docs/limits.md, onerepl_add_schema, P6';

CREATE FUNCTION onerepl_add_schema(schema_name text, new_tables bool DEFAULT false) RETURNS int
    LANGUAGE c STRICT AS 'MODULE_PATHNAME', 'onerepl_add_schema'
    SET search_path = pg_catalog, pg_temp;
COMMENT ON FUNCTION onerepl_add_schema(text, bool) IS
'Tracks all tables that the schema has now.
A table that cannot be tracked gives a WARNING and a journal entry that say why.
  schema_name: the schema.
  new_tables: true: tables that are made in the schema later are tracked by themselves, whoever makes them; false (default): they
    are not, which also ends it. A central whose link says ''apply'' (onerepl_set_ddl) makes them as the remote did; others need them
    before the first row comes. A table made from a query is copied to the centrals by a refresh.
Returns: how many tables were added.
Errors: 3F000 when there is no such schema; 42501 when a table in it is not yours.
See: docs/first-copy.md, onerepl_add_table, onerepl_set_ddl';

CREATE FUNCTION onerepl_remove_table(relation regclass) RETURNS void
    LANGUAGE c STRICT AS 'MODULE_PATHNAME', 'onerepl_remove_table'
    SET search_path = pg_catalog, pg_temp;
COMMENT ON FUNCTION onerepl_remove_table(regclass) IS
'Ends the tracking of a table.
What was captured will still be sent, later changes will not. A NOTICE tells if it was not tracked.
  relation: the table.
Errors: 42501 when you do not own the table.
See: docs/uninstall.md, onerepl_add_table';

COMMENT ON FUNCTION onerepl.onerepl_capture() IS
'Trigger of tracked tables: records a change of a row in the log (P6). onerepl_add_table() makes the trigger.';
COMMENT ON FUNCTION onerepl.onerepl_capture_truncate() IS
'Trigger of tracked tables: records a TRUNCATE in the log (P17). onerepl_add_table() makes the trigger.';
COMMENT ON FUNCTION onerepl.onerepl_lock_pending() IS
'Trigger of tracked tables with lock_pending: their writers take turns (P6). onerepl_add_table() makes the trigger.';
COMMENT ON FUNCTION onerepl.guard() IS
'Trigger of tables that onerepl writes here: refuses every other write (P8). onerepl makes the trigger when a table is first written.';
