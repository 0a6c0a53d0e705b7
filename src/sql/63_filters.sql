-- Functions for what a link gets of a table (the remote), and where it goes (the central).
CREATE FUNCTION onerepl.column_shapes(relation regclass) RETURNS TABLE (name name, shape text)
    LANGUAGE sql STABLE
    SET search_path = pg_catalog, pg_temp AS $$
    SELECT a.attname, format('%s %s %s %s', a.attname, a.atttypid, a.attcollation, a.attgenerated) FROM pg_attribute AS a
    WHERE a.attrelid = column_shapes.relation AND a.attnum > 0 AND NOT a.attisdropped
$$;
COMMENT ON FUNCTION onerepl.column_shapes(regclass) IS
'The columns of a table, and what a filter that uses them depends on: name, type, collation, generated or not.';

CREATE FUNCTION onerepl.check_row_filter(relation regclass, rows text) RETURNS name[]
    LANGUAGE c STRICT AS 'MODULE_PATHNAME', 'onerepl_check_row_filter'
    SET search_path = pg_catalog, pg_temp;
COMMENT ON FUNCTION onerepl.check_row_filter(regclass, text) IS
'The columns that a row filter looks at. Raises an error unless it is one boolean expression over the table''s columns, '
'immutable, that looks nowhere else. With the rights of the table''s owner, as it is evaluated later.';

CREATE FUNCTION onerepl.refuse_virtual(relation regclass, columns text[], detail text, hint text) RETURNS void
    LANGUAGE plpgsql STABLE
    SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    wrong text := (SELECT a.attname FROM pg_attribute AS a
                   WHERE a.attrelid = refuse_virtual.relation AND a.attname = ANY (columns) AND a.attgenerated = 'v' AND NOT a.attisdropped LIMIT 1);
BEGIN
    IF wrong IS NOT NULL THEN
        RAISE EXCEPTION 'column "%" of table % is a virtual generated column', wrong, relation USING
            ERRCODE = 'feature_not_supported', DETAIL = refuse_virtual.detail, HINT = refuse_virtual.hint;
    END IF;
END $$;
COMMENT ON FUNCTION onerepl.refuse_virtual(regclass, text[], text, text) IS
'Error 0A000 if one of the columns is a virtual generated one, which is not in the row: it would be looked at as null.';

CREATE FUNCTION onerepl.check_filter(relation regclass, rows text, columns text[]) RETURNS text[]
    LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp
    SET client_min_messages = warning AS $$
#variable_conflict use_variable
DECLARE
    wrong text;
    uses text[];
BEGIN
    SELECT c.name INTO wrong FROM unnest(columns) AS c (name)
        WHERE NOT EXISTS (SELECT FROM pg_attribute AS a
                          WHERE a.attrelid = relation AND a.attname = c.name AND a.attnum > 0 AND NOT a.attisdropped)
        LIMIT 1;
    IF wrong IS NOT NULL THEN
        RAISE EXCEPTION 'table % has no column "%"', relation, wrong USING ERRCODE = 'undefined_column';
    END IF;
    IF columns IS NOT NULL AND NOT EXISTS (SELECT FROM pg_index AS i WHERE i.indrelid = relation AND (i.indisprimary OR i.indisreplident)) THEN
        RAISE EXCEPTION 'table % has no key', relation USING
            ERRCODE = 'feature_not_supported', DETAIL = 'The central finds its rows by all their columns, so all must travel.',
            HINT = 'Give it a primary key, or a replica identity, first.';
    END IF;
    PERFORM onerepl.refuse_virtual(relation, columns, 'It does not travel.',
        'Name the columns that it is made of; the central can compute it as well.');
    IF rows IS NULL THEN
        RETURN '{}';
    END IF;
    uses := onerepl.check_row_filter(relation, rows);
    PERFORM onerepl.refuse_virtual(relation, uses, 'A row is filtered as it is stored, and the column is not.',
        'Write its expression into the condition.');
    RETURN ARRAY(SELECT c.shape FROM onerepl.column_shapes(relation) AS c WHERE c.name = ANY (uses) ORDER BY c.name);
END $$;
COMMENT ON FUNCTION onerepl.check_filter(regclass, text, text[]) IS
'Raises an error unless a table can be filtered so: unknown columns, no key, or a condition that is none, is not immutable, '
'looks elsewhere, or at a virtual generated column. Returns the shapes of the columns that the condition uses.';

CREATE FUNCTION onerepl.check_filters(relation regclass) RETURNS void
    LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    used record;
