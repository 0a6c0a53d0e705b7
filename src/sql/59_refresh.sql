-- Refreshes: the administrator's functions and views.

CREATE FUNCTION onerepl.request_refresh(link onerepl.link, relation regclass, method text, chunk_rows int, start_at timestamptz,
                                        rows_per_second int8, bytes_per_second int8, place int) RETURNS int
    LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_variable
DECLARE
    member record;
    known int8;
    requested int := 0;
BEGIN
    FOR member IN
        SELECT m.relation, m.name, greatest(c.reltuples, 0)::int8 AS rows
        FROM onerepl.tracked_member AS m JOIN pg_class AS c ON c.oid = m.relation
        WHERE m.relkind = 'r' AND (m.root = request_refresh.relation OR m.relation = request_refresh.relation)
        ORDER BY m.name
    LOOP
        SELECT r.id INTO known FROM onerepl.refresh AS r
            WHERE r.link = link.id AND r.relation = member.relation AND r.state IN ('waiting', 'running', 'paused', 'sent', 'cancelling');
        IF known IS NOT NULL THEN
            RAISE EXCEPTION 'table % is being refreshed already', member.name USING
                ERRCODE = 'object_in_use',
                HINT = format('Wait for its end, or call onerepl_refresh_cancel(%L, %L).', link.name, member.name);
        END IF;
        INSERT INTO onerepl.refresh (link, relation, name, method, chunk_rows, start_at, rows_per_second, bytes_per_second, place,
                                     rows_estimate)
            VALUES (link.id, member.relation, member.name, method, chunk_rows, start_at, rows_per_second, bytes_per_second, place,
                    member.rows);
        requested := requested + 1;
    END LOOP;
    RETURN requested;
END $$;
COMMENT ON FUNCTION onerepl.request_refresh(onerepl.link, regclass, text, int, timestamptz, int8, int8, int) IS
'onerepl_refresh for one tracked table (with all its partitions); returns for how many tables.';

CREATE FUNCTION onerepl.request_refreshes(link text, relation regclass, method text, chunk_rows int, start_at timestamptz,
                                          rows_per_second int8, bytes_per_second int8, place int) RETURNS int
    LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_variable
DECLARE
    to_central onerepl.link := onerepl.get_link(link, 'remote');
    wanted regclass;
    requested int := 0;
BEGIN
    IF chunk_rows IS NULL OR chunk_rows <= 0 OR rows_per_second <= 0 OR bytes_per_second <= 0 THEN
        RAISE EXCEPTION 'chunk_rows, rows_per_second and bytes_per_second must be greater than zero' USING
            ERRCODE = 'invalid_parameter_value';
    END IF;
    IF relation IS NOT NULL AND NOT EXISTS (SELECT FROM onerepl.tracked_member AS m WHERE m.relation = relation::oid) THEN
        RAISE EXCEPTION 'table % is not tracked', relation USING
            ERRCODE = 'object_not_in_prerequisite_state', HINT = 'Call onerepl_add_table first, or with initial => ''refresh''.';
    END IF;
    FOR wanted IN
        SELECT t.relation FROM onerepl.tracked AS t WHERE relation IS NULL
        UNION ALL SELECT relation WHERE relation IS NOT NULL
    LOOP
        requested := requested + onerepl.request_refresh(to_central, wanted, method, chunk_rows, start_at, rows_per_second,
                                                         bytes_per_second, coalesce(place, 0));
    END LOOP;
    PERFORM onerepl.write_journal(0, to_central.id, 'III', format('a %s of %s was requested by %s',
        CASE method WHEN 'verify' THEN 'verification' ELSE 'refresh' END, coalesce(relation::text,
        'all tables'), session_user));
    PERFORM onerepl.wake_at_commit(true, false);
    RETURN requested;
END $$;
COMMENT ON FUNCTION onerepl.request_refreshes(text, regclass, text, int, timestamptz, int8, int8, int) IS
'What onerepl_refresh and onerepl_verify share.';

CREATE FUNCTION onerepl_refresh(link text, relation regclass DEFAULT NULL, method text DEFAULT 'empty', chunk_rows int DEFAULT 20000,
                                start_at timestamptz DEFAULT NULL, rows_per_second int8 DEFAULT NULL,
                                bytes_per_second int8 DEFAULT NULL, place int DEFAULT 0) RETURNS int
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF method IS NULL OR method NOT IN ('empty', 'repair') THEN
        RAISE EXCEPTION 'unknown method "%"', method USING
            ERRCODE = 'invalid_parameter_value', HINT = 'Use ''empty'' or ''repair''.';
    END IF;
    RETURN onerepl.request_refreshes(link, relation, method, chunk_rows, start_at, rows_per_second, bytes_per_second, place);
