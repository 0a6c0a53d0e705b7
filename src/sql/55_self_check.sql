-- The self-check: is every tracked table really captured, every guarded one guarded? Run by a worker once a minute.

CREATE TABLE onerepl.problem (
    relation    oid NOT NULL,
    kind        text NOT NULL,
    message     text NOT NULL,
    hint        text NOT NULL,
    since       timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (relation, kind)
);
COMMENT ON TABLE onerepl.problem IS 'What is wrong now. Told to the journal once, when it is found.';

-- ALTER TABLE ... TYPE ... USING and ADD COLUMN with a volatile default give rows new values without firing a trigger.
-- Other rewrites (CLUSTER, VACUUM FULL, TRUNCATE, SET LOGGED) do not come by here, or have other reasons.
CREATE FUNCTION onerepl.note_rewrite() RETURNS event_trigger
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path = pg_catalog, pg_temp SET jit = off AS $$
BEGIN
    IF pg_event_trigger_table_rewrite_reason() & 6 <> 0 THEN
        UPDATE onerepl.checked AS c SET rewritten = true WHERE c.relation = pg_event_trigger_table_rewrite_oid();
    END IF;
END $$;
COMMENT ON FUNCTION onerepl.note_rewrite() IS
'Notes for the self-check that ALTER TABLE gave the rows of a tracked table new values, which are not captured.';

-- A partition that comes to a tracked table gets its row trigger from PostgreSQL, but not those for statements, and rows that
-- it brings along fire no trigger: they are recorded here. One that is detached loses its row trigger, but not the others, and takes
-- its rows along.
CREATE FUNCTION onerepl.adjust_partitions() RETURNS event_trigger
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
    partition record;
BEGIN
    FOR partition IN
        SELECT m.* FROM onerepl.tracked_member AS m
        WHERE m.relation <> m.root AND NOT EXISTS (SELECT FROM onerepl.checked AS c WHERE c.relation = m.relation)
          -- Not amid pg_restore, which brings the triggers itself.
          AND EXISTS (SELECT FROM onerepl.checked AS c WHERE c.relation = m.root)
    LOOP
        INSERT INTO onerepl.checked (relation, root, name)
            VALUES (partition.relation, partition.root, partition.name) ON CONFLICT DO NOTHING;
        -- create_trigger uses ALTER TABLE, which comes by here again.
        CONTINUE WHEN NOT FOUND;
        PERFORM onerepl.create_statement_triggers(partition.relation,
                                                  (SELECT t.lock_pending FROM onerepl.tracked AS t WHERE t.relation = partition.root));
        IF partition.relkind = 'r' THEN
            PERFORM onerepl.describe_partition(partition.relation);
            PERFORM onerepl.record_attached(partition.relation);
        END IF;
    END LOOP;
    FOR partition IN
        DELETE FROM onerepl.checked AS c USING pg_class AS k
            WHERE c.root <> c.relation AND k.oid = c.relation
              AND NOT EXISTS (SELECT FROM onerepl.tracked_member AS m WHERE m.relation = c.relation)
            RETURNING c.relation, k.relkind
    LOOP
        IF partition.relkind = 'r' THEN
            PERFORM onerepl.record_left(partition.relation);
        END IF;
        PERFORM onerepl.drop_triggers(partition.relation, '!onerepl\_truncate'), onerepl.drop_triggers(partition.relation, '!onerepl\_lock');
    END LOOP;
END $$;
COMMENT ON FUNCTION onerepl.adjust_partitions() IS
'Gives partitions that come to a tracked table their triggers and takes them from those that go; records the rows that come and '
'go with them.';

CREATE FUNCTION onerepl.note_dropped_partitions() RETURNS void
    LANGUAGE sql
    SET search_path = pg_catalog, pg_temp AS $$
    WITH dropped AS MATERIALIZED (
        SELECT d.objid FROM pg_event_trigger_dropped_objects() AS d WHERE d.classid = 'pg_class'::regclass AND d.objsubid = 0
    ), gone AS (
        DELETE FROM onerepl.checked AS c
            WHERE c.root <> c.relation AND c.relation IN (SELECT d.objid FROM dropped AS d)
              AND c.root NOT IN (SELECT d.objid FROM dropped AS d)
            RETURNING c.relation
    )
    SELECT onerepl.record_left(g.relation) FROM gone AS g
