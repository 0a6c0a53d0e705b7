-- What a link may write (P18): naming it, and deciding.

CREATE FUNCTION onerepl.is_ours_alone(schema text) RETURNS bool
    LANGUAGE sql IMMUTABLE
    SET search_path = pg_catalog, pg_temp AS $$
    SELECT schema IN ('onerepl', 'pg_catalog', 'information_schema', 'pg_toast') OR schema ~ '^pg_(toast_)?temp(_|$)'
$$;
COMMENT ON FUNCTION onerepl.is_ours_alone(text) IS 'Whether nothing of a schema is ever written for a link, whatever its list says (P18).';

CREATE FUNCTION onerepl.read_allowed(entry text, OUT schema text, OUT name text)
    LANGUAGE plpgsql IMMUTABLE
    SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    parts text[];
    is_whole bool := entry LIKE '%.*';
BEGIN
    schema := '';
    name := '';
    IF entry = '*' THEN
        RETURN;
    END IF;
    BEGIN
        parts := parse_ident(CASE WHEN is_whole THEN left(entry, -2) ELSE entry END);
    EXCEPTION WHEN invalid_parameter_value THEN
        parts := NULL;
    END;
    IF cardinality(parts) IS DISTINCT FROM (CASE WHEN is_whole THEN 1 ELSE 2 END) THEN
        RAISE EXCEPTION '"%" names no table', entry USING
            ERRCODE = 'invalid_parameter_value',
            HINT = 'Give tables as schema.table, all of a schema as schema.*, and everything as *.';
    END IF;
    IF onerepl.is_ours_alone(parts[1]) THEN
        RAISE EXCEPTION 'schema "%" is never written for a link', parts[1] USING ERRCODE = 'invalid_parameter_value';
    END IF;
    schema := parts[1];
    name := coalesce(parts[2], '');
END $$;
COMMENT ON FUNCTION onerepl.read_allowed(text) IS
'One entry of a link''s list: schema and name, empty where it says *. Errors: 22023 it is none.';

CREATE FUNCTION onerepl.allowed_text(schema text, name text) RETURNS text
    LANGUAGE sql IMMUTABLE
    SET search_path = pg_catalog, pg_temp AS $$
    SELECT CASE WHEN schema = '' THEN '*' WHEN name = '' THEN format('%I.*', schema) ELSE format('%I.%I', schema, name) END
$$;
COMMENT ON FUNCTION onerepl.allowed_text(text, text) IS 'An entry of a link''s list as the administrator writes it.';

CREATE FUNCTION onerepl.allowed_list(link int) RETURNS text[]
    LANGUAGE sql STABLE
    SET search_path = pg_catalog, pg_temp AS $$
    SELECT coalesce(array_agg(e.entry ORDER BY e.entry), '{}')
    FROM (SELECT onerepl.allowed_text(a.schema, a.name) AS entry FROM onerepl.allowed AS a WHERE a.link = allowed_list.link) AS e
$$;
COMMENT ON FUNCTION onerepl.allowed_list(int) IS 'What a link may write, as the administrator writes it.';

CREATE FUNCTION onerepl.allow(link int, tables text[]) RETURNS void
    LANGUAGE sql
    SET search_path = pg_catalog, pg_temp AS $$
    INSERT INTO onerepl.allowed (link, schema, name)
        SELECT allow.link, a.schema, a.name FROM unnest(tables) AS t (entry) CROSS JOIN LATERAL onerepl.read_allowed(t.entry) AS a
        ON CONFLICT DO NOTHING
$$;
COMMENT ON FUNCTION onerepl.allow(int, text[]) IS 'Puts entries into a link''s list. Errors: 22023 one that names no table.';

CREATE FUNCTION onerepl.reach_changed() RETURNS void
    LANGUAGE sql
    SET search_path = pg_catalog, pg_temp AS $$
    -- Apply reads its descriptions again, and decides again.
    UPDATE onerepl.remote_description SET description = description;
    SELECT onerepl.wake_at_commit(false, true);
$$;
COMMENT ON FUNCTION onerepl.reach_changed() IS 'What links may write has changed: nothing that was decided before holds.';

CREATE FUNCTION onerepl_allow(link text, tables text[]) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_variable
DECLARE
    changed onerepl.link := onerepl.get_link(link, 'central');
