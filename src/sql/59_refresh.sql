-- Refreshes: the administrator's functions and views.

CREATE FUNCTION onerepl.key_columns(relation regclass) RETURNS int
    LANGUAGE sql STABLE
    SET search_path = pg_catalog, pg_temp AS $$
    SELECT coalesce((SELECT i.indnkeyatts::int FROM pg_index AS i
                     WHERE i.indrelid = key_columns.relation AND i.indisvalid AND i.indimmediate AND (i.indisprimary OR i.indisreplident)
                     ORDER BY i.indisprimary DESC LIMIT 1), 0)
$$;
COMMENT ON FUNCTION onerepl.key_columns(regclass) IS
'Of how many columns the key is that onerepl knows a table''s rows by, primary key or replica identity; 0: it has none.';

CREATE FUNCTION onerepl.key_shape(relation oid) RETURNS text
    LANGUAGE sql STABLE
    SET search_path = pg_catalog, pg_temp AS $$
    SELECT string_agg(format('%s:%s:%s', a.attnum, a.atttypid, a.attcollation), ' ' ORDER BY k.place)
    FROM (SELECT i.indkey, i.indnkeyatts FROM pg_index AS i
          WHERE i.indrelid = key_shape.relation AND i.indisvalid AND i.indimmediate AND (i.indisprimary OR i.indisreplident)
          ORDER BY i.indisprimary DESC LIMIT 1) AS i,
         unnest(i.indkey) WITH ORDINALITY AS k (attnum, place)
    JOIN pg_attribute AS a ON a.attrelid = key_shape.relation AND a.attnum = k.attnum
    WHERE k.place <= i.indnkeyatts
$$;
COMMENT ON FUNCTION onerepl.key_shape(oid) IS
'What a remembered key of a table means: its columns, their types and collations. A key that was remembered under one shape '
'says nothing under another (P21). Null: the table has no key.';

CREATE FUNCTION onerepl.estimate_rows(relation regclass) RETURNS int8
    LANGUAGE c STRICT AS 'MODULE_PATHNAME', 'onerepl_estimate_rows'
    SET search_path = pg_catalog, pg_temp;
COMMENT ON FUNCTION onerepl.estimate_rows(regclass) IS 'How many rows a table has, as the planner guesses it, also if it was never analyzed.';

CREATE FUNCTION onerepl.request_refresh(link onerepl.link, relation regclass, wanted onerepl.refresh) RETURNS int
    LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_variable
DECLARE
    member record;
    known int8;
    requested int := 0;
BEGIN
    FOR member IN
        SELECT m.root AS relation, onerepl.qualified_name(m.root) AS name, onerepl.key_columns(m.root) AS key_columns
        FROM onerepl.tracked_member AS m WHERE m.relation = request_refresh.relation
    LOOP
        SELECT r.id INTO known FROM onerepl.refresh AS r
            WHERE r.link = link.id AND r.relation = member.relation AND r.state IN ('waiting', 'running', 'paused', 'sent', 'cancelling');
        IF known IS NOT NULL THEN
            RAISE EXCEPTION 'table % is being refreshed already', member.name USING
                ERRCODE = 'object_in_use',
                HINT = format('Wait for its end, or call onerepl_refresh_cancel(%L, %L).', link.name, member.name);
        END IF;
        INSERT INTO onerepl.refresh (link, relation, name, method, chunk_rows, start_at, rows_per_second, bytes_per_second, priority,
                                     key_from, key_to, with_rows, key_shape, one_snapshot, rows_estimate)
            VALUES (link.id, member.relation, member.name, wanted.method, wanted.chunk_rows, wanted.start_at, wanted.rows_per_second,
                    wanted.bytes_per_second, coalesce(wanted.priority, 0), wanted.key_from, wanted.key_to, coalesce(wanted.with_rows, false),
                    onerepl.key_shape(member.relation),
                    coalesce(wanted.one_snapshot, false) OR member.key_columns = 0,
                    CASE WHEN wanted.key_from IS NULL AND wanted.key_to IS NULL THEN onerepl.estimate_rows(member.relation) END);
        requested := requested + 1;
    END LOOP;
    RETURN requested;
