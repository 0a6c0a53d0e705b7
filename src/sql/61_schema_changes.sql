-- Changes of tables on the remote, in their place of the log (P17).

CREATE TABLE onerepl.tracked_schema (
    schema      name PRIMARY KEY,
    added_at    timestamptz NOT NULL DEFAULT now()
);
COMMENT ON TABLE onerepl.tracked_schema IS
'Schemas whose new tables are tracked by themselves. By name: neither a dump nor pg_upgrade keeps a schema''s oid, and pg_upgrade refuses a database
with a column of type regnamespace.';
SELECT pg_extension_config_dump('onerepl.tracked_schema', '');

CREATE FUNCTION onerepl.record_running_statement(relation regclass, direct bool) RETURNS void
    LANGUAGE c STRICT AS 'MODULE_PATHNAME', 'onerepl_record_running_statement'
    SET search_path = pg_catalog, pg_temp;
COMMENT ON FUNCTION onerepl.record_running_statement(regclass, bool) IS
'Records the statement that runs, which has changed or made this tracked table, unless it was recorded before, and the table''s '
'new description if it has one. Not direct: the statement names another table or type, and is recorded if the table''s '
'description has changed by it. For event triggers.';

CREATE FUNCTION onerepl.has_other_values(relation regclass) RETURNS bool
    LANGUAGE c STRICT AS 'MODULE_PATHNAME', 'onerepl_has_other_values'
    SET search_path = pg_catalog, pg_temp;
COMMENT ON FUNCTION onerepl.has_other_values(regclass) IS
'Whether the statement that runs has given the table''s rows, in a new column, what its default gives here and now only: now(), current_user.';

CREATE FUNCTION onerepl.record_cascade(relation regclass, statement text) RETURNS void
    LANGUAGE c STRICT AS 'MODULE_PATHNAME', 'onerepl_record_cascade'
    SET search_path = pg_catalog, pg_temp;
COMMENT ON FUNCTION onerepl.record_cascade(regclass, text) IS
'Records this ALTER TABLE, which says what a cascade did to a tracked table, and the table''s new description. For event triggers.';

CREATE FUNCTION onerepl.record_drop(relation oid) RETURNS void
    LANGUAGE c STRICT AS 'MODULE_PATHNAME', 'onerepl_record_drop'
    SET search_path = pg_catalog, pg_temp;
COMMENT ON FUNCTION onerepl.record_drop(oid) IS 'Records that a tracked table was dropped, if it ever was described.';

-- P21: by what it did, not by its tag. What an extension's script does is the extension's.
CREATE FUNCTION onerepl.changed_tables() RETURNS TABLE (relation oid, direct bool)
    LANGUAGE sql
    SET search_path = pg_catalog, pg_temp AS $$
    WITH RECURSIVE commanded AS MATERIALIZED (
        SELECT d.classid, d.objid FROM pg_event_trigger_ddl_commands() AS d WHERE NOT d.in_extension
    ), named (relation) AS MATERIALIZED (
        SELECT d.objid FROM commanded AS d WHERE d.classid = 'pg_class'::regclass
        UNION
        SELECT c.oid FROM commanded AS d JOIN pg_class AS c ON c.relnamespace = d.objid WHERE d.classid = 'pg_namespace'::regclass
        UNION
        SELECT onerepl.table_of(d.classid, d.objid) FROM commanded AS d WHERE d.classid = 'pg_constraint'::regclass
        UNION
        -- An index of a constraint, which has the constraint's name.
        SELECT k.conrelid FROM commanded AS d JOIN pg_constraint AS k ON k.conindid = d.objid AND k.contype IN ('p', 'u', 'x')
            WHERE d.classid = 'pg_class'::regclass
    ), reached (relation) AS (
        SELECT n.relation FROM named AS n
        UNION
        SELECT b.relation
        FROM reached AS r CROSS JOIN LATERAL (
            SELECT i.inhrelid FROM pg_inherits AS i WHERE i.inhparent = r.relation
            UNION ALL
            -- No index leads from a type to the tables that are of it.
            SELECT c.oid FROM pg_class AS y JOIN pg_class AS c ON c.reloftype = y.reltype WHERE y.oid = r.relation AND y.relkind = 'c'
        ) AS b (relation)
    )
    SELECT r.relation, n.relation IS NOT NULL
    FROM reached AS r JOIN onerepl.tracked AS t ON t.relation = r.relation LEFT JOIN named AS n ON n.relation = r.relation
    ORDER BY n.relation IS NULL, r.relation
$$;
COMMENT ON FUNCTION onerepl.changed_tables() IS
'For an event trigger: tracked tables that the statement which runs may have changed; direct: it names them, their constraint '
'or their schema. The others inherit from what it names, or are of a type that it names.';