END $$;
COMMENT ON FUNCTION onerepl_refresh(text, regclass, text, int, timestamptz, int8, int8, int) IS
'Copies a tracked table to the central of a link, while both are in use; returns how many tables (partitions) will be copied. relation:
null for all tracked tables. method: ''empty'', the central''s table is emptied first; ''repair'', it stays and can be read: rows that
differ are replaced, missing ones added, surplus ones removed, equal ones left alone. chunk_rows: rows of one chunk, at most (a chunk
is never much larger than onerepl.batch_bytes); start_at: not before; rows_per_second, bytes_per_second: not faster; place: tables
with a smaller one go first, one at a time. Progress: onerepl.refresh_progress.
From now on, or from start_at, until the last chunk the table''s changes are written at the central tolerantly: an insert of a row that
is there replaces it, a delete of one that is not there does nothing. Afterwards those are conflicts again.
The copy is made in chunks by key; no snapshot is held for longer than one. A table without key is copied in one piece and is always
emptied. With ''repair'', a key of strings is walked through in the order of COLLATE "C": have an index in that order if the table
is large. A table that several remotes write at the central must not be refreshed: rows of the others would go.
Errors: 42704 no such link; 55000 this is not its remote, or the table is not tracked; 55006 it is being refreshed already;
22023 unknown method, or a number that is not positive.';

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
          AND (relation IS NULL OR r.relation IN (SELECT m.relation FROM onerepl.tracked_member AS m WHERE m.root = relation::oid)
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
'Makes no more chunks of the table (null: of all tables) until onerepl_refresh_resume; changes go on. Returns how many refreshes were
paused. Errors: 42704 no such link; 55000 this is not its remote.';

CREATE FUNCTION onerepl_refresh_resume(link text, relation regclass DEFAULT NULL) RETURNS int
    LANGUAGE sql SECURITY DEFINER
    SET search_path = pg_catalog, pg_temp AS $$
    SELECT onerepl.change_refresh(link, relation, '{paused}', 'running', NULL)
$$;
COMMENT ON FUNCTION onerepl_refresh_resume(text, regclass) IS
'Ends what onerepl_refresh_pause began; the refresh goes on where it was. Returns how many refreshes were
resumed. Errors: 42704 no such link; 55000 this is not its remote.';

CREATE FUNCTION onerepl_refresh_cancel(link text, relation regclass DEFAULT NULL) RETURNS int
    LANGUAGE sql SECURITY DEFINER
    SET search_path = pg_catalog, pg_temp AS $$
    SELECT onerepl.change_refresh(link, relation, '{waiting,running,paused}', 'cancelling', 'cancelled')
$$;
COMMENT ON FUNCTION onerepl_refresh_cancel(text, regclass) IS
'Ends the refresh of a table (null: of all tables) before it is complete. The central''s table stays as far as it was filled, is shown
there as not complete, and its changes are written tolerantly, until another refresh is complete. Returns how many were cancelled.
Errors: 42704 no such link; 55000 this is not its remote.';

CREATE FUNCTION onerepl.refresh_new_table(relation regclass) RETURNS void
    LANGUAGE sql
    SET search_path = pg_catalog, pg_temp AS $$
    SELECT onerepl.request_refresh(l, refresh_new_table.relation, 'empty', 20000, NULL, NULL, NULL, 0)
    FROM onerepl.link AS l WHERE l.role = 'remote' ORDER BY l.id
$$;
COMMENT ON FUNCTION onerepl.refresh_new_table(regclass) IS 'onerepl_add_table with initial => ''refresh'': on every link.';

CREATE FUNCTION onerepl_verify(link text, relation regclass DEFAULT NULL, chunk_rows int DEFAULT 20000,
                               start_at timestamptz DEFAULT NULL, rows_per_second int8 DEFAULT NULL, place int DEFAULT 0) RETURNS int
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RETURN onerepl.request_refreshes(link, relation, 'verify', chunk_rows, start_at, rows_per_second, NULL, place);
END $$;
COMMENT ON FUNCTION onerepl_verify(text, regclass, int, timestamptz, int8, int) IS
'Compares a tracked table with the central''s while both are in use; returns for how many tables (partitions). relation: null for all
tracked tables. In chunks of chunk_rows keys, each at an exact position of the log; the other arguments as onerepl_refresh. What differs is
in onerepl.differences and in the journal of the central; onerepl_refresh(..., ''repair'') mends it. Generated columns are not
compared. Progress: onerepl.refresh_progress; onerepl_refresh_pause, _resume and _cancel are for it, too.
Errors: 42704 no such link; 55000 this is not its remote, or the table is not tracked; 55006 it is being refreshed or verified already;
22023 a number that is not positive.';

CREATE FUNCTION onerepl.note_verified(link int, relation oid, refresh int8, n int8, last bool, key_from text[], key_to text[],
                                      rows_remote text, rows_here text, equal bool) RETURNS void
    LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_variable
DECLARE
    found onerepl.verified;
BEGIN
    DELETE FROM onerepl.difference AS d
        WHERE d.link = note_verified.link AND d.relation = note_verified.relation
          AND NOT EXISTS (SELECT FROM onerepl.verified AS v
                          WHERE v.link = d.link AND v.relation = d.relation AND v.refresh = note_verified.refresh);
    INSERT INTO onerepl.verified AS v (link, relation, refresh, chunks, differences, complete, last)
        VALUES (link, relation, refresh, 1, CASE WHEN equal THEN 0 ELSE 1 END, note_verified.last, n)
        ON CONFLICT ON CONSTRAINT verified_pkey DO UPDATE SET
            chunks = excluded.chunks + CASE WHEN v.refresh = excluded.refresh THEN v.chunks ELSE 0 END,
            differences = excluded.differences + CASE WHEN v.refresh = excluded.refresh THEN v.differences ELSE 0 END,
            refresh = excluded.refresh, complete = excluded.complete, last = excluded.last, at = excluded.at
        RETURNING v.* INTO found;
    IF NOT equal THEN
        INSERT INTO onerepl.difference (link, relation, n, key_from, key_to, rows_remote, rows_here)
            VALUES (link, relation, n, key_from, key_to, rows_remote::int8, rows_here::int8);
        PERFORM onerepl.write_journal(2, link, 'III', format('table %s differs from the remote''s: %s rows here, %s there, %s',
            relation::regclass, rows_here, rows_remote, onerepl.range_text(key_from, key_to)),
            'See onerepl.differences; onerepl_refresh with method ''repair'' at the remote mends it.', n, n);
    END IF;
    IF last THEN
        PERFORM onerepl.write_journal(0, link, 'III', format('table %s was verified: %s', relation::regclass,
            CASE WHEN found.differences = 0 THEN 'equal' ELSE format('%s of %s chunks differ', found.differences, found.chunks) END),
            NULL, n, n);
    END IF;
END $$;
COMMENT ON FUNCTION onerepl.note_verified(int, oid, int8, int8, bool, text[], text[], text, text, bool) IS
'Notes on the central what became of one chunk of a verification.';

CREATE FUNCTION onerepl.range_text(key_from text[], key_to text[]) RETURNS text
    LANGUAGE sql IMMUTABLE
    SET search_path = pg_catalog, pg_temp AS $$
    SELECT CASE WHEN key_from = '{}' AND key_to = '{}' THEN 'in the whole table'
                ELSE concat_ws(' ', 'keys', CASE WHEN key_from <> '{}' THEN 'behind (' || array_to_string(key_from, ', ') || ')' END,
                               CASE WHEN key_to <> '{}' THEN 'up to (' || array_to_string(key_to, ', ') || ')' END) END
$$;
COMMENT ON FUNCTION onerepl.range_text(text[], text[]) IS 'A range of keys in words.';

CREATE VIEW onerepl.differences AS
    SELECT l.name AS link, coalesce(onerepl.qualified_name(d.relation), d.relation::text) AS relation, d.n, d.key_from, d.key_to,
           d.rows_remote, d.rows_here, d.at
    FROM onerepl.difference AS d JOIN onerepl.link AS l ON l.id = d.link;
COMMENT ON VIEW onerepl.differences IS
'What the newest onerepl_verify of each table found at this central: in the range of keys behind key_from up to key_to (empty: from the
first, to the last row) the rows differed when number n was reached, though all changes before it were written.';

