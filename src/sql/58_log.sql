-- The log as the specification describes it: record by record, with states. On the remote each record once per link.

-- R: what was received and written; a record that came in parts has several rows in onerepl.received.
CREATE VIEW onerepl.written_log AS
    SELECT r.link, d.n, d.relation, d.object_id, d.moved_to, d.operation, r.at, r.first AS row_first, r.last AS row_last
    FROM onerepl.received AS r
    CROSS JOIN LATERAL onerepl.received_records(r.link, ARRAY(
        SELECT p.frames FROM onerepl.received AS p WHERE p.link = r.link AND p.first = r.first ORDER BY p.part)) AS d
    WHERE r.part = 0;

-- F: the object as it waits in the queue; failures know it only as a text for people.
CREATE VIEW onerepl.failed_log AS
    SELECT f.link, f.n, coalesce(d.relation, f.relation) AS relation, coalesce(d.object_id, f.key) AS object_id, d.moved_to,
           coalesce(d.operation, f.operation) AS operation, f.failed_at AS at
    FROM onerepl.failure AS f
    LEFT JOIN (
        SELECT w.link, d.*
        FROM onerepl.waiting AS w
        CROSS JOIN LATERAL onerepl.received_records(w.link, ARRAY(
            SELECT p.frames FROM onerepl.waiting AS p WHERE p.link = w.link AND p.first = w.first ORDER BY p.part)) AS d
        WHERE w.part = 0
          AND EXISTS (SELECT FROM onerepl.failure AS g WHERE g.link = w.link AND g.n BETWEEN w.first AND w.last)
    ) AS d ON d.link = f.link AND d.n = f.n;

-- A function, so that EXECUTE on it is all that a reader of onerepl.log needs beside SELECT.
CREATE FUNCTION onerepl.log_records(link text DEFAULT NULL, first int8 DEFAULT NULL, last int8 DEFAULT NULL)
    RETURNS TABLE (link_name text, n int8, relation text, object_id text, moved_to text, operation text, state text, changed_at timestamptz)
    LANGUAGE sql STABLE SECURITY DEFINER
    SET search_path = pg_catalog, pg_temp AS $$
    WITH wanted AS MATERIALIZED (
        SELECT l.* FROM onerepl.link AS l WHERE log_records.link IS NULL OR l.name = log_records.link
    )
    SELECT l.name, r.n, r.relation, r.object_id, r.moved_to, r.operation, s.state,
           onerepl.record_changed_at(l.id, r.n, s.state, r.made_at)
    FROM (SELECT w.id, w.name, w.start, onerepl.confirmed_to(w.id) AS confirmed, onerepl.sent_to(w.id) AS sent
          FROM wanted AS w WHERE w.role = 'remote' OFFSET 0) AS l
    JOIN onerepl.numbered_records(log_records.first, log_records.last) AS r ON r.n > l.start
    CROSS JOIN LATERAL (SELECT onerepl.record_state(l.id, r.n, l.confirmed, l.sent) AS state) AS s
    UNION ALL
    SELECT l.name, w.n, w.relation, w.object_id, w.moved_to, w.operation, 'R', w.at
    FROM wanted AS l JOIN onerepl.written_log AS w ON w.link = l.id
    WHERE (log_records.first IS NULL OR w.n >= log_records.first) AND (log_records.last IS NULL OR w.n <= log_records.last)
      AND (log_records.first IS NULL OR w.row_last >= log_records.first) AND (log_records.last IS NULL OR w.row_first <= log_records.last)
    UNION ALL
    SELECT l.name, f.n, f.relation, f.object_id, f.moved_to, f.operation, 'F', f.at
    FROM wanted AS l JOIN onerepl.failed_log AS f ON f.link = l.id
    WHERE (log_records.first IS NULL OR f.n >= log_records.first) AND (log_records.last IS NULL OR f.n <= log_records.last)
$$;
COMMENT ON FUNCTION onerepl.log_records(text, int8, int8) IS
'Shows what the view onerepl.log shows, of one link and of some numbers only.
It is for large logs: the view reads everything, whatever its WHERE says.
  link: name of the link; null (default): all.
  first: the first number; null (default): from the beginning.
  last: the last number; null (default): to the end.
Returns: one row for each record and link.
  link_name: name of the link; the other columns are those of onerepl.log.
See: docs/looking.md, onerepl.log';

CREATE VIEW onerepl.log AS
    SELECT r.link_name AS link, r.n, r.relation, r.object_id, r.moved_to, r.operation, r.state, r.changed_at
    FROM onerepl.log_records() AS r;