BEGIN
    PERFORM onerepl.lock_central(changed.id);
    PERFORM onerepl.allow(changed.id, tables);
    PERFORM onerepl.reach_changed();
    PERFORM onerepl.write_journal(1, changed.id, 'P18', format('link "%s" may write %s, too; allowed by %s', changed.name,
                                                               array_to_string(tables, ', '), session_user));
END $$;
COMMENT ON FUNCTION onerepl_allow(text, text[]) IS
'Lets a link write more tables and sequences of this central, beside those that it may write already.
A partitioned table means its partitions, too, and a table the sequences of its columns.
Never reached, whatever is said, are the schemas onerepl, pg_catalog, information_schema and pg_toast, and temporary tables; nor is
what belongs to an extension, unless it is named itself.
Records that failed for it are written after onerepl_resolve with ''retry''.
  link: name of the link.
  tables: ''schema.table'', ''schema.*'' for all of a schema, those that are made later included, or ''*'' for everything; quoted as in
    SQL. They are names here, after onerepl_set_target.
Errors: 42704 when there is no such link; 55000 when this database is not its central; 22023 when an entry names no table, or a schema
    that is never reached.
See: docs/security.md, onerepl_forbid, P18';

CREATE FUNCTION onerepl_forbid(link text, tables text[]) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_variable
DECLARE
    changed onerepl.link := onerepl.get_link(link, 'central');
    entry text;
BEGIN
    PERFORM onerepl.lock_central(changed.id);
    FOREACH entry IN ARRAY tables LOOP
        DELETE FROM onerepl.allowed AS a USING onerepl.read_allowed(entry) AS r
            WHERE a.link = changed.id AND a.schema = r.schema AND a.name = r.name;
        IF NOT FOUND THEN
            RAISE EXCEPTION 'link "%" has not "%" in its list', changed.name, entry USING
                ERRCODE = 'undefined_object', DETAIL = format('It may write: %s.', array_to_string(onerepl.allowed_list(changed.id), ', ')),
                HINT = 'An entry is taken back as it was given; a schema or * has no exceptions.';
        END IF;
    END LOOP;
    PERFORM onerepl.reach_changed();
    PERFORM onerepl.write_journal(1, changed.id, 'P18', format('link "%s" may no longer write %s; forbidden by %s', changed.name,
                                                               array_to_string(tables, ', '), session_user));
END $$;
COMMENT ON FUNCTION onerepl_forbid(text, text[]) IS
'Takes back entries of what a link may write, as onerepl_allow or onerepl_add_remote got them.
What comes for these tables fails from then on (state F). Their rows stay, and the tables stay read-only as long as the link is there.
  link: name of the link.
  tables: the entries, each as it was given; a schema or ''*'' has no exceptions.
Errors: 42704 when there is no such link, or no such entry; 55000 when this database is not its central; 22023 when an entry names no
    table.
See: docs/security.md, onerepl_allow, P18';

-- ------------------------------------------------------------------ the decision

CREATE FUNCTION onerepl.is_named(link int, schema text, name text, itself bool DEFAULT false) RETURNS bool
    LANGUAGE sql STABLE
    SET search_path = pg_catalog, pg_temp AS $$
    SELECT EXISTS (SELECT FROM onerepl.allowed AS a
                   WHERE a.link = is_named.link
                     AND (a.schema = is_named.schema AND (a.name = is_named.name OR a.name = '' AND NOT itself) OR a.schema = '' AND NOT itself))
$$;
COMMENT ON FUNCTION onerepl.is_named(int, text, text, bool) IS
'Whether a link''s list has a name, or (not itself) all of its schema. Without a name: whether it has all of the schema.';

CREATE FUNCTION onerepl.above(relation oid) RETURNS oid[]
    LANGUAGE sql STABLE
    SET search_path = pg_catalog, pg_temp AS $$
    WITH RECURSIVE above (relation) AS (
        SELECT above.relation
        UNION
        SELECT i.inhparent FROM above AS a JOIN pg_class AS c ON c.oid = a.relation AND c.relispartition JOIN pg_inherits AS i ON i.inhrelid = c.oid
    ) SELECT array_agg(a.relation) FROM above AS a