CREATE FUNCTION onerepl.record_changed_tables() RETURNS void
    LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    changed record;
BEGIN
    FOR changed IN SELECT * FROM onerepl.changed_tables() LOOP
        PERFORM onerepl.check_filters(changed.relation), onerepl.note_filters(changed.relation);
        UPDATE onerepl.checked AS c SET rewritten = true WHERE c.relation = changed.relation AND onerepl.has_other_values(changed.relation);
        PERFORM onerepl.record_running_statement(changed.relation, changed.direct);
    END LOOP;
END $$;
COMMENT ON FUNCTION onerepl.record_changed_tables() IS
'For an event trigger: records the statement that runs if it changes tracked tables, and their new descriptions.';

CREATE FUNCTION onerepl.note_ddl() RETURNS event_trigger
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
    made record;
BEGIN
    PERFORM onerepl.record_changed_tables();
    FOR made IN
        SELECT DISTINCT d.objid, d.command_tag
        FROM pg_event_trigger_ddl_commands() AS d
        JOIN pg_class AS c ON c.oid = d.objid AND c.relkind IN ('r', 'p')
        JOIN pg_namespace AS n ON n.oid = c.relnamespace
        JOIN onerepl.tracked_schema AS s ON s.schema = n.nspname
        WHERE d.classid = 'pg_class'::regclass AND NOT d.in_extension AND d.command_tag IN ('CREATE TABLE', 'CREATE TABLE AS', 'SELECT INTO')
          AND NOT EXISTS (SELECT FROM onerepl.tracked AS t WHERE t.relation = d.objid)
    LOOP
        PERFORM onerepl.join_tracked_schema(made.objid, made.command_tag);
    END LOOP;
    IF tg_tag = 'ALTER SCHEMA' THEN
        PERFORM onerepl.follow_schema(d.objid)
            FROM pg_event_trigger_ddl_commands() AS d WHERE d.classid = 'pg_namespace'::regclass;
    END IF;
    PERFORM onerepl.note_uncaptured(array_agg(onerepl.table_of(d.classid, d.objid)), tg_tag)
        FROM pg_event_trigger_ddl_commands() AS d WHERE d.classid IN ('pg_class'::regclass, 'pg_trigger'::regclass) HAVING count(*) > 0;
    IF tg_tag IN ('CREATE EXTENSION', 'ALTER EXTENSION') THEN
        -- A table of an extension is reached otherwise (P18), and no message tells that it has become one.
        PERFORM onerepl.reach_changed();
        PERFORM onerepl.note_extension(d.objid, tg_tag)
            FROM pg_event_trigger_ddl_commands() AS d WHERE d.classid = 'pg_extension'::regclass;
    END IF;
END $$;
COMMENT ON FUNCTION onerepl.note_ddl() IS
'Records statements that change a tracked table, or the name of its schema, for links that execute them, and tracks new tables of a tracked schema.';

CREATE FUNCTION onerepl.follow_schema(namespace oid) RETURNS void
    LANGUAGE sql
    SET search_path = pg_catalog, pg_temp AS $$
    -- Dropped ones leave at once (note_drops), so that a name which is not there is the one that it had.
    UPDATE onerepl.tracked_schema AS s SET schema = n.nspname
    FROM pg_namespace AS n
    WHERE n.oid = follow_schema.namespace
      AND NOT EXISTS (SELECT FROM pg_namespace AS o WHERE o.nspname = s.schema)
      AND NOT EXISTS (SELECT FROM onerepl.tracked_schema AS o WHERE o.schema = n.nspname)
$$;
COMMENT ON FUNCTION onerepl.follow_schema(oid) IS 'A schema may have been renamed: a tracked one stays tracked.';

CREATE FUNCTION onerepl.note_extension(extension oid, tag text) RETURNS void
    LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    name text := (SELECT e.extname FROM pg_extension AS e WHERE e.oid = note_extension.extension);
    has_tables bool;
BEGIN
    IF name = 'onerepl' OR NOT EXISTS (SELECT FROM onerepl.link AS l WHERE l.role = 'remote') THEN
        RETURN;
    END IF;
    has_tables := EXISTS (
        SELECT FROM pg_depend AS d JOIN pg_class AS c ON c.oid = d.objid AND c.relkind IN ('r', 'p')
        JOIN pg_namespace AS n ON n.oid = c.relnamespace
        JOIN onerepl.tracked_schema AS s ON s.schema = n.nspname
        WHERE d.classid = 'pg_class'::regclass AND d.refclassid = 'pg_extension'::regclass AND d.refobjid = note_extension.extension
          AND d.deptype = 'e');
    PERFORM onerepl.write_journal(CASE WHEN has_tables THEN 1 ELSE 0 END, NULL, 'P21', format('%s %I: what its script did does not travel%s',
            tag, name, CASE WHEN has_tables THEN '; its tables are not tracked' ELSE '' END),
        'Do the same at each central that is to have what the extension has. A table of it whose rows are yours can be tracked by name (onerepl_add_table).');
