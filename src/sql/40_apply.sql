-- The read-only guard of tables that onerepl writes here (P8). Its triggers "!onerepl_guard" and "!onerepl_guard_row" are put on them by apply.
CREATE FUNCTION onerepl.guard() RETURNS trigger
    LANGUAGE c AS 'MODULE_PATHNAME', 'onerepl_guard';
REVOKE ALL ON FUNCTION onerepl.guard() FROM PUBLIC;

CREATE FUNCTION onerepl.ensure_guard(relation regclass, link int) RETURNS void
    LANGUAGE c STRICT AS 'MODULE_PATHNAME', 'onerepl_ensure_guard'
    SET search_path = pg_catalog, pg_temp;
COMMENT ON FUNCTION onerepl.ensure_guard(regclass, int) IS 'Puts the guard on a table that a link writes, and on its partitions, where it is missing.';

CREATE FUNCTION onerepl.guard_new_parts() RETURNS event_trigger
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
    part record;
BEGIN
    IF NOT EXISTS (SELECT FROM onerepl.guarded) THEN
        RETURN;
    END IF;
    FOR part IN
        WITH RECURSIVE below (relation) AS (
            SELECT d.objid FROM pg_event_trigger_ddl_commands() AS d WHERE d.classid = 'pg_class'::regclass
            UNION
            SELECT i.inhrelid FROM below AS b JOIN pg_inherits AS i ON i.inhparent = b.relation
        )
        SELECT DISTINCT b.relation, g.link
        FROM below AS b JOIN pg_class AS c ON c.oid = b.relation AND c.relispartition
        JOIN pg_inherits AS i ON i.inhrelid = b.relation JOIN onerepl.guarded AS g ON g.relation = i.inhparent
        WHERE NOT EXISTS (SELECT FROM onerepl.guarded AS h WHERE h.relation = b.relation AND h.link = g.link)
    LOOP
        PERFORM onerepl.ensure_guard(part.relation, part.link);
    END LOOP;
END $$;
COMMENT ON FUNCTION onerepl.guard_new_parts() IS 'For an event trigger: a new partition of a guarded table is guarded, too (P8).';

CREATE EVENT TRIGGER onerepl_guard ON ddl_command_end WHEN TAG IN ('CREATE TABLE', 'CREATE FOREIGN TABLE', 'ALTER TABLE')
    EXECUTE FUNCTION onerepl.guard_new_parts();
ALTER EVENT TRIGGER onerepl_guard ENABLE ALWAYS;