END $$;
COMMENT ON FUNCTION onerepl.request_refresh(onerepl.link, regclass, onerepl.refresh) IS
'onerepl_refresh for one tracked table, which is also what a partition of it stands for; returns for how many tables.';

CREATE FUNCTION onerepl.check_request(relation regclass, wanted onerepl.refresh) RETURNS void
    LANGUAGE plpgsql STABLE
    SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_variable
DECLARE
    key_columns int := onerepl.key_columns(relation);
BEGIN
    IF wanted.chunk_rows IS NULL OR wanted.chunk_rows <= 0 OR wanted.rows_per_second <= 0 OR wanted.bytes_per_second <= 0 THEN
        RAISE EXCEPTION 'chunk_rows, rows_per_second and bytes_per_second must be greater than zero' USING
            ERRCODE = 'invalid_parameter_value';
    END IF;
    IF relation IS NOT NULL AND NOT EXISTS (SELECT FROM onerepl.tracked_member AS m WHERE m.relation = relation::oid) THEN
        RAISE EXCEPTION 'table % is not tracked', relation USING
            ERRCODE = 'object_not_in_prerequisite_state', HINT = 'Call onerepl_add_table first, or with initial => ''refresh''.';
    END IF;
    IF wanted.key_from IS NULL AND wanted.key_to IS NULL THEN
        RETURN;
    END IF;
    IF relation IS NULL OR wanted.method = 'empty' THEN
        RAISE EXCEPTION 'a range of keys can only be repaired or verified, in one table' USING
            ERRCODE = 'invalid_parameter_value', HINT = 'Name the table, and use method ''repair'' or onerepl_verify.';
    END IF;
    IF coalesce(cardinality(wanted.key_from), key_columns) <> key_columns OR coalesce(cardinality(wanted.key_to), key_columns) <> key_columns
       OR key_columns = 0 OR array_position(wanted.key_from || wanted.key_to, NULL) IS NOT NULL
    THEN
        RAISE EXCEPTION 'key_from and key_to must have a value for each column of the key of table %', relation USING
            ERRCODE = 'invalid_parameter_value', DETAIL = format('The key has %s columns.', key_columns);
    END IF;
END $$;
COMMENT ON FUNCTION onerepl.check_request(regclass, onerepl.refresh) IS
'Errors: 22023 if something that onerepl_refresh or onerepl_verify was given cannot be, 55000 if the table is not tracked.';

CREATE FUNCTION onerepl.request_refreshes(link text, relation regclass, wanted onerepl.refresh) RETURNS int
    LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_variable
DECLARE
    to_central onerepl.link := onerepl.get_link(link, 'remote');
    each regclass;
    requested int := 0;
BEGIN
    -- As onerepl.differences shows the first and the last range.
    wanted.key_from := nullif(wanted.key_from, '{}');
    wanted.key_to := nullif(wanted.key_to, '{}');
    PERFORM onerepl.check_request(relation, wanted);
    FOR each IN
        SELECT t.relation FROM onerepl.tracked AS t WHERE relation IS NULL
        UNION ALL SELECT relation WHERE relation IS NOT NULL
    LOOP
        requested := requested + onerepl.request_refresh(to_central, each, wanted);
    END LOOP;
    PERFORM onerepl.write_journal(0, to_central.id, 'III', format('a %s of %s was requested by %s',
        CASE wanted.method WHEN 'verify' THEN 'verification' ELSE 'refresh' END, concat_ws(', ', coalesce(relation::text,
        'all tables'), CASE WHEN wanted.key_from IS NOT NULL OR wanted.key_to IS NOT NULL
                            THEN onerepl.range_text(coalesce(wanted.key_from, '{}'), coalesce(wanted.key_to, '{}')) END), session_user));
    PERFORM onerepl.wake_at_commit(true, false);
    RETURN requested;
END $$;
COMMENT ON FUNCTION onerepl.request_refreshes(text, regclass, onerepl.refresh) IS
'What onerepl_refresh and onerepl_verify share; wanted: what they were given. Returns the number of tables.';

