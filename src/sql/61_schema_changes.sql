-- Changes of tables on the remote, in their place of the log (P17).

-- Schemas whose new tables are tracked by themselves.
CREATE TABLE onerepl.tracked_schema (
    schema      regnamespace PRIMARY KEY,
    added_at    timestamptz NOT NULL DEFAULT now()
);
SELECT pg_extension_config_dump('onerepl.tracked_schema', '');

CREATE FUNCTION onerepl.record_running_statement(relation regclass) RETURNS void
    LANGUAGE c STRICT AS 'MODULE_PATHNAME', 'onerepl_record_running_statement'
    SET search_path = pg_catalog, pg_temp;
COMMENT ON FUNCTION onerepl.record_running_statement(regclass) IS
'Records the statement that runs, which has changed or made this tracked table, and the table''s new description. For event triggers.';

CREATE FUNCTION onerepl.record_drop(relation oid) RETURNS void
    LANGUAGE c STRICT AS 'MODULE_PATHNAME', 'onerepl_record_drop'
    SET search_path = pg_catalog, pg_temp;
COMMENT ON FUNCTION onerepl.record_drop(oid) IS 'Records that a tracked table was dropped, if it ever was described.';

CREATE FUNCTION onerepl.note_ddl() RETURNS event_trigger
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    changed record;
BEGIN
    FOR changed IN
        SELECT DISTINCT d.objid, t.relation IS NOT NULL AS is_tracked
        FROM pg_event_trigger_ddl_commands() AS d
        JOIN pg_class AS c ON c.oid = d.objid AND c.relkind IN ('r', 'p')
        LEFT JOIN onerepl.tracked AS t ON t.relation = d.objid
        LEFT JOIN onerepl.tracked_schema AS s ON s.schema = c.relnamespace
        WHERE d.classid = 'pg_class'::regclass AND (t.relation IS NOT NULL OR s.schema IS NOT NULL)
        UNION ALL
        SELECT t.relation, true
        FROM pg_event_trigger_ddl_commands() AS d
        JOIN pg_class AS c ON c.relnamespace = d.objid
        JOIN onerepl.tracked AS t ON t.relation = c.oid
        WHERE d.classid = 'pg_namespace'::regclass
    LOOP
        IF changed.is_tracked THEN
            PERFORM onerepl.check_filters(changed.objid);
            PERFORM onerepl.record_running_statement(changed.objid);
        ELSIF tg_tag <> 'ALTER TABLE' THEN
            PERFORM onerepl.join_tracked_schema(changed.objid, tg_tag);
        END IF;
    END LOOP;
END $$;
COMMENT ON FUNCTION onerepl.note_ddl() IS
'Records statements that change a tracked table, or the name of its schema, for links that execute them, and tracks new tables of a tracked schema.';

CREATE FUNCTION onerepl.join_tracked_schema(relation regclass, tag text) RETURNS void
    LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    refused record;
BEGIN
    SELECT * INTO refused FROM onerepl.why_not_tracked(join_tracked_schema.relation);
    IF refused.code = '42710' THEN
        -- A partition of a tracked table: nothing to track, but a central that makes the schema's tables needs it.
        IF tag = 'CREATE TABLE' THEN
            PERFORM onerepl.record_running_statement(join_tracked_schema.relation);
        END IF;
        RETURN;
    END IF;
    IF refused.code IS NOT NULL THEN
        PERFORM onerepl.write_journal(1, NULL, 'P6', format('new table %s is not tracked: %s', join_tracked_schema.relation,
                                                            refused.reason), refused.hint);
        RETURN;
    END IF;
    PERFORM onerepl.track(join_tracked_schema.relation, false);
    IF tag = 'CREATE TABLE' THEN
        PERFORM onerepl.record_running_statement(join_tracked_schema.relation);
    ELSE
        -- It was made from a query, and may have rows already.
        PERFORM onerepl.refresh_new_table(join_tracked_schema.relation);
    END IF;
END $$;
COMMENT ON FUNCTION onerepl.join_tracked_schema(regclass, text) IS
'Tracks a table that was made in a tracked schema; one that was made from a query is copied to every central.';