END $$;
COMMENT ON FUNCTION onerepl.note_extension(oid, text) IS
'Tells that an extension was created or changed here: what its script makes or alters is the extension''s (P21).';

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
            PERFORM onerepl.record_running_statement(join_tracked_schema.relation, true);
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
        PERFORM onerepl.record_running_statement(join_tracked_schema.relation, true);
    ELSE
        -- It was made from a query, and may have rows already.
        PERFORM onerepl.refresh_new_table(join_tracked_schema.relation);
    END IF;
END $$;
COMMENT ON FUNCTION onerepl.join_tracked_schema(regclass, text) IS
'Tracks a table that was made in a tracked schema; one that was made from a query is copied to every central.';

-- The objects come in the order in which they were dropped, what depends on others before them; what a table inherits goes with
-- the parent's.
CREATE FUNCTION onerepl.cascades() RETURNS TABLE (relation oid, statement text)
    LANGUAGE sql
    SET search_path = pg_catalog, pg_temp AS $$
    WITH dropped AS MATERIALIZED (
        SELECT d.classid, d.objid, d.objsubid, d.object_type, d.address_names, d.ordinality AS place
        FROM pg_event_trigger_dropped_objects() WITH ORDINALITY AS d
    ), part (relation, change, place) AS (
        SELECT d.objid, format('DROP COLUMN IF EXISTS %I', d.address_names[3]), d.place
            FROM dropped AS d WHERE d.classid = 'pg_class'::regclass AND d.objsubid > 0
        UNION ALL
        SELECT onerepl.table_at(d.address_names), format('DROP CONSTRAINT IF EXISTS %I', d.address_names[3]), d.place
            FROM dropped AS d WHERE d.object_type = 'table constraint'
        UNION ALL
        SELECT a.attrelid, format('ALTER %I DROP DEFAULT', a.attname), d.place
            FROM dropped AS d JOIN pg_attribute AS a ON a.attrelid = onerepl.table_at(d.address_names)
                                                     AND a.attname = d.address_names[3] AND NOT a.attisdropped
            WHERE d.object_type = 'default value'
    )
    SELECT c.oid, format('ALTER TABLE %I.%I %s', n.nspname, c.relname, string_agg(p.change, ', ' ORDER BY p.place))
    FROM part AS p JOIN onerepl.tracked AS t ON t.relation = p.relation
    JOIN pg_class AS c ON c.oid = p.relation JOIN pg_namespace AS n ON n.oid = c.relnamespace
    WHERE p.relation NOT IN (SELECT h.relation FROM onerepl.changed_tables() AS h)
    GROUP BY c.oid, n.nspname, c.relname
    ORDER BY EXISTS (SELECT FROM pg_inherits AS i WHERE i.inhrelid = c.oid), min(p.place)
$$;
COMMENT ON FUNCTION onerepl.cascades() IS
'For an event trigger: what tracked tables have lost with other objects, and the ALTER TABLE that does the same. What the '
'statement that runs did to tables that it names, or that inherit from them, is not among it.';

CREATE FUNCTION onerepl.note_drops() RETURNS event_trigger
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
    gone record;
BEGIN
    -- Before what other event triggers may do about the drops.
    PERFORM onerepl.record_changed_tables();
    FOR gone IN
        SELECT d.objid, d.object_identity
        FROM pg_event_trigger_dropped_objects() AS d JOIN onerepl.tracked AS t ON t.relation = d.objid
        WHERE d.classid = 'pg_class'::regclass AND d.objsubid = 0
    LOOP
        PERFORM onerepl.record_drop(gone.objid);
        DELETE FROM onerepl.tracked AS t WHERE t.relation = gone.objid;
        UPDATE onerepl.checked AS c SET dropped = true WHERE c.relation = gone.objid;
        PERFORM onerepl.write_journal(1, NULL, 'P6', format('tracked table %s was dropped', gone.object_identity),
            'What was captured is still sent. The centrals keep their tables, and tell of it in their journals.'
            || CASE WHEN EXISTS (SELECT FROM onerepl.filter AS f WHERE f.relation = gone.objid AND f.newest AND (f.rows IS NOT NULL OR f.columns IS NOT NULL))
                    THEN ' Its filters end with it: a new table of that name is sent as a whole.' ELSE '' END);
    END LOOP;
    PERFORM onerepl.note_dropped_partitions();
    PERFORM onerepl.record_cascade(c.relation, c.statement) FROM onerepl.cascades() AS c;
    PERFORM onerepl.note_uncaptured(array_agg(onerepl.table_at(d.address_names)), tg_tag)
        FROM pg_event_trigger_dropped_objects() AS d WHERE d.object_type = 'trigger' HAVING count(*) > 0;
    DELETE FROM onerepl.tracked_schema AS s USING pg_event_trigger_dropped_objects() AS d
        WHERE d.classid = 'pg_namespace'::regclass AND d.object_name = s.schema;