CREATE FUNCTION onerepl_refresh(link text, relation regclass DEFAULT NULL, method text DEFAULT 'empty', chunk_rows int DEFAULT 20000,
                                start_at timestamptz DEFAULT NULL, rows_per_second int8 DEFAULT NULL,
                                bytes_per_second int8 DEFAULT NULL, priority int DEFAULT 0, isolation text DEFAULT 'read committed',
                                key_from text[] DEFAULT NULL, key_to text[] DEFAULT NULL) RETURNS int
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    wanted onerepl.refresh;
BEGIN
    IF method IS NULL OR method NOT IN ('empty', 'repair') THEN
        RAISE EXCEPTION 'unknown method "%"', method USING
            ERRCODE = 'invalid_parameter_value', HINT = 'Use ''empty'' or ''repair''.';
    END IF;
    IF isolation IS NULL OR isolation NOT IN ('read committed', 'repeatable read') THEN
        RAISE EXCEPTION 'unknown isolation "%"', isolation USING
            ERRCODE = 'invalid_parameter_value', HINT = 'Use ''read committed'' or ''repeatable read''.';
    END IF;
    wanted.method := method;
    wanted.chunk_rows := chunk_rows;
    wanted.start_at := start_at;
    wanted.rows_per_second := rows_per_second;
    wanted.bytes_per_second := bytes_per_second;
    wanted.priority := priority;
    wanted.one_snapshot := isolation = 'repeatable read';
    wanted.key_from := key_from;
    wanted.key_to := key_to;
    RETURN onerepl.request_refreshes(link, relation, wanted);
END $$;
COMMENT ON FUNCTION onerepl_refresh(text, regclass, text, int, timestamptz, int8, int8, int, text, text[], text[]) IS
'Copies a tracked table to the central of a link, while both databases are in use.
A partition stands for its table. A table without key is always emptied, and read with isolation ''repeatable read''.
From now on, or from start_at, until the last chunk the table''s changes are written at the central tolerantly: an insert of a row
that is there replaces it, a delete of one that is not there does nothing. Afterwards those are conflicts again.
Of a table for several remotes (onerepl_set_target at the central) only the rows of this branch are emptied, copied and repaired.
  link: name of the link.
  relation: the table; null (default): all tracked tables.
  method: ''empty'' (default): the central''s table is emptied first; ''repair'': it stays and can be read, rows that differ are
    replaced, missing ones added, surplus ones removed, equal ones left alone. ''repair'' walks through a key of strings in the order
    of COLLATE "C": have an index in that order if the table is large.
  chunk_rows: rows of one chunk, at most; default 20000. A chunk is never much larger than onerepl.batch_bytes.
  start_at: not before this moment; null (default): at once.
  rows_per_second: not faster than this; null (default): no such limit. If bytes_per_second is null, too, the setting
    onerepl.refresh_share says how much a refresh may read while this server is in use.
  bytes_per_second: not faster than this; null (default): no such limit.
  priority: tables with a smaller one go first, one at a time; default 0.
  isolation: ''read committed'' (default): the copy is made in chunks by key, and no snapshot is held for longer than one;
    ''repeatable read'': the whole table is read under one snapshot and written in one transaction of the central, for those who want
    it as of LIDStart at once. That keeps vacuum on this server from removing rows deleted meanwhile, keeps the whole copy in
    onerepl.chunk, and holds up what is sent on all links until all is read; a restart meanwhile begins it again.
  key_from: with ''repair'', only keys after this one, a text for each column of the key, as onerepl.differences has it; null
    (default): from the first row.
  key_to: with ''repair'', only keys up to this one; null (default): to the last row.
Returns: how many tables will be copied.
Errors: 42704 when there is no such link; 55000 when this database is not its remote, or the table is not tracked; 55006 when the
    table is being refreshed already; 22023 when method or isolation is unknown, a number is not positive, or a range of keys does
    not fit.
See: docs/refresh.md, onerepl.refresh_progress, onerepl_verify';

CREATE FUNCTION onerepl.change_refresh(link text, relation regclass, old_states text[], new_state text, outcome text) RETURNS int
    LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_variable
DECLARE
    to_central onerepl.link := onerepl.get_link(link, 'remote');
    changed int;