$$;
COMMENT ON FUNCTION onerepl.above(oid) IS 'A relation and all that it is a partition of.';

CREATE FUNCTION onerepl.below(relation oid) RETURNS oid[]
    LANGUAGE sql STABLE
    SET search_path = pg_catalog, pg_temp AS $$
    WITH RECURSIVE below (relation) AS (
        SELECT below.relation
        UNION
        SELECT i.inhrelid FROM below AS b JOIN pg_inherits AS i ON i.inhparent = b.relation
    ) SELECT array_agg(b.relation) FROM below AS b
$$;
COMMENT ON FUNCTION onerepl.below(oid) IS 'A relation, its partitions and what inherits from it.';

CREATE FUNCTION onerepl.why_never_reached(link int, relation oid) RETURNS text
    LANGUAGE sql STABLE
    SET search_path = pg_catalog, pg_temp AS $$
    SELECT CASE
        WHEN onerepl.is_ours_alone(n.nspname) OR c.oid < 16384 OR c.relpersistence = 't' OR e.extname = 'onerepl'
            THEN 'What is in schemas of onerepl and of the system, and what is temporary, is never written for a link.'
        WHEN e.extname IS NOT NULL AND NOT onerepl.is_named(link, n.nspname, c.relname, true)
            THEN format('It belongs to extension %s, and the list of the link does not name it by itself.', e.extname)
        WHEN c.relkind = 'f' AND NOT c.relispartition
            THEN 'It is a foreign table, and no partition of a table that the link may write.' END
    FROM pg_class AS c
    JOIN pg_namespace AS n ON n.oid = c.relnamespace
    LEFT JOIN pg_depend AS d ON d.classid = 'pg_class'::regclass AND d.objid = c.oid AND d.deptype = 'e' AND d.refclassid = 'pg_extension'::regclass
    LEFT JOIN pg_extension AS e ON e.oid = d.refobjid
    WHERE c.oid = why_never_reached.relation
$$;
COMMENT ON FUNCTION onerepl.why_never_reached(int, oid) IS 'Why a relation is never written for a link, though the list of the link may have its name; null: it may be.';

CREATE FUNCTION onerepl.why_through_mapping_only(link int, relation oid, has_place bool, has_branch bool) RETURNS text
    LANGUAGE sql STABLE
    SET search_path = pg_catalog, pg_temp AS $$
    SELECT r.reason FROM (
        SELECT CASE WHEN t.branch IS NULL THEN format('Rows of the remote''s table %s come to %s by a mapping of link "%s", and only so.',
                                                      concat_ws('.', t.remote_schema, t.remote_table), onerepl.qualified_name(c.oid), l.name)
                    ELSE format('Table %s is one for several remotes, and tells them apart by column %I.', onerepl.qualified_name(c.oid), t.branch_column) END
        FROM pg_class AS c
        JOIN pg_namespace AS n ON n.oid = c.relnamespace
        JOIN onerepl.target AS t ON t.schema = n.nspname AND coalesce(t.name, t.remote_table) IN ('', c.relname)
        JOIN onerepl.link AS l ON l.id = t.link
        WHERE c.oid = ANY (onerepl.above(why_through_mapping_only.relation) || onerepl.below(why_through_mapping_only.relation))
          AND (t.branch IS NOT NULL AND NOT has_branch OR t.remote_table <> '' AND NOT has_place)
          -- Of a schema: not the tables that the same link has placed by themselves.
          AND NOT (t.remote_table = '' AND EXISTS (SELECT FROM onerepl.target AS o WHERE o.link = t.link AND o.remote_schema = t.remote_schema
                                                                                      AND o.remote_table = c.relname))
        UNION ALL
        SELECT format('Link "%s" writes %s.', l.name, g.relation)
        FROM onerepl.guarded AS g JOIN onerepl.link AS l ON l.id = g.link
        WHERE g.relation = ANY (onerepl.below(why_through_mapping_only.relation)::regclass[]) AND g.link <> why_through_mapping_only.link AND NOT has_place
        UNION ALL
        SELECT format('Link "%s" sets it.', l.name)
        FROM onerepl.sequence_state AS s JOIN onerepl.link AS l ON l.id = s.link
        WHERE s.link <> why_through_mapping_only.link AND NOT has_place
          AND (SELECT c.relkind FROM pg_class AS c WHERE c.oid = why_through_mapping_only.relation) = 'S'
          AND to_regclass(onerepl.sequence_here(s.link, s.schema, s.name)) = why_through_mapping_only.relation
    ) AS r (reason)
    LIMIT 1