END $$;
COMMENT ON FUNCTION onerepl.note_drops() IS 'Tells of tracked tables that are dropped, here and at the centrals.';

-- Their names sort first: what other event triggers do about a statement comes after it.
CREATE EVENT TRIGGER "!onerepl_schema" ON ddl_command_end EXECUTE FUNCTION onerepl.note_ddl();
ALTER EVENT TRIGGER "!onerepl_schema" ENABLE ALWAYS;
CREATE EVENT TRIGGER "!onerepl_drop" ON sql_drop EXECUTE FUNCTION onerepl.note_drops();
ALTER EVENT TRIGGER "!onerepl_drop" ENABLE ALWAYS;

CREATE FUNCTION onerepl_execute_ddl(statement text, search_path text DEFAULT pg_catalog.current_setting('search_path')) RETURNS void
    LANGUAGE c STRICT AS 'MODULE_PATHNAME', 'onerepl_execute_ddl'
    SET search_path = pg_catalog, pg_temp;
COMMENT ON FUNCTION onerepl_execute_ddl(text, text) IS
'Executes a statement that defines objects, here with your rights and at every central in its place among the changes.
It is for CREATE INDEX, CREATE TYPE, GRANT, COMMENT ... ALTER TABLE of a tracked table does not need it, but may use it.
At a central whose link says ''apply'' (onerepl_set_ddl) it is executed with the rights of the role that is named there, never a
superuser''s. Where the link says ''stop'' the record fails (state F), and the administrator there decides.
A statement that a transaction cannot have (CREATE INDEX CONCURRENTLY) cannot be given.
  statement: the statement, or several.
  search_path: under which it is read, on both sides; default: this session''s.
Errors: 22023 when there is no statement, or one that changes rows or settings, decides about the transaction, or is DO or CALL;
    55000 when capture is stopped; and what the statement itself raises.
See: docs/schema-changes.md, onerepl_set_ddl';

CREATE FUNCTION onerepl_set_ddl(link text, ddl text, run_as name DEFAULT NULL) RETURNS void
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
    IF run_as IS NOT NULL AND (SELECT r.rolsuper FROM pg_roles AS r WHERE r.rolname = run_as) IS DISTINCT FROM false THEN
        RAISE EXCEPTION 'role "%" cannot execute what a remote says', run_as USING
            ERRCODE = 'insufficient_privilege', HINT = 'Name a role that exists and is no superuser.';
    END IF;
    UPDATE onerepl.link AS l SET ddl = onerepl_set_ddl.ddl, statements_as = run_as WHERE l.id = changed.id;
    PERFORM onerepl.write_journal(1, changed.id, 'P17', format('statements of the remote: %s, set by %s',
        CASE ddl WHEN 'apply' THEN 'executed here' ELSE 'not executed here' END, session_user));
END $$;
COMMENT ON FUNCTION onerepl_set_ddl(text, text, name) IS
'Says on the central what is done with statements that the remote of a link has executed.
Who may alter a tracked table there can do here what the owner of the table can. Who may call onerepl_execute_ddl there can do what
run_as can.
  link: name of the link.
  ddl: ''stop'' (as a link begins): a change of a table is told in the journal, and the link stops with F at the first row that does
    not fit, until you have changed the table here; or at once where a table or its schema gets another name (rename yours, then
    ''skip''). A statement of onerepl_execute_ddl fails (state F): resolve it with ''skip'' or ''retry''.
    ''apply'': they are executed in their place among the changes. ALTER TABLE of a tracked table has the rights of the owner of the
    table here; CREATE TABLE in a tracked schema, and ALTER SCHEMA RENAME of one with tracked tables, have those of the schema''s
    owner (who needs CREATE on the database for the latter); onerepl_execute_ddl has those of run_as. None ever has a superuser''s:
    then the record fails (state F, 42501).
  run_as: the role for statements of onerepl_execute_ddl; null (default): none.
Errors: 42704 when there is no such link; 55000 when this database is not its central; 22023 when ddl is unknown; 42501 when run_as is
    a superuser, or does not exist.
See: docs/schema-changes.md, docs/security.md, onerepl_execute_ddl, P19';