CREATE FUNCTION onerepl.note_drops() RETURNS event_trigger
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    gone record;
BEGIN
    FOR gone IN
        SELECT d.objid, d.object_identity
        FROM pg_event_trigger_dropped_objects() AS d JOIN onerepl.tracked AS t ON t.relation = d.objid
        WHERE d.classid = 'pg_class'::regclass AND d.objsubid = 0
    LOOP
        PERFORM onerepl.record_drop(gone.objid);
        DELETE FROM onerepl.tracked AS t WHERE t.relation = gone.objid;
        UPDATE onerepl.checked AS c SET dropped = true WHERE c.relation = gone.objid;
        PERFORM onerepl.write_journal(1, NULL, 'P6', format('tracked table %s was dropped', gone.object_identity),
            'What was captured is still sent. The centrals keep their tables, and tell of it in their journals.');
    END LOOP;
    PERFORM onerepl.note_dropped_partitions();
    DELETE FROM onerepl.tracked_schema AS s USING pg_event_trigger_dropped_objects() AS d
        WHERE d.classid = 'pg_namespace'::regclass AND d.objid = s.schema;
END $$;
COMMENT ON FUNCTION onerepl.note_drops() IS 'Tells of tracked tables that are dropped, here and at the centrals.';

CREATE EVENT TRIGGER onerepl_schema ON ddl_command_end
    WHEN TAG IN ('ALTER TABLE', 'CREATE TABLE', 'CREATE TABLE AS', 'SELECT INTO', 'ALTER SCHEMA')
    EXECUTE FUNCTION onerepl.note_ddl();
ALTER EVENT TRIGGER onerepl_schema ENABLE ALWAYS;
CREATE EVENT TRIGGER onerepl_drop ON sql_drop WHEN TAG IN ('DROP TABLE', 'DROP SCHEMA', 'DROP OWNED', 'DROP EXTENSION')
    EXECUTE FUNCTION onerepl.note_drops();
ALTER EVENT TRIGGER onerepl_drop ENABLE ALWAYS;

CREATE FUNCTION onerepl_execute_ddl(statement text, search_path text DEFAULT pg_catalog.current_setting('search_path')) RETURNS void
    LANGUAGE c STRICT AS 'MODULE_PATHNAME', 'onerepl_execute_ddl'
    SET search_path = pg_catalog, pg_temp;
COMMENT ON FUNCTION onerepl_execute_ddl(text, text) IS
'Executes a statement (or several) that defines objects here, with your rights, and at every central, in its place among the changes:
CREATE INDEX, CREATE TYPE, GRANT, COMMENT ... ALTER TABLE of a tracked table needs it not, but may use it. search_path: under which it is
read, on both sides. At a central whose link says ''apply'' (onerepl_set_ddl) it is executed with the rights of the extension''s owner
there, mostly a superuser: mind whom you grant EXECUTE. Where the link says ''stop'' the record is F, and the administrator there decides.
A statement that a transaction can not have (CREATE INDEX CONCURRENTLY) can not be given.
Errors: 22023 no statement, or one that changes rows, decides about the transaction, or is DO or CALL; 55000 capture is stopped; and
what the statement itself raises.';

CREATE FUNCTION onerepl_set_ddl(link text, ddl text) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_variable
DECLARE
    changed onerepl.link := onerepl.get_link(link, 'central');
BEGIN
    IF ddl IS NULL OR ddl NOT IN ('stop', 'apply') THEN
        RAISE EXCEPTION 'unknown ddl "%"', ddl USING
            ERRCODE = 'invalid_parameter_value', HINT = 'Use ''stop'' or ''apply''.';
    END IF;
    UPDATE onerepl.link AS l SET ddl = onerepl_set_ddl.ddl WHERE l.id = changed.id;
    PERFORM onerepl.write_journal(1, changed.id, 'P17', format('statements of the remote: %s, set by %s',
        CASE ddl WHEN 'apply' THEN 'executed here' ELSE 'not executed here' END, session_user));
END $$;
COMMENT ON FUNCTION onerepl_set_ddl(text, text) IS
'Says on the central what is done with statements that the remote of a link has executed. ddl: ''stop'' (as a link begins), a change of a
table is told in the journal, and the link stops with F at the first row that does not fit, until you have changed the table here, or at once
where a table or its schema gets another name (rename yours, then ''skip'');
a statement of onerepl_execute_ddl is F, resolve it with ''skip'' or ''retry''. ''apply'', they are executed in their place among the
changes: ALTER TABLE of a tracked table with the rights of the owner of the table here; CREATE TABLE in a tracked schema, and ALTER
SCHEMA RENAME of one with tracked tables, with those of the schema''s owner (who needs CREATE on the database for the latter);
onerepl_execute_ddl with those of the extension''s owner. The remote''s administrator may do everything here then.
Errors: 42704 no such link; 55000 this is not its central; 22023 unknown ddl.';