$$;
COMMENT ON FUNCTION onerepl.why_through_mapping_only(int, oid, bool, bool) IS
'Why a link reaches a table by a mapping only (onerepl_set_target), and has none, or none that tells the branch: the table, '
'what it is a part of, or a part of it, is the target of a mapping, or another link writes it. null: nothing stands in the way.';

CREATE FUNCTION onerepl.is_placed(link int, schema text, name text) RETURNS bool
    LANGUAGE sql STABLE
    SET search_path = pg_catalog, pg_temp AS $$
    SELECT EXISTS (SELECT FROM onerepl.target AS t WHERE t.link = is_placed.link AND t.branch IS NULL AND t.schema = is_placed.schema
                                                         AND coalesce(t.name, t.remote_table) IN ('', is_placed.name))
$$;
COMMENT ON FUNCTION onerepl.is_placed(int, text, text) IS 'Whether a mapping of the link leads to a table here, and to all of its rows.';

CREATE FUNCTION onerepl.owner_of_sequence(sequence oid) RETURNS oid
    LANGUAGE sql STABLE
    SET search_path = pg_catalog, pg_temp AS $$
    SELECT d.refobjid FROM pg_depend AS d JOIN pg_class AS c ON c.oid = d.objid AND c.relkind = 'S'
    WHERE d.classid = 'pg_class'::regclass AND d.objid = owner_of_sequence.sequence AND d.refclassid = 'pg_class'::regclass
      AND d.refobjsubid > 0 AND d.deptype IN ('a', 'i')
$$;
COMMENT ON FUNCTION onerepl.owner_of_sequence(oid) IS 'The table whose column a sequence belongs to; null: it belongs to none, or is no sequence.';

CREATE FUNCTION onerepl.hint_to_allow(link int, schema text, name text) RETURNS text
    LANGUAGE sql STABLE
    SET search_path = pg_catalog, pg_temp AS $$
    SELECT format('If the link shall write it: SELECT onerepl_allow(%L, %L); then resolve the record with ''retry''.',
                  l.name, ARRAY[onerepl.allowed_text(hint_to_allow.schema, hint_to_allow.name)])
    FROM onerepl.link AS l WHERE l.id = hint_to_allow.link
$$;
COMMENT ON FUNCTION onerepl.hint_to_allow(int, text, text) IS 'How the administrator lets a link write something.';

CREATE FUNCTION onerepl.hint_to_ask() RETURNS text
    LANGUAGE sql IMMUTABLE
    SET search_path = pg_catalog, pg_temp AS $$ SELECT 'Resolve the record with ''skip'', and ask who has the secret of this link.' $$;
COMMENT ON FUNCTION onerepl.hint_to_ask() IS 'What he does about something that no link writes.';

CREATE FUNCTION onerepl.why_out_of_reach(link int, relation oid, schema text, name text, has_place bool, has_branch bool,
                                         OUT reason text, OUT hint text)
    LANGUAGE plpgsql STABLE
    SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_variable
-- Not SQL: its plans are kept.
DECLARE
    above oid[] := onerepl.above(relation);
    owner record;