COMMENT ON VIEW onerepl.log IS
'The log record by record, each with its state.
It goes back on a central as far as onerepl.log_retention. The function onerepl.log_records reads a part of a large log.';
COMMENT ON COLUMN onerepl.log.link IS 'Name of the link; on a remote each record is there once for each link.';
COMMENT ON COLUMN onerepl.log.object_id IS
'The value of the key, or of several key columns a row literal; without a key the whole row; null: the object is the table.';
COMMENT ON COLUMN onerepl.log.moved_to IS 'The key after a change of it; null: it is the same.';
COMMENT ON COLUMN onerepl.log.state IS 'On a remote L, B, S or C; on a central R or F.';
COMMENT ON COLUMN onerepl.log.changed_at IS 'When the record came into its state.';

CREATE FUNCTION onerepl_object_state(relation regclass, key text)
    RETURNS TABLE (link text, state text, n int8, changed_at timestamptz)
    LANGUAGE sql STABLE SECURITY DEFINER
    SET search_path = pg_catalog, pg_temp AS $$
    WITH object (relation, key) AS (
        VALUES (onerepl.qualified_name(coalesce((SELECT m.root FROM onerepl.tracked_member AS m
                                                WHERE m.relation = onerepl_object_state.relation), onerepl_object_state.relation)), onerepl_object_state.key)
    ), newest AS MATERIALIZED (
        SELECT r.n, (SELECT b.made_at FROM onerepl.batch AS b WHERE b.first <= r.n ORDER BY b.first DESC LIMIT 1) AS made_at
        FROM object AS o, LATERAL onerepl.newest_record(o.relation, o.key) AS r (n)
        WHERE r.n IS NOT NULL AND EXISTS (SELECT FROM onerepl.link AS l WHERE l.role = 'remote')
    )
    SELECT l.name, coalesce(s.state, 'I'), CASE WHEN s.state IS NOT NULL THEN m.n END,
           CASE WHEN s.state IS NOT NULL THEN onerepl.record_changed_at(l.id, m.n, s.state, m.made_at) END
    FROM onerepl.link AS l
    LEFT JOIN newest AS m ON m.n > l.start
    LEFT JOIN LATERAL (
        SELECT onerepl.record_state(l.id, m.n, onerepl.confirmed_to(l.id), onerepl.sent_to(l.id)) AS state WHERE m.n IS NOT NULL
    ) AS s ON true
    WHERE l.role = 'remote'
    UNION ALL
    SELECT l.name, coalesce(f.state, w.state, 'I'), coalesce(f.n, w.n), coalesce(f.at, w.at)
    FROM onerepl.link AS l
    CROSS JOIN object AS o
    LEFT JOIN LATERAL (
        SELECT 'F' AS state, d.n, d.at FROM onerepl.failed_log AS d
        WHERE d.link = l.id AND d.relation = o.relation AND o.key IN (d.object_id, d.moved_to) ORDER BY d.n DESC LIMIT 1
    ) AS f ON true
    LEFT JOIN LATERAL (
        -- Backwards, and only as far as the first row that has the object.
        SELECT 'R' AS state, d.n, r.at FROM onerepl.received AS r
        CROSS JOIN LATERAL (
            SELECT max(e.n) AS n FROM onerepl.received_records(r.link, ARRAY(
                SELECT p.frames FROM onerepl.received AS p WHERE p.link = r.link AND p.first = r.first ORDER BY p.part)) AS e
            WHERE e.relation = o.relation AND o.key IN (e.object_id, e.moved_to)
        ) AS d
        WHERE r.link = l.id AND r.part = 0 AND d.n IS NOT NULL
        ORDER BY r.first DESC LIMIT 1
    ) AS w ON f.n IS NULL
    WHERE l.role = 'central'
$$;
COMMENT ON FUNCTION onerepl_object_state(regclass, text) IS
'Shows the state of one object, once for each link.
An object whose records were purged from the log is in I again. It reads the log: take your time with a large one.
  relation: the table; on the central the table there, which must be called as at the remote.
  key: the value of its key as text; of several key columns a row literal in their order, as ''(1,two)'' (see onerepl.log.object_id).
Returns: one row for each link.
  link: name of the link.
  state: I, L, B, S or C where this database is the remote; I, R or F where it is the central.
  n: number of its newest record; null in state I.
  changed_at: when it came into the state; null in state I.
See: docs/looking.md, onerepl.log';
