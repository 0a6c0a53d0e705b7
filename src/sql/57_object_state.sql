-- Records of the logs as text, and their states.

CREATE FUNCTION onerepl.received_records(link int, frames bytea[])
    RETURNS TABLE (n int8, relation text, object_id text, moved_to text, operation text, last_of_transaction bool, made_at timestamptz)
    LANGUAGE c STABLE AS 'MODULE_PATHNAME', 'onerepl_received_records'
    SET search_path = pg_catalog, pg_temp;
COMMENT ON FUNCTION onerepl.received_records(int, bytea[]) IS
'The records in frames that the central keeps (onerepl.received, onerepl.waiting), in order. link: onerepl.link.id. Parts of a '
'record count once all are there. Damaged ones are left out. made_at: null, the central does not know it.';

CREATE FUNCTION onerepl.numbered_records(first int8 DEFAULT NULL, last int8 DEFAULT NULL)
    RETURNS TABLE (n int8, relation text, object_id text, moved_to text, operation text, last_of_transaction bool, made_at timestamptz)
    LANGUAGE c STABLE AS 'MODULE_PATHNAME', 'onerepl_numbered_records'
    SET search_path = pg_catalog, pg_temp;
COMMENT ON FUNCTION onerepl.numbered_records(int8, int8) IS
'The records of the remote''s log from number first to last (null: as far as it goes), in order. object_id: the key before the '
'change as text, of several columns as a row literal, without a key the whole row; null if the object is the table. moved_to: '
'the key after a change of it. made_at: when the record got its number.';

CREATE FUNCTION onerepl.newest_record(relation text, key text) RETURNS int8
    LANGUAGE c STABLE STRICT AS 'MODULE_PATHNAME', 'onerepl_newest_record'
    SET search_path = pg_catalog, pg_temp;
COMMENT ON FUNCTION onerepl.newest_record(text, text) IS
'The number of the newest record of an object in the remote''s log; null if there is none. relation: qualified and quoted; key: '
'as object_id of onerepl.log.';

CREATE FUNCTION onerepl.record_state(link int, n int8, confirmed int8, sent int8) RETURNS text
    LANGUAGE sql STABLE
    SET search_path = pg_catalog, pg_temp AS $$
    SELECT CASE WHEN n <= confirmed THEN 'C'
                WHEN n <= sent THEN 'S'
                WHEN EXISTS (SELECT FROM onerepl.blocked AS b WHERE b.link = record_state.link AND b.n = record_state.n) THEN 'B'
                ELSE 'L' END
$$;
COMMENT ON FUNCTION onerepl.record_state(int, int8, int8, int8) IS 'The state of the remote''s record n on a link that stands there.';

CREATE FUNCTION onerepl.record_changed_at(link int, n int8, state text, made_at timestamptz) RETURNS timestamptz
    LANGUAGE sql STABLE
    SET search_path = pg_catalog, pg_temp AS $$
    SELECT coalesce(CASE state
        WHEN 'C' THEN (SELECT p.at FROM onerepl.sent_progress AS p
                       WHERE p.link = record_changed_at.link AND p.confirmed >= record_changed_at.n ORDER BY p.seq LIMIT 1)
        WHEN 'S' THEN (SELECT p.at FROM onerepl.sent_progress AS p
                       WHERE p.link = record_changed_at.link AND p.sent >= record_changed_at.n ORDER BY p.seq LIMIT 1)
        WHEN 'B' THEN (SELECT b.at FROM onerepl.blocked AS b
                       WHERE b.link = record_changed_at.link AND b.n = record_changed_at.n)
    END, made_at)
$$;
COMMENT ON FUNCTION onerepl.record_changed_at(int, int8, text, timestamptz) IS
'When the remote''s record n came into its state on a link: when it was numbered, sent, confirmed or blocked.';