BEGIN
    -- A sequence goes with its table.
    SELECT c.oid, n.nspname AS schema, c.relname AS name,
           onerepl.is_placed(link, n.nspname, c.relname) AS has_place INTO owner
        FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace WHERE c.oid = onerepl.owner_of_sequence(relation);
    IF owner.oid IS NOT NULL AND onerepl.why_never_reached(link, relation) IS NULL THEN
        SELECT r.reason, r.hint INTO reason, hint
            FROM onerepl.why_out_of_reach(link, owner.oid, owner.schema, owner.name, owner.has_place, false) AS r;
        reason := format('It belongs to table %I.%I. ', owner.schema, owner.name) || reason;
        RETURN;
    END IF;
    hint := onerepl.hint_to_allow(link, schema, name);
    reason := onerepl.why_never_reached(link, relation);
    IF reason IS NULL AND onerepl.is_ours_alone(schema) THEN
        reason := format('Nothing in schema %I is ever written for a link.', schema);
    END IF;
    IF reason IS NOT NULL THEN
        hint := CASE WHEN reason LIKE '%by itself.' THEN hint ELSE onerepl.hint_to_ask() END;
        RETURN;
    END IF;
    -- A foreign table is reached as a partition only.
    IF NOT onerepl.is_named(link, schema, name)
       AND NOT EXISTS (SELECT FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
                       WHERE c.oid = ANY (above) AND c.relkind <> 'f' AND onerepl.is_named(link, n.nspname, c.relname))
    THEN
        reason := format('The list of the link does not name it: %s.',
                         coalesce(nullif(array_to_string(onerepl.allowed_list(link), ', '), ''), 'it is empty'));
        RETURN;
    END IF;
    reason := onerepl.why_through_mapping_only(link, relation, has_place, has_branch);
    IF reason IS NOT NULL THEN
        hint := 'If the link shall write it: onerepl_set_target says which rows of which table of the remote go there; then resolve the record with ''retry''.';
    END IF;
END $$;
COMMENT ON FUNCTION onerepl.why_out_of_reach(int, oid, text, text, bool, bool) IS
'P18: why a link may not write a table here, and what its administrator does about that; reason null: it may. The only place '
'that decides. relation: the table that has the name here; 0 if there is none, then its name decides. has_place, has_branch: '
'the description comes to it by a mapping (onerepl_set_target), and to rows of a branch only.';

CREATE FUNCTION onerepl.why_schema_out_of_reach(link int, schema text, OUT reason text, OUT hint text)
    LANGUAGE sql STABLE
    SET search_path = pg_catalog, pg_temp AS $$
    SELECT CASE WHEN onerepl.is_ours_alone(schema) THEN format('Nothing in schema %I is ever written for a link.', schema)
                ELSE 'The list of the link does not name all of it.' END,
           CASE WHEN onerepl.is_ours_alone(schema) THEN onerepl.hint_to_ask() ELSE onerepl.hint_to_allow(link, schema, '') END
    WHERE onerepl.is_ours_alone(schema) OR NOT onerepl.is_named(link, schema, '')
$$;
COMMENT ON FUNCTION onerepl.why_schema_out_of_reach(int, text) IS 'The same for all of a schema, which is to get another name.';

-- ------------------------------------------------------------------ statements that are executed for a link

CREATE FUNCTION onerepl.telling_link() RETURNS int
    LANGUAGE c AS 'MODULE_PATHNAME', 'onerepl_telling_link'
    SET search_path = pg_catalog, pg_temp;
COMMENT ON FUNCTION onerepl.telling_link() IS 'The link whose remote has told of the statement that this session executes; null: nobody''s (src/apply/told_reach.h).';

CREATE FUNCTION onerepl.may_be_dropped(relation oid) RETURNS bool
    LANGUAGE c STRICT AS 'MODULE_PATHNAME', 'onerepl_may_be_dropped'
    SET search_path = pg_catalog, pg_temp;
COMMENT ON FUNCTION onerepl.may_be_dropped(oid) IS
'Whether the statement names the relation, which is in reach, to drop it: what it is a partition of cannot be seen any more.';

CREATE FUNCTION onerepl.refuse_told(link int, what text, reason text, hint text) RETURNS void
    LANGUAGE plpgsql STABLE
    SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RAISE EXCEPTION 'link "%" may not change %', (SELECT l.name FROM onerepl.link AS l WHERE l.id = refuse_told.link), what USING
        ERRCODE = 'insufficient_privilege', DETAIL = reason, HINT = hint;
END $$;
COMMENT ON FUNCTION onerepl.refuse_told(int, text, text, text) IS 'Raises 42501.';

CREATE FUNCTION onerepl.check_told_name(link int, relation oid, schema text, name text) RETURNS void
    LANGUAGE sql STABLE
    SET search_path = pg_catalog, pg_temp AS $$
    SELECT onerepl.refuse_told(link, format('%I.%I', schema, name), r.reason, r.hint)
    FROM onerepl.why_out_of_reach(link, relation, schema, name, onerepl.is_placed(link, schema, name), false) AS r
    WHERE r.reason IS NOT NULL