BEGIN
    UPDATE onerepl.refresh AS r
        SET state = CASE WHEN new_state = 'running' AND NOT r.begun THEN 'waiting' ELSE new_state END,
            outcome = change_refresh.outcome
        WHERE r.link = to_central.id AND r.state = ANY (old_states)
          AND (relation IS NULL OR r.relation IN (SELECT m.root FROM onerepl.tracked_member AS m WHERE m.relation = relation::oid)
               OR r.relation = relation::oid);
    GET DIAGNOSTICS changed = ROW_COUNT;
    IF changed > 0 THEN
        PERFORM onerepl.write_journal(0, to_central.id, 'III', format('the refresh of %s is %s, by %s',
            coalesce(relation::text, 'all tables'), coalesce(outcome, new_state), session_user));
        PERFORM onerepl.wake_at_commit(true, false);
    END IF;
    RETURN changed;
END $$;
COMMENT ON FUNCTION onerepl.change_refresh(text, regclass, text[], text, text) IS
'What onerepl_refresh_pause, _resume and _cancel share.';

CREATE FUNCTION onerepl_refresh_pause(link text, relation regclass DEFAULT NULL) RETURNS int
    LANGUAGE sql SECURITY DEFINER
    SET search_path = pg_catalog, pg_temp AS $$
    SELECT onerepl.change_refresh(link, relation, '{waiting,running}', 'paused', NULL)
$$;
COMMENT ON FUNCTION onerepl_refresh_pause(text, regclass) IS
'Makes no more chunks of a table until onerepl_refresh_resume; changes go on.
  link: name of the link.
  relation: the table; null (default): all tables.
Returns: how many refreshes or verifications were paused.
Errors: 42704 when there is no such link; 55000 when this database is not its remote.
See: docs/refresh.md, onerepl_refresh_resume';

CREATE FUNCTION onerepl_refresh_resume(link text, relation regclass DEFAULT NULL) RETURNS int
    LANGUAGE sql SECURITY DEFINER
    SET search_path = pg_catalog, pg_temp AS $$
    SELECT onerepl.change_refresh(link, relation, '{paused}', 'running', NULL)
$$;
COMMENT ON FUNCTION onerepl_refresh_resume(text, regclass) IS
'Ends what onerepl_refresh_pause began; the refresh goes on where it was.
  link: name of the link.
  relation: the table; null (default): all tables.
Returns: how many refreshes or verifications were resumed.
Errors: 42704 when there is no such link; 55000 when this database is not its remote.
See: docs/refresh.md, onerepl_refresh_pause';

CREATE FUNCTION onerepl_refresh_cancel(link text, relation regclass DEFAULT NULL) RETURNS int
    LANGUAGE sql SECURITY DEFINER
    SET search_path = pg_catalog, pg_temp AS $$
    SELECT onerepl.change_refresh(link, relation, '{waiting,running,paused}', 'cancelling', 'cancelled')
$$;
COMMENT ON FUNCTION onerepl_refresh_cancel(text, regclass) IS
'Ends the refresh of a table before it is complete.
The central''s table stays as far as it was filled, and is shown there as not complete. Its changes are written tolerantly until
another refresh is complete.
  link: name of the link.
  relation: the table; null (default): all tables.
Returns: how many refreshes or verifications were cancelled.
Errors: 42704 when there is no such link; 55000 when this database is not its remote.
See: docs/refresh.md, onerepl_refresh';

CREATE FUNCTION onerepl.begin_refresh_anew(refresh int8) RETURNS void
    LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    old onerepl.refresh;
    other_key bool;
    ranged bool;