$$;
COMMENT ON FUNCTION onerepl.note_dropped_partitions() IS
'For an event trigger: records that the rows of dropped partitions are no longer in their tracked table.';

CREATE FUNCTION onerepl.note_tables() RETURNS void
    LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    gone record;
BEGIN
    FOR gone IN
        SELECT t.relation::oid AS relation, c.name
        FROM onerepl.tracked AS t LEFT JOIN onerepl.checked AS c ON c.relation = t.relation
        WHERE NOT EXISTS (SELECT FROM pg_class AS k WHERE k.oid = t.relation)
        ORDER BY c.name
    LOOP
        DELETE FROM onerepl.tracked AS t WHERE t.relation = gone.relation;
        UPDATE onerepl.checked AS c SET dropped = true WHERE c.relation = gone.relation;
        PERFORM onerepl.write_journal(1, NULL, 'P6', format('tracked table %s was dropped', coalesce(gone.name, gone.relation::text)));
    END LOOP;
    DELETE FROM onerepl.checked AS c
        WHERE NOT c.dropped AND NOT EXISTS (SELECT FROM onerepl.tracked_member AS m WHERE m.relation = c.relation);
    -- After pg_restore; new partitions come by the event trigger.
    INSERT INTO onerepl.checked (relation, root, name)
        SELECT m.relation, m.root, m.name FROM onerepl.tracked_member AS m
        ON CONFLICT DO NOTHING;
    -- A plain renaming is no problem; another table under the old name is, see onerepl.current_problems.
    UPDATE onerepl.checked AS c SET name = m.name
        FROM onerepl.tracked_member AS m
        WHERE m.relation = c.relation AND m.name <> c.name AND to_regclass(c.name) IS NULL;
END $$;
COMMENT ON FUNCTION onerepl.note_tables() IS
'Brings onerepl.checked up to date: tables that were dropped or renamed, partitions that came.';

-- A trigger is right if it is there, fires always, for the right events, unconditionally, and calls the right function.
CREATE FUNCTION onerepl.trigger_fault(relation oid, name text) RETURNS text
    LANGUAGE sql STABLE
    SET search_path = pg_catalog, pg_temp AS $$
    SELECT CASE WHEN t.oid IS NULL THEN 'is missing'
                WHEN t.tgenabled = 'D' THEN 'is disabled'
                WHEN t.tgfoid <> d.function OR t.tgtype <> coalesce(d.type, t.tgtype) OR t.tgqual IS NOT NULL
                     OR t.tgattr <> ''::int2vector
                THEN 'is not the one that onerepl made'
                WHEN t.tgenabled <> 'A' THEN 'does not fire always' END
    FROM onerepl.trigger_definition AS d
    LEFT JOIN pg_trigger AS t ON t.tgrelid = relation AND t.tgname = d.name
    WHERE d.name = trigger_fault.name
$$;
COMMENT ON FUNCTION onerepl.trigger_fault(oid, text) IS 'What is wrong with one of onerepl''s triggers on a table; null: nothing.';