CREATE VIEW onerepl.refresh_progress AS
    SELECT l.name AS link, l.role, r.name AS relation, r.method, r.state, r.rows_done AS rows, r.rows_estimate, r.bytes_done AS bytes,
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
    SELECT l.name, l.role, coalesce(onerepl.qualified_name(w.relation), w.relation::text), w.method, w.state, w.rows_done, NULL, NULL,
           CASE WHEN w.state = 'done' THEN 100 END,
           round(w.rows_done / greatest(0.001, extract(epoch FROM w.changed_at - w.started_at)), 1), NULL,
           w.first - 1, CASE WHEN w.state = 'done' THEN w.last END, NULL, w.started_at,
           CASE WHEN w.state IN ('done', 'cancelled') THEN w.changed_at END, NULL
    FROM onerepl.refresh_window AS w JOIN onerepl.link AS l ON l.id = w.link;
COMMENT ON VIEW onerepl.refresh_progress IS
'Every refresh, on the remote (role remote) and at the central. state on the remote: waiting, running, paused, sent (all is read, not all
confirmed), cancelling, done, cancelled, failed (see error). At the central: waiting (opened, the old content is there), filling,
incomplete (you skipped a chunk), cancelled, done; a table that is not done is not known to be complete. lid_start, lid_end: LIDStart
and LIDEnd, the numbers between which changes are written tolerantly. estimated_end goes by the statistics of ANALYZE.';