BEGIN
    SELECT r.* INTO STRICT old FROM onerepl.refresh AS r WHERE r.id = begin_refresh_anew.refresh;
    other_key := old.key_shape IS DISTINCT FROM onerepl.key_shape(old.relation);
    ranged := old.key_from IS NOT NULL OR old.key_to IS NOT NULL;
    UPDATE onerepl.refresh AS r
        SET state = 'cancelling', outcome = CASE WHEN other_key AND ranged THEN 'failed' ELSE 'cancelled' END,
            error = CASE WHEN NOT other_key THEN 'the table has got another filter'
                         WHEN ranged THEN 'the table has got another key, key_from and key_to are of the one before'
                         ELSE 'the table has got another key' END
        WHERE r.id = old.id;
    IF other_key AND ranged THEN
        RETURN;
    END IF;
    INSERT INTO onerepl.refresh (link, relation, name, method, chunk_rows, start_at, rows_per_second, bytes_per_second, priority,
                                 key_from, key_to, with_rows, key_shape, one_snapshot, rows_estimate, requested_by)
        SELECT old.link, old.relation, coalesce(onerepl.qualified_name(old.relation), old.name), old.method, old.chunk_rows, old.start_at,
               old.rows_per_second, old.bytes_per_second, old.priority, old.key_from, old.key_to, old.with_rows, k.shape,
               old.one_snapshot OR k.shape IS NULL, old.rows_estimate, old.requested_by
        FROM onerepl.key_shape(old.relation) AS k (shape);
END $$;
COMMENT ON FUNCTION onerepl.begin_refresh_anew(int8) IS
'Ends a refresh or a verification whose table has got another key or filter midway, and requests the same again (P21). One of a '
'range of keys fails if the key is another: the range means nothing any more.';

CREATE FUNCTION onerepl.refresh_new_table(relation regclass) RETURNS void
    LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    wanted onerepl.refresh;
BEGIN
    wanted.method := 'empty';
    wanted.chunk_rows := 20000;
    PERFORM onerepl.request_refreshes(l.name, refresh_new_table.relation, wanted) FROM onerepl.link AS l WHERE l.role = 'remote' ORDER BY l.id;
END $$;
COMMENT ON FUNCTION onerepl.refresh_new_table(regclass) IS 'onerepl_add_table with initial => ''refresh'': on every link.';

CREATE FUNCTION onerepl_verify(link text, relation regclass DEFAULT NULL, chunk_rows int DEFAULT 20000,
                               start_at timestamptz DEFAULT NULL, rows_per_second int8 DEFAULT NULL, priority int DEFAULT 0,
                               with_rows bool DEFAULT false, key_from text[] DEFAULT NULL, key_to text[] DEFAULT NULL) RETURNS int
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    wanted onerepl.refresh;
BEGIN
    wanted.method := 'verify';
    wanted.chunk_rows := chunk_rows;
    wanted.start_at := start_at;
    wanted.rows_per_second := rows_per_second;
    wanted.priority := priority;
    wanted.with_rows := with_rows;
    wanted.key_from := key_from;
    wanted.key_to := key_to;
    RETURN onerepl.request_refreshes(link, relation, wanted);
END $$;
COMMENT ON FUNCTION onerepl_verify(text, regclass, int, timestamptz, int8, int, bool, text[], text[]) IS
'Compares a tracked table with the central''s, while both databases are in use.
What differs is in onerepl.differences and in the journal of the central. onerepl_refresh with method ''repair'' mends it, of one
range of keys if that is given. Generated columns are not compared, and rows of a table without key are not named.
onerepl_refresh_pause, onerepl_refresh_resume and onerepl_refresh_cancel are for it, too.
  link: name of the link.
  relation: the table; null (default): all tracked tables.
  chunk_rows: keys of one chunk, at most; default 20000. Each chunk is compared at an exact position of the log.
  start_at: not before this moment; null (default): at once.
  rows_per_second: not faster than this; null (default): the setting onerepl.refresh_share, as in onerepl_refresh.
  priority: tables with a smaller one go first, one at a time; default 0.
  with_rows: true: names the rows and columns that differ, too (onerepl.differing_rows), and 16 bytes travel for each value;
    default false.
  key_from: only keys after this one, as in onerepl_refresh; null (default): from the first row.
  key_to: only keys up to this one, as in onerepl_refresh; null (default): to the last row.
Returns: for how many tables.
Errors: 42704 when there is no such link; 55000 when this database is not its remote, or the table is not tracked; 55006 when the
    table is being refreshed or verified already; 22023 when a number is not positive, or a range of keys does not fit.
See: docs/refresh.md, onerepl.refresh_progress, onerepl.differences';