BEGIN
    FOR used IN
        -- A condition whose columns are as they were is not broken by what was done to the table: if it is broken (its function is
        -- gone), that must not stand in the way of its repair, nor of anything else.
        SELECT l.name, f.columns,
               CASE WHEN NOT f.uses <@ ARRAY(SELECT c.shape FROM onerepl.column_shapes(check_filters.relation) AS c) THEN f.rows END AS rows
        FROM onerepl.filter AS f JOIN onerepl.link AS l ON l.id = f.link
        WHERE f.relation = check_filters.relation AND f.newest
    LOOP
        BEGIN
            PERFORM onerepl.check_filter(check_filters.relation, used.rows, used.columns);
        EXCEPTION WHEN OTHERS THEN
            RAISE EXCEPTION 'the filter of table % on link "%" does not allow this change', check_filters.relation, used.name USING
                ERRCODE = 'dependent_objects_still_exist', DETAIL = SQLERRM, HINT = 'Change the filter with onerepl_set_filter first.';
        END;
    END LOOP;
END $$;
COMMENT ON FUNCTION onerepl.check_filters(regclass) IS 'Error 2BP01 if a filter of a table that was altered no longer works.';

CREATE FUNCTION onerepl.note_filters(relation regclass) RETURNS void
    LANGUAGE sql
    SET search_path = pg_catalog, pg_temp AS $$
    WITH other AS (
        UPDATE onerepl.filter AS f SET uses = onerepl.check_filter(f.relation, f.rows, f.columns)
            WHERE f.relation = note_filters.relation AND f.newest
              AND NOT f.uses <@ ARRAY(SELECT c.shape FROM onerepl.column_shapes(note_filters.relation) AS c)
            RETURNING f.link
    )
    UPDATE onerepl.checked AS c SET rewritten = true WHERE c.relation = note_filters.relation AND EXISTS (SELECT FROM other)
$$;
COMMENT ON FUNCTION onerepl.note_filters(regclass) IS
'Notes for the self-check that a filter works still, but may mean something else: a column that it looks at has got another '
'type or collation (P21).';

CREATE FUNCTION onerepl_set_filter(link text, relation regclass, rows text DEFAULT NULL, columns text[] DEFAULT NULL,
                                   refresh text DEFAULT 'repair') RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_variable
DECLARE
    to_central onerepl.link := onerepl.get_link(link, 'remote');
    wanted onerepl.refresh;
    uses text[];
BEGIN
    IF NOT EXISTS (SELECT FROM onerepl.tracked AS t WHERE t.relation = relation) THEN
        RAISE EXCEPTION 'table % is not tracked', relation USING
            ERRCODE = 'object_not_in_prerequisite_state', HINT = 'Call onerepl_add_table first. Of partitions, name the table that they belong to.';
    END IF;
    IF refresh IS NOT NULL AND refresh NOT IN ('empty', 'repair') THEN
        RAISE EXCEPTION 'unknown refresh "%"', refresh USING
            ERRCODE = 'invalid_parameter_value', HINT = 'Use ''empty'', ''repair'' or null.';
    END IF;
    uses := onerepl.check_filter(relation, rows, columns);
    -- First: the old one may be broken, and must not be asked about the trigger.
    UPDATE onerepl.filter AS f SET newest = false WHERE f.link = to_central.id AND f.relation = relation AND f.newest;
    -- Waits for writers, and lets all who come later know that whole rows are wanted.
    PERFORM onerepl.create_trigger(relation, '!onerepl_capture');
    PERFORM onerepl.hold_numbering();
    DELETE FROM onerepl.filter AS f USING onerepl.filter AS g
        WHERE f.link = to_central.id AND f.relation = relation AND g.link = f.link AND g.relation = f.relation
          -- A read point may lead back to the first number.
          AND g.id > f.id AND g.after < onerepl.first_number()
          -- Under which a refresh at work has described the table.
          AND NOT EXISTS (SELECT FROM onerepl.refresh AS r WHERE r.link = f.link AND r.relation = f.relation
                          AND r.state IN ('waiting', 'running', 'paused', 'sent', 'cancelling'));
    INSERT INTO onerepl.filter (link, relation, rows, columns, uses, after, owner)
        SELECT to_central.id, relation, rows, columns, uses, h.last, (SELECT pg_get_userbyid(c.relowner) FROM pg_class AS c WHERE c.oid = relation)
        FROM onerepl.identity_at_last() AS h;
    PERFORM onerepl.write_journal(1, to_central.id, 'P17', format('of table %s link "%s" gets %s, %s; set by %s', relation, link,
        CASE WHEN rows IS NULL THEN 'all rows' ELSE 'rows with ' || rows END,
        CASE WHEN columns IS NULL THEN 'all columns' ELSE 'the key and ' || array_to_string(columns, ', ') END, session_user));
    IF refresh IS NOT NULL THEN
        wanted.method := refresh;
        wanted.chunk_rows := 20000;
        PERFORM onerepl.request_refreshes(link, relation, wanted);
    END IF;
    PERFORM onerepl.wake_at_commit(true, false);