CREATE FUNCTION onerepl.capture_problems() RETURNS TABLE (relation oid, kind text, message text, hint text)
    LANGUAGE sql STABLE
    SET search_path = pg_catalog, pg_temp AS $$
    SELECT m.relation, w.kind, format(w.message, m.name, f.fault), format(w.hint, m.root::regclass)
    FROM onerepl.tracked_member AS m
    JOIN onerepl.tracked AS t ON t.relation = m.root
    CROSS JOIN (
        VALUES ('capture trigger', '!onerepl_capture', 'changes of table %s are not captured: its trigger !onerepl_capture %s',
                'Call onerepl_add_table(%L) to repair it. Then compare the table with the central''s (onerepl_verify) and mend it (onerepl_refresh with ''repair''): what changed meanwhile was not sent.'),
               ('truncate trigger', '!onerepl_truncate', 'TRUNCATE of table %s is not captured: its trigger !onerepl_truncate %s',
                'Call onerepl_add_table(%L) to repair it. If the table was truncated meanwhile, truncate it on the central too.'),
               ('lock trigger', '!onerepl_lock', 'writers of table %s do not take turns (lock_pending): its trigger !onerepl_lock %s',
                'Call onerepl_add_table(%L, lock_pending => true) to repair it.')
    ) AS w (kind, trigger, message, hint)
    CROSS JOIN LATERAL onerepl.trigger_fault(m.relation, w.trigger) AS f (fault)
    WHERE f.fault IS NOT NULL AND (w.trigger <> '!onerepl_lock' OR t.lock_pending)
    UNION ALL
    SELECT c.relation, 'uncaptured', format('changes of table %s were not captured for a time: a trigger of it was switched off', m.name),
           format('Compare the table with the central''s (onerepl_verify), mend what differs (onerepl_refresh with ''repair''), then call onerepl_add_table(%L).',
                  m.root::regclass)
    FROM onerepl.checked AS c JOIN onerepl.tracked_member AS m ON m.relation = c.relation
    WHERE c.uncaptured AND onerepl.trigger_fault(c.relation, '!onerepl_capture') IS NULL
      AND onerepl.trigger_fault(c.relation, '!onerepl_truncate') IS NULL
    UNION ALL
    SELECT m.relation, 'unlogged', format('tracked table %s is unlogged: a crash empties it, and the log does not know', m.name),
           format('Use ALTER TABLE %s SET LOGGED.', m.name)
    FROM onerepl.tracked_member AS m WHERE m.relpersistence = 'u'
    UNION ALL
    SELECT c.relation, 'rewritten', format('ALTER TABLE gave the rows of table %s new values, or a filter of it another meaning, and that was not captured', m.name),
           format('Make the same change on the central, unless its link does so itself (onerepl_set_ddl), compare the table with onerepl_verify, then call onerepl_add_table(%L).', m.root::regclass)
    FROM onerepl.checked AS c JOIN onerepl.tracked_member AS m ON m.relation = c.relation WHERE c.rewritten
    UNION ALL
    SELECT m.relation, 'foreign partition', format('partition %s is a foreign table: its rows are not captured', m.name),
           'Detach it: its rows are in another database, where they can be tracked.'
    FROM onerepl.tracked_member AS m WHERE m.relkind = 'f'
    UNION ALL
    SELECT c.relation, 'replaced',
           format(CASE WHEN c.dropped THEN 'table %s was dropped and made again; the new one is not tracked'
                       ELSE 'table %s was put in the place of a tracked one; it is not tracked itself' END, c.name),
           format('Make the table the same on the central and call onerepl_add_table(%1$L), or onerepl_remove_table(%1$L) if it is not to be tracked.',
                  c.name)
    FROM onerepl.checked AS c
    WHERE to_regclass(c.name) <> c.relation
      AND NOT EXISTS (SELECT FROM onerepl.tracked_member AS m WHERE m.relation = to_regclass(c.name))
      AND (c.dropped OR c.relation = c.root)
$$;
COMMENT ON FUNCTION onerepl.capture_problems() IS 'What is wrong with the tracked tables now, and its cure.';

-- Told with the statement that does it: at the end of its transaction the trigger may be right again.
CREATE FUNCTION onerepl.note_uncaptured(relations oid[], tag text) RETURNS void
    LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    fault record;
BEGIN
    FOR fault IN
        SELECT p.*
        FROM onerepl.checked AS c JOIN onerepl.capture_problems() AS p ON p.relation = c.relation
        WHERE (c.relation = ANY (relations) OR c.root = ANY (relations)) AND p.kind IN ('capture trigger', 'truncate trigger')
          -- onerepl_add_table makes a trigger right in two steps.
          AND (tag <> 'CREATE TRIGGER' OR p.message LIKE '%is not the one that onerepl made')
        ORDER BY p.relation, p.kind
    LOOP
        UPDATE onerepl.checked AS c SET uncaptured = true WHERE c.relation = fault.relation;
        INSERT INTO onerepl.problem (relation, kind, message, hint)
            VALUES (fault.relation, fault.kind, fault.message, fault.hint) ON CONFLICT DO NOTHING;
        IF FOUND THEN
            PERFORM onerepl.write_journal(2, NULL, 'P6', format('%s (%s, by %s)', fault.message, tag, session_user), fault.hint);
        END IF;
    END LOOP;