CREATE FUNCTION onerepl.note_verified(link int, relation oid, refresh int8, n int8, last bool, key_from text[], key_to text[],
                                      rows_remote text, rows_here text, equal bool, remote_name text) RETURNS void
    LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_variable
DECLARE
    found onerepl.verified;
BEGIN
    IF NOT EXISTS (SELECT FROM onerepl.verified AS v WHERE v.link = link AND v.relation = relation AND v.refresh = refresh) THEN
        -- Triggers, and so foreign keys, are silent where onerepl writes.
        DELETE FROM onerepl.differing_row AS d WHERE d.link = link AND d.relation = relation;
        DELETE FROM onerepl.difference AS d WHERE d.link = link AND d.relation = relation;
    END IF;
    INSERT INTO onerepl.verified AS v (link, relation, refresh, chunks, differences, not_compared, complete, last)
        VALUES (link, relation, refresh, 1, (equal IS FALSE)::int, (equal IS NULL)::int, note_verified.last, n)
        ON CONFLICT ON CONSTRAINT verified_pkey DO UPDATE SET
            chunks = excluded.chunks + CASE WHEN v.refresh = excluded.refresh THEN v.chunks ELSE 0 END,
            differences = excluded.differences + CASE WHEN v.refresh = excluded.refresh THEN v.differences ELSE 0 END,
            not_compared = excluded.not_compared + CASE WHEN v.refresh = excluded.refresh THEN v.not_compared ELSE 0 END,
            refresh = excluded.refresh, complete = excluded.complete, last = excluded.last, at = excluded.at
        RETURNING v.* INTO found;
    IF equal IS NULL THEN
        PERFORM onerepl.write_journal(1, link, 'III', format('a part of table %s was not compared, %s: a foreign server is ahead of the number',
            relation::regclass, onerepl.range_text(key_from, key_to)), 'Verify the table again.', n, n);
    ELSIF NOT equal THEN
        INSERT INTO onerepl.difference (link, relation, n, key_from, key_to, rows_remote, rows_here)
            VALUES (link, relation, n, key_from, key_to, rows_remote::int8, rows_here::int8);
        PERFORM onerepl.write_journal(2, link, 'III', format('table %s differs from the remote''s: %s rows here, %s there, %s',
            relation::regclass, rows_here, rows_remote, onerepl.range_text(key_from, key_to)),
            format('At the remote: onerepl_refresh(link, %L, ''repair'', key_from => %L, key_to => %L) mends it; onerepl_verify with these keys and with_rows => true names the rows.',
                   remote_name, key_from, key_to), n, n);
    END IF;
    IF last THEN
        PERFORM onerepl.write_journal(0, link, 'III', format('table %s was verified: %s', relation::regclass,
            concat(CASE WHEN found.differences = 0 THEN 'equal' ELSE format('%s of %s chunks differ', found.differences, found.chunks) END,
                   CASE WHEN found.not_compared > 0 THEN format(', but for %s chunks that were not compared', found.not_compared) END)),
            NULL, n, n);
    END IF;
END $$;
COMMENT ON FUNCTION onerepl.note_verified(int, oid, int8, int8, bool, text[], text[], text, text, bool, text) IS
'Notes on the central what became of one chunk of a verification. equal: null if it was not compared.';

CREATE FUNCTION onerepl.compare_digests(remote text, here text, names text[], digits int, OUT difference text, OUT columns text[])
    LANGUAGE sql IMMUTABLE
    SET search_path = pg_catalog, pg_temp AS $$
    SELECT CASE WHEN remote IS NULL THEN 'surplus' WHEN here IS NULL THEN 'missing' ELSE 'different' END,
           CASE WHEN remote IS NOT NULL AND here IS NOT NULL
                THEN ARRAY(SELECT c.name FROM unnest(names) WITH ORDINALITY AS c (name, place)
                           WHERE substr(remote, digits * (c.place::int - 1) + 1, digits) <> substr(here, digits * (c.place::int - 1) + 1, digits)
                           ORDER BY c.place) END
$$;
COMMENT ON FUNCTION onerepl.compare_digests(text, text, text[], int) IS
'How a row differs, by its columns'' digests on both sides; null: there is no such row.';