END $$;
COMMENT ON FUNCTION onerepl_set_filter(text, regclass, text, text[], text) IS
'Says what a link gets of a tracked table: only rows that fulfil a condition, only some columns, or everything again.
Where an update moves a row into the condition or out of it, the central gets an insert or a delete. Numbers that mean nothing to the
link are skipped. TRUNCATE is sent in any case. Refreshes and verifications of the table on this link respect the filter.
As long as a link has a condition, changes of the table are logged with the whole row as it was and as it is.
The condition is evaluated with the rights of the table''s owner. ALTER TABLE that would break it is refused.
It waits for writers of the table.
  link: name of the link.
  relation: the table.
  rows: the condition, SQL over the columns of the table, immutable, as the predicate of an index; functions that are not
    PostgreSQL''s own with their schema; no virtual generated columns. null (default): all rows.
  columns: the columns beside those of the key, no virtual generated ones; the central''s table needs no others. null (default): all.
  refresh: ''repair'' (default) or ''empty'': the central''s table is made right by such a refresh; null: it is right already, and you
    answer for that.
Errors: 42704 when there is no such link; 55000 when this database is not its remote, or the table is not tracked; 42703 when there
    is no such column; 0A000 when a column list has no key, or a condition looks elsewhere; 42P17 when a condition is not immutable;
    22023 when refresh is unknown; 55006 when the table is being refreshed already; and what the condition''s own faults raise.
See: docs/filters.md, onerepl_refresh, P17';

CREATE FUNCTION onerepl_set_target(link text, remote_schema text, remote_table text DEFAULT NULL, schema text DEFAULT NULL,
                                   name text DEFAULT NULL, branch_column text DEFAULT NULL, branch text DEFAULT NULL) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_variable
DECLARE
    changed onerepl.link := onerepl.get_link(link, 'central');
BEGIN
    IF remote_schema IS NULL OR (branch_column IS NULL) <> (branch IS NULL) OR (name IS NOT NULL AND remote_table IS NULL) THEN
        RAISE EXCEPTION 'a schema, a table for a name, and a branch with its column must be given together' USING
            ERRCODE = 'invalid_parameter_value';
    END IF;
    IF EXISTS (SELECT FROM onerepl.target AS t
               WHERE t.link <> changed.id AND t.schema = coalesce(schema, remote_schema) AND t.branch_column = branch_column AND t.branch = branch
                 AND (coalesce(t.name, t.remote_table) = '' OR coalesce(name, remote_table, '') IN ('', coalesce(t.name, t.remote_table))))
    THEN
        RAISE EXCEPTION 'rows with % = % are those of another link', branch_column, branch USING
            ERRCODE = 'duplicate_object', HINT = 'Give each link a branch of its own.';
    END IF;
    PERFORM onerepl.lock_central(changed.id);
    DELETE FROM onerepl.target AS t
        WHERE t.link = changed.id AND t.remote_schema = remote_schema AND t.remote_table = coalesce(remote_table, '');
    IF schema IS NOT NULL OR name IS NOT NULL OR branch IS NOT NULL THEN
        INSERT INTO onerepl.target (link, remote_schema, remote_table, schema, name, branch_column, branch)
            VALUES (changed.id, remote_schema, coalesce(remote_table, ''), coalesce(schema, remote_schema), name, branch_column, branch);
    END IF;
    PERFORM onerepl.reach_changed();
    PERFORM onerepl.write_journal(1, changed.id, 'P17', format('%s of link "%s" goes to %s%s, set by %s',
        concat_ws('.', remote_schema, coalesce(remote_table, '*')), link,
        concat_ws('.', coalesce(schema, remote_schema), coalesce(name, remote_table, '*')),
        coalesce(format(' with %s = %s', branch_column, branch), ''), session_user));
END $$;
COMMENT ON FUNCTION onerepl_set_target(text, text, text, text, text, text, text) IS
'Says on the central where the rows of a remote''s table go, if not to the table of the same name.
With schema, name and branch all null they go to the table of the same name again. Set it before the first row comes.
No ALTER TABLE of the remote is executed on a table that is called otherwise here.
A table to which a mapping leads is reached by a mapping only, whatever the list of another link says (P18).
  link: name of the link.
  remote_schema: the schema at the remote.
  remote_table: the table at the remote; null (default): all tables of the schema.
  schema: the schema here; null (default): the one of the same name.
  name: the table here; null (default): the one of the same name.
  branch_column: for a table of several remotes: the column that says whose row it is. It must belong to the key of the table here,
    with the columns of the remote''s key. What this link sends, TRUNCATE, refreshes and verifications included, reaches its own rows
    only. Where a unique index has not that column, a refresh may meet a value that another remote''s row has: that is a failure,
    which ''overwrite'' resolves by deleting the other row. null (default): the table is not shared.
  branch: the value that branch_column has in all rows of this link; null (default) if and only if branch_column is null.
Errors: 42704 when there is no such link; 55000 when this database is not its central; 22023 when arguments do not belong together;
    42710 when another link has that branch there.
See: docs/filters.md, onerepl_allow, P18';