END $$;
COMMENT ON FUNCTION onerepl.note_uncaptured(oid[], text) IS
'For event triggers: notes and tells that the statement that runs has switched off a trigger of capture, or taken or replaced one, of one of these tables.';

CREATE FUNCTION onerepl.event_trigger_problems() RETURNS TABLE (relation oid, kind text, message text, hint text)
    LANGUAGE sql STABLE
    SET search_path = pg_catalog, pg_temp AS $$
    SELECT 0::oid, 'event trigger ' || w.name,
           format('event trigger %s is %s: some changes of tracked tables go unnoticed', w.name, CASE WHEN e.oid IS NULL THEN 'missing' ELSE 'disabled' END),
           format('%s. Partitions attached, detached or dropped, columns altered and triggers switched off meanwhile are not noticed: compare the tables (onerepl_verify).',
                  CASE WHEN e.oid IS NULL THEN 'If it got another name, give it this one again: it has to fire before others'
                       ELSE format('Use ALTER EVENT TRIGGER %I ENABLE ALWAYS', w.name) END)
    FROM (VALUES ('onerepl_rewrite'), ('!onerepl_schema'), ('!onerepl_schema_partition'), ('!onerepl_drop')) AS w (name)
    LEFT JOIN pg_event_trigger AS e ON e.evtname = w.name
    WHERE e.evtenabled IS DISTINCT FROM 'A' AND EXISTS (SELECT FROM onerepl.tracked)
    UNION ALL
    SELECT 0::oid, 'event triggers', 'event_triggers is off: what statements do to tracked tables goes unnoticed',
           'Switch it on again, and compare the tables that were altered meanwhile (onerepl_verify), in shape and rows.'
    WHERE current_setting('event_triggers', true) = 'off' AND EXISTS (SELECT FROM onerepl.tracked)
    UNION ALL
    SELECT 0::oid, 'event trigger ' || e.evtname, format('event trigger %s is disabled: new partitions may be written by everybody', e.evtname),
           format('Use ALTER EVENT TRIGGER %I ENABLE ALWAYS.', e.evtname)
    FROM pg_event_trigger AS e
    WHERE e.evtname = 'onerepl_guard' AND e.evtenabled <> 'A' AND EXISTS (SELECT FROM onerepl.guarded)
    UNION ALL
    SELECT 0::oid, 'event trigger ' || e.evtname, format('event trigger %s is disabled: statements of remotes may change what their links may not write', e.evtname),
           format('Use ALTER EVENT TRIGGER %I ENABLE ALWAYS.', e.evtname)
    FROM pg_event_trigger AS e
    WHERE e.evtname IN ('!onerepl_reach', '!onerepl_reach_drop') AND e.evtenabled <> 'A' AND EXISTS (SELECT FROM onerepl.link AS l WHERE l.ddl = 'apply')
$$;
COMMENT ON FUNCTION onerepl.event_trigger_problems() IS 'What is wrong with the event triggers that serve the self-check.';

CREATE FUNCTION onerepl.note_unwatched(tag text) RETURNS void
    LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    fault record;
BEGIN
    FOR fault IN SELECT * FROM onerepl.event_trigger_problems() LOOP
        INSERT INTO onerepl.problem (relation, kind, message, hint)
            VALUES (fault.relation, fault.kind, fault.message, fault.hint) ON CONFLICT DO NOTHING;
        IF FOUND THEN
            PERFORM onerepl.write_journal(2, NULL, 'P6', format('%s (%s, by %s)', fault.message, tag, session_user), fault.hint);
        END IF;
    END LOOP;
END $$;
COMMENT ON FUNCTION onerepl.note_unwatched(text) IS
'Tells with the statement that does it that event triggers are off: at the end of its transaction they may be on again. For the '
'hook on statements that fire none.';