CREATE FUNCTION onerepl.tell_differing_rows(link int, relation oid, n int8) RETURNS void
    LANGUAGE sql
    SET search_path = pg_catalog, pg_temp AS $$
    SELECT onerepl.write_journal(1, tell_differing_rows.link, 'III', format('rows of table %s that differ: %s%s', tell_differing_rows.relation::regclass,
               string_agg(format('(%s) %s', array_to_string(r.key, ', '), coalesce(array_to_string(r.columns, ', '), r.difference)), '; ')
                   FILTER (WHERE r.place <= 10),
               CASE WHEN count(*) > 10 THEN format(' and %s more: see onerepl.differing_rows', count(*) - 10) END), NULL,
           tell_differing_rows.n, tell_differing_rows.n)
    FROM (SELECT d.*, row_number() OVER (ORDER BY d.key) AS place FROM onerepl.differing_row AS d
          WHERE d.link = tell_differing_rows.link AND d.n = tell_differing_rows.n) AS r
    HAVING count(*) > 0
$$;
COMMENT ON FUNCTION onerepl.tell_differing_rows(int, oid, int8) IS 'Tells the journal the first rows of a difference.';

CREATE FUNCTION onerepl.range_text(key_from text[], key_to text[]) RETURNS text
    LANGUAGE sql IMMUTABLE
    SET search_path = pg_catalog, pg_temp AS $$
    SELECT CASE WHEN key_from = '{}' AND key_to = '{}' THEN 'in the whole table'
                ELSE concat_ws(' ', 'keys', CASE WHEN key_from <> '{}' THEN 'after (' || array_to_string(key_from, ', ') || ')' END,
                               CASE WHEN key_to <> '{}' THEN 'up to (' || array_to_string(key_to, ', ') || ')' END) END
$$;
COMMENT ON FUNCTION onerepl.range_text(text[], text[]) IS 'A range of keys in words.';

CREATE VIEW onerepl.differences AS
    SELECT l.name AS link, coalesce(onerepl.qualified_name(d.relation), d.relation::text) AS relation, d.n, d.key_from, d.key_to,
           d.rows_remote, d.rows_here, d.at
    FROM onerepl.difference AS d JOIN onerepl.link AS l ON l.id = d.link;
COMMENT ON VIEW onerepl.differences IS
'What the newest onerepl_verify of each table found at this central.
In the range of keys the rows differed when number n was reached, though all changes before it were written.';
COMMENT ON COLUMN onerepl.differences.link IS 'Name of the link.';
COMMENT ON COLUMN onerepl.differences.relation IS 'The table, as it is called here.';
COMMENT ON COLUMN onerepl.differences.n IS 'The number at which the rows were compared.';
COMMENT ON COLUMN onerepl.differences.key_from IS 'The range begins after this key, a text for each column; empty: from the first row.';
COMMENT ON COLUMN onerepl.differences.key_to IS 'The last key of the range, a text for each column; empty: to the last row.';
COMMENT ON COLUMN onerepl.differences.at IS 'When they were compared.';

CREATE VIEW onerepl.differing_rows AS
    SELECT l.name AS link, coalesce(onerepl.qualified_name(d.relation), d.relation::text) AS relation, d.n, d.key, d.difference, d.columns
    FROM onerepl.differing_row AS d JOIN onerepl.link AS l ON l.id = d.link;
COMMENT ON VIEW onerepl.differing_rows IS
'The rows of onerepl.differences, if onerepl_verify was called with with_rows => true.
At most 1,000 of each range of keys.';
COMMENT ON COLUMN onerepl.differing_rows.link IS 'Name of the link.';
COMMENT ON COLUMN onerepl.differing_rows.relation IS 'The table, as it is called here.';
COMMENT ON COLUMN onerepl.differing_rows.n IS 'As in onerepl.differences.';
COMMENT ON COLUMN onerepl.differing_rows.key IS 'The row''s key, a text for each column.';
COMMENT ON COLUMN onerepl.differing_rows.columns IS 'If the row is different: the columns that differ.';

