-- Trigger functions of capture (src/capture). onerepl_add_table() makes the triggers: "!onerepl_capture", AFTER INSERT OR
-- UPDATE OR DELETE FOR EACH ROW, and "!onerepl_truncate", AFTER TRUNCATE, both ENABLE ALWAYS. Their names sort first, so
-- that a change is recorded before the application's own triggers act on it.

CREATE FUNCTION onerepl.onerepl_capture() RETURNS trigger
    LANGUAGE c VOLATILE AS 'MODULE_PATHNAME', 'onerepl_capture';
CREATE FUNCTION onerepl.record_description(relation regclass) RETURNS void
    LANGUAGE c STRICT AS 'MODULE_PATHNAME', 'onerepl_record_description'
    SET search_path = pg_catalog, pg_temp;
COMMENT ON FUNCTION onerepl.record_description(regclass) IS
'Records the description of a tracked table, or of a partition of one: a central that gets it knows the table, and guards it (P8, P17).';

-- Everybody may execute it: PostgreSQL asks the owner of a tracked table for that right when he adds a partition. The schema is
-- closed to him, so that he cannot make triggers of his own with it.

CREATE FUNCTION onerepl.onerepl_capture_truncate() RETURNS trigger
    LANGUAGE c VOLATILE AS 'MODULE_PATHNAME', 'onerepl_capture_truncate';
REVOKE ALL ON FUNCTION onerepl.onerepl_capture_truncate() FROM PUBLIC;

-- Partitions that come and go (src/capture/membership.cpp).
CREATE FUNCTION onerepl.describe_partition(relation oid) RETURNS void
    LANGUAGE c STRICT AS 'MODULE_PATHNAME', 'onerepl_describe_partition'
    SET search_path = pg_catalog, pg_temp;
REVOKE ALL ON FUNCTION onerepl.describe_partition(oid) FROM PUBLIC;
COMMENT ON FUNCTION onerepl.describe_partition(oid) IS
'Keeps the description of a partition of a tracked table as it is now, for when it is gone.';

CREATE FUNCTION onerepl.record_attached(relation oid) RETURNS void
    LANGUAGE c STRICT AS 'MODULE_PATHNAME', 'onerepl_record_attached'
    SET search_path = pg_catalog, pg_temp;
REVOKE ALL ON FUNCTION onerepl.record_attached(oid) FROM PUBLIC;
COMMENT ON FUNCTION onerepl.record_attached(oid) IS
'Records the rows of a partition as inserts: it has just come to a tracked table.';

CREATE FUNCTION onerepl.record_left(relation oid) RETURNS void
    LANGUAGE c STRICT AS 'MODULE_PATHNAME', 'onerepl_record_left'
    SET search_path = pg_catalog, pg_temp;
REVOKE ALL ON FUNCTION onerepl.record_left(oid) FROM PUBLIC;
COMMENT ON FUNCTION onerepl.record_left(oid) IS
'Records that the rows of a partition are no longer in its tracked table (as TRUNCATE of the partition does): it was detached '
'or dropped.';

-- lock_pending (P6). "!onerepl_lock", BEFORE INSERT OR UPDATE OR DELETE OR TRUNCATE FOR EACH STATEMENT, lets the writers of
-- such tables take turns before they lock rows; without it the row trigger does so, and writers may meet in deadlocks.
CREATE FUNCTION onerepl.onerepl_lock_pending() RETURNS trigger
    LANGUAGE c VOLATILE AS 'MODULE_PATHNAME', 'onerepl_lock_pending';
REVOKE ALL ON FUNCTION onerepl.onerepl_lock_pending() FROM PUBLIC;

-- The records of lock_pending tables in their order: two rows where a record changes a key.
CREATE SEQUENCE onerepl.pending_number_seq AS int8;
CREATE TABLE onerepl.pending (
    number      int8 NOT NULL,
    relation    oid NOT NULL,
    object      int8 NOT NULL,
    xid         xid8 NOT NULL,
    PRIMARY KEY (number, relation, object)
);
COMMENT ON COLUMN onerepl.pending.object IS 'Hash of the key; 0: the table.';
CREATE INDEX pending_object ON onerepl.pending (relation, object, number);

CREATE FUNCTION onerepl.purge_pending() RETURNS void LANGUAGE sql
    SET search_path = pg_catalog, pg_temp AS $$
    DELETE FROM onerepl.pending AS p
    USING (
        SELECT b.snapshot
        FROM onerepl.batch AS b,
            (SELECT min(coalesce((SELECT s.confirmed FROM onerepl.sent_progress AS s WHERE s.link = l.id
                                  ORDER BY s.seq DESC LIMIT 1), l.start, 0)) AS number
             FROM onerepl.link AS l WHERE l.role = 'remote') AS c
        WHERE b.snapshot IS NOT NULL AND b.last <= c.number
        ORDER BY b.first DESC LIMIT 1
    ) AS done
    WHERE pg_visible_in_snapshot(p.xid, done.snapshot)
$$;
REVOKE ALL ON FUNCTION onerepl.purge_pending() FROM PUBLIC;
COMMENT ON FUNCTION onerepl.purge_pending() IS
'Forgets what all links have confirmed of lock_pending tables; the purge of the log calls it.';