$$;
COMMENT ON FUNCTION onerepl.check_told_name(int, oid, text, text) IS 'Errors: 42501 if a told statement may not touch a table; relation 0: that is no more.';

CREATE FUNCTION onerepl.check_told_table(link int, relation oid) RETURNS void
    LANGUAGE sql STABLE
    SET search_path = pg_catalog, pg_temp AS $$
    SELECT onerepl.check_told_name(link, c.oid, n.nspname, c.relname)
    FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
    WHERE c.oid = coalesce((SELECT i.indrelid FROM pg_index AS i WHERE i.indexrelid = relation), relation) AND c.relkind IN ('r', 'p', 'f', 'S')
$$;
COMMENT ON FUNCTION onerepl.check_told_table(int, oid) IS 'Errors: 42501 if a told statement may not touch a table, the table of an index, or a sequence.';

CREATE FUNCTION onerepl.check_told_schema(link int, schema text) RETURNS void
    LANGUAGE sql STABLE
    SET search_path = pg_catalog, pg_temp AS $$
    SELECT onerepl.refuse_told(link, format('all of schema %I', schema), r.reason, r.hint)
    FROM onerepl.why_schema_out_of_reach(link, schema) AS r WHERE r.reason IS NOT NULL
$$;
COMMENT ON FUNCTION onerepl.check_told_schema(int, text) IS 'Errors: 42501 unless the link may write everything in a schema.';

CREATE FUNCTION onerepl.check_told_commands() RETURNS event_trigger
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
    link int := onerepl.telling_link();
BEGIN
    IF link IS NULL THEN
        RETURN;
    END IF;
    PERFORM onerepl.check_told_table(link, onerepl.table_of(d.classid, d.objid))
    FROM pg_event_trigger_ddl_commands() AS d WHERE NOT d.in_extension;
    -- What it was made a part of.
    PERFORM onerepl.check_told_table(link, i.inhparent)
    FROM pg_event_trigger_ddl_commands() AS d JOIN pg_inherits AS i ON i.inhrelid = d.objid
    WHERE d.classid = 'pg_class'::regclass AND d.command_tag = 'CREATE TABLE' AND NOT d.in_extension;
END $$;
COMMENT ON FUNCTION onerepl.check_told_commands() IS
'For an event trigger: a statement of a remote that is executed here touches no table that its link may not write (P18).';

CREATE FUNCTION onerepl.check_told_drops() RETURNS event_trigger
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path = pg_catalog, pg_temp SET jit = off AS $$
DECLARE
    link int := onerepl.telling_link();
BEGIN
    IF link IS NULL THEN
        RETURN;
    END IF;
    -- A partition is a part of the table that is dropped, which was looked at.
    PERFORM onerepl.check_told_name(link, 0, d.schema_name, d.object_name)
    FROM pg_event_trigger_dropped_objects() AS d
    WHERE (d.object_type IN ('table', 'foreign table') AND (d.original OR d.normal OR tg_tag NOT IN ('DROP TABLE', 'DROP FOREIGN TABLE'))
           OR d.object_type = 'sequence' AND d.original)
      AND NOT onerepl.may_be_dropped(d.objid);
    PERFORM onerepl.check_told_table(link, onerepl.table_at(d.address_names))
    FROM pg_event_trigger_dropped_objects() AS d
    WHERE d.original AND d.object_type IN ('trigger', 'rule', 'policy', 'table constraint', 'default value', 'table column');
END $$;
COMMENT ON FUNCTION onerepl.check_told_drops() IS
'For an event trigger: a statement of a remote that is executed here drops nothing of a table that its link may not write (P18).';

-- In front of "!onerepl_schema": what is refused has nothing to be recorded.
CREATE EVENT TRIGGER "!onerepl_reach" ON ddl_command_end EXECUTE FUNCTION onerepl.check_told_commands();
ALTER EVENT TRIGGER "!onerepl_reach" ENABLE ALWAYS;
CREATE EVENT TRIGGER "!onerepl_reach_drop" ON sql_drop EXECUTE FUNCTION onerepl.check_told_drops();
ALTER EVENT TRIGGER "!onerepl_reach_drop" ENABLE ALWAYS;