CREATE VIEW onerepl.refresh_progress AS
    SELECT l.name AS link, l.role, r.name AS relation, r.method, r.state, r.one_snapshot, r.rows_done AS rows, r.rows_estimate, r.bytes_done AS bytes,
           CASE WHEN r.state = 'done' THEN 100
                WHEN r.rows_estimate > 0 THEN least(99.9, round(100.0 * r.rows_done / r.rows_estimate, 1)) END AS percent,
           round(r.rows_done / t.seconds::numeric, 1) AS rows_per_second,
           CASE WHEN r.state = 'running' AND r.rows_done > 0 AND r.rows_estimate > r.rows_done
                THEN clock_timestamp() + make_interval(secs => t.seconds * (r.rows_estimate - r.rows_done) / r.rows_done) END AS estimated_end,
           r.lid_start, r.lid_end, r.start_at, r.started_at, r.finished_at, r.error
    FROM onerepl.refresh AS r
    JOIN onerepl.link AS l ON l.id = r.link
    CROSS JOIN LATERAL (
        SELECT greatest(0.001, extract(epoch FROM coalesce(r.finished_at, clock_timestamp()) - r.started_at))::float8 AS seconds
    ) AS t
    UNION ALL
    SELECT l.name, l.role, coalesce(onerepl.qualified_name(w.relation), w.relation::text), w.method, w.state, NULL, w.rows_done, NULL, NULL,
           CASE WHEN w.state = 'done' THEN 100 END,
           round(w.rows_done / greatest(0.001, extract(epoch FROM w.changed_at - w.started_at)), 1), NULL,
           w.first - 1, CASE WHEN w.state = 'done' THEN w.last END, NULL, w.started_at,
           CASE WHEN w.state IN ('done', 'cancelled') THEN w.changed_at END, NULL
    FROM onerepl.refresh_window AS w JOIN onerepl.link AS l ON l.id = w.link
    UNION ALL
    SELECT l.name, l.role, coalesce(onerepl.qualified_name(v.relation), v.relation::text), 'verify',
           CASE WHEN NOT v.complete THEN 'running' WHEN v.not_compared > 0 THEN 'incomplete' ELSE 'done' END, NULL, NULL, NULL, NULL, CASE WHEN v.complete THEN 100 END, NULL, NULL,
           NULL, CASE WHEN v.complete THEN v.last END, NULL, NULL, CASE WHEN v.complete THEN v.at END, NULL
    FROM onerepl.verified AS v JOIN onerepl.link AS l ON l.id = v.link;
COMMENT ON VIEW onerepl.refresh_progress IS
'Every refresh and verification, on the remote and at the central.
At the central a table that is not done is not known to be complete.';
COMMENT ON COLUMN onerepl.refresh_progress.link IS 'Name of the link.';
COMMENT ON COLUMN onerepl.refresh_progress.role IS 'What this database is on it: remote or central.';
COMMENT ON COLUMN onerepl.refresh_progress.relation IS 'The table, as it is called here.';
COMMENT ON COLUMN onerepl.refresh_progress.state IS
'On the remote: waiting, running, paused, sent (all is read, not all confirmed), cancelling, done, cancelled, failed (see '
'error). At the central: waiting (opened, the old content is there), filling, running (a verification), incomplete (you skipped '
'a chunk, or a part could not be compared), cancelled, done.';
COMMENT ON COLUMN onerepl.refresh_progress.one_snapshot IS
'The table is read as a whole, under one snapshot, which keeps vacuum back, and from its begin again after a restart.';
COMMENT ON COLUMN onerepl.refresh_progress.rows_estimate IS 'Rows that the table has, as the planner guesses.';
COMMENT ON COLUMN onerepl.refresh_progress.percent IS 'How much is done, by rows_estimate.';
COMMENT ON COLUMN onerepl.refresh_progress.rows_per_second IS 'The speed so far.';
COMMENT ON COLUMN onerepl.refresh_progress.estimated_end IS 'When it will be done at this speed, by rows_estimate.';
COMMENT ON COLUMN onerepl.refresh_progress.lid_start IS 'LIDStart: between it and lid_end changes are written tolerantly.';
COMMENT ON COLUMN onerepl.refresh_progress.lid_end IS 'LIDEnd: the number of its last chunk.';