CREATE FUNCTION onerepl.guard_problems() RETURNS TABLE (relation oid, kind text, message text, hint text)
    LANGUAGE sql STABLE
    SET search_path = pg_catalog, pg_temp AS $$
    SELECT g.relation, 'guard trigger', format('table %s is not read-only: its trigger %s %s', g.relation::regclass, w.name, f.fault),
           format('Drop the trigger, if there is one; onerepl makes it again with the next change of the table. '
                  'Then compare the table with the remote''s.')
    FROM (SELECT DISTINCT d.relation::oid AS relation FROM onerepl.guarded AS d) AS g
    JOIN pg_class AS c ON c.oid = g.relation
    CROSS JOIN LATERAL (
        SELECT min(w.name) FROM (VALUES ('!onerepl_guard', true), ('!onerepl_guard_row', c.relkind = 'r')) AS w (name, is_wanted)
        WHERE w.is_wanted AND onerepl.trigger_fault(g.relation, w.name) IS NOT NULL
    ) AS w (name)
    CROSS JOIN LATERAL onerepl.trigger_fault(g.relation, w.name) AS f (fault)
    WHERE f.fault IS NOT NULL
$$;
COMMENT ON FUNCTION onerepl.guard_problems() IS 'What is wrong with the guards of the tables that onerepl writes (P8).';

CREATE FUNCTION onerepl.self_check() RETURNS int
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    entry record;
BEGIN
    -- One at a time: the journal is to hear of a problem once.
    PERFORM pg_advisory_xact_lock('onerepl.problem'::regclass::oid::int8);
    PERFORM onerepl.note_tables();
    FOR entry IN
        WITH found AS MATERIALIZED (
            SELECT * FROM onerepl.capture_problems() UNION ALL SELECT * FROM onerepl.event_trigger_problems()
            UNION ALL SELECT * FROM onerepl.guard_problems()
        ), solved AS (
            DELETE FROM onerepl.problem AS p
                WHERE NOT EXISTS (SELECT FROM found AS f WHERE f.relation = p.relation AND f.kind = p.kind)
                RETURNING p.*
        ), new AS (
            INSERT INTO onerepl.problem AS p (relation, kind, message, hint)
                SELECT f.relation, f.kind, f.message, f.hint FROM found AS f
                ON CONFLICT (relation, kind) DO UPDATE SET message = excluded.message, hint = excluded.hint
                    WHERE p.message <> excluded.message
                RETURNING p.*
        )
        SELECT 2 AS level, n.message, n.hint FROM new AS n
        UNION ALL
        SELECT 0, 'no longer so: ' || s.message, NULL FROM solved AS s
        ORDER BY level DESC, message
    LOOP
        PERFORM onerepl.write_journal(entry.level, NULL, 'P6', entry.message, entry.hint);
    END LOOP;
    RETURN (SELECT count(*) FROM onerepl.problem);
END $$;
COMMENT ON FUNCTION onerepl.self_check() IS
'Looks whether every tracked table is really captured and every table that onerepl writes is read-only for others: triggers '
'missing, disabled or changed; tables dropped and made again, or replaced; foreign partitions; rewrites that changed values. '
'What is new is critical in the journal, with its cure; the view onerepl.problems and onerepl_status() show it until it is '
'cured. Returns the number of problems. A worker calls it once a minute.';

CREATE EVENT TRIGGER onerepl_rewrite ON table_rewrite EXECUTE FUNCTION onerepl.note_rewrite();
ALTER EVENT TRIGGER onerepl_rewrite ENABLE ALWAYS;
-- Its name sorts after !onerepl_schema: a central that executes what onerepl_execute_ddl() was given does so before it gets the rows.
CREATE EVENT TRIGGER "!onerepl_schema_partition" ON ddl_command_end WHEN TAG IN ('CREATE TABLE', 'ALTER TABLE')
    EXECUTE FUNCTION onerepl.adjust_partitions();
ALTER EVENT TRIGGER "!onerepl_schema_partition" ENABLE ALWAYS;
