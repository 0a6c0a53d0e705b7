-- The remote: stopping the flow at a number, and waiting for the central.

CREATE FUNCTION onerepl_block(link text, n int8) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
    target onerepl.link := onerepl.get_link(onerepl_block.link, 'remote');
    sent int8;
BEGIN
    IF onerepl_block.n IS NULL OR onerepl_block.n < 1 THEN
        RAISE EXCEPTION 'numbers begin at 1' USING ERRCODE = 'invalid_parameter_value';
    END IF;
    sent := onerepl.sent_to(target.id);
    IF onerepl_block.n <= sent THEN
        RAISE EXCEPTION 'record % was already sent on link "%"', onerepl_block.n, target.name USING
            ERRCODE = 'object_not_in_prerequisite_state',
            DETAIL = format('Only a record in state L can be blocked; the last one that left it is %s.', sent),
            HINT = format('Block record %s or a later one.', sent + 1);
    END IF;
    INSERT INTO onerepl.blocked (link, n) VALUES (target.id, onerepl_block.n) ON CONFLICT DO NOTHING;
    IF FOUND THEN
        PERFORM onerepl.write_journal(0, target.id, 'R1b',
            format('record %s of link "%s" was blocked by %s', onerepl_block.n, target.name, session_user), NULL,
            onerepl_block.n, onerepl_block.n);
        PERFORM onerepl.wake_at_commit(true, false);
    END IF;
END $$;
COMMENT ON FUNCTION onerepl_block(text, int8) IS
'Blocks one record on one link of the remote (state B): the sender stops before it.
The sender goes on after onerepl_unblock. Until then the central keeps what it has of the record''s transaction in its queue.
Blocking a blocked record changes nothing.
  link: name of the link.
  n: number of the record; it may be one that is not given yet.
Errors: 42704 when there is no such link; 55000 when the record was sent already, or this database is the central of the link;
    22023 when n is null or below 1.
See: onerepl_unblock, R1b, P11';

CREATE FUNCTION onerepl_unblock(link text, n int8) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
    target onerepl.link := onerepl.get_link(onerepl_unblock.link, 'remote');
BEGIN
    DELETE FROM onerepl.blocked AS b WHERE b.link = target.id AND b.n = onerepl_unblock.n;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'record % of link "%" is not blocked', onerepl_unblock.n, target.name USING
            ERRCODE = 'no_data_found',
            HINT = 'onerepl_status() tells where a link is blocked.';
    END IF;
    PERFORM onerepl.write_journal(0, target.id, 'R1b',
        format('record %s of link "%s" was unblocked by %s', onerepl_unblock.n, target.name, session_user), NULL,
        onerepl_unblock.n, onerepl_unblock.n);
    PERFORM onerepl.wake_at_commit(true, false);
END $$;
COMMENT ON FUNCTION onerepl_unblock(text, int8) IS
'Puts a blocked record back from B to L: the sender goes on.
  link: name of the link.
  n: number of the record.
Errors: 42704 when there is no such link; P0002 when the record is not blocked; 55000 when this database is the central of the link.
See: onerepl_block, R1b, P11';

CREATE FUNCTION onerepl_wait(link text, timeout interval DEFAULT NULL) RETURNS bool
    LANGUAGE c SECURITY DEFINER AS 'MODULE_PATHNAME', 'onerepl_wait'
    SET search_path = pg_catalog, pg_temp;
COMMENT ON FUNCTION onerepl_wait(text, interval) IS
'Waits until the central of the link has written everything that was committed here before the call.
That is above all what this session itself has committed. The wait can be cancelled.
  link: name of the link.
  timeout: how long to wait at most; null (default): for ever.
Returns: true when everything is written; false when the time is over.
Errors: 42704 when there is no such link, or it is removed meanwhile; 22004 when no link is named; 55000 when the link is stopped,
    or this database is its central; 25001 when the current transaction has itself changed data: it cannot wait for what it has
    not committed.
See: docs/looking.md, onerepl_status';

CREATE FUNCTION onerepl.number_covering(seen pg_snapshot) RETURNS int8
    LANGUAGE sql STABLE
    SET search_path = pg_catalog, pg_temp AS $$
    WITH numbered AS (
        SELECT b.last, b.snapshot FROM onerepl.batch AS b WHERE b.snapshot IS NOT NULL ORDER BY b.first DESC LIMIT 1
    ), unnumbered AS (
        -- Transactions that `seen` sees and the newest numbering did not: begun after it, or running then.
        SELECT FROM (SELECT n.snapshot FROM (VALUES (1)) AS one LEFT JOIN numbered AS n ON true) AS n
        CROSS JOIN LATERAL (
            SELECT c.xid FROM onerepl.change_0 AS c WHERE c.last AND c.xid >= coalesce(pg_snapshot_xmax(n.snapshot), '0')
            UNION ALL
            SELECT c.xid FROM onerepl.change_1 AS c WHERE c.last AND c.xid >= coalesce(pg_snapshot_xmax(n.snapshot), '0')
            UNION ALL
            SELECT c.xid FROM onerepl.change_2 AS c WHERE c.last AND c.xid >= coalesce(pg_snapshot_xmax(n.snapshot), '0')
            UNION ALL
            SELECT c.xid FROM onerepl.change_3 AS c WHERE c.last AND c.xid >= coalesce(pg_snapshot_xmax(n.snapshot), '0')
            UNION ALL
            SELECT x.xid FROM pg_snapshot_xip(n.snapshot) AS x (xid)
                WHERE EXISTS (SELECT FROM onerepl.change_0 AS c WHERE c.last AND c.xid = x.xid)
                   OR EXISTS (SELECT FROM onerepl.change_1 AS c WHERE c.last AND c.xid = x.xid)
                   OR EXISTS (SELECT FROM onerepl.change_2 AS c WHERE c.last AND c.xid = x.xid)
                   OR EXISTS (SELECT FROM onerepl.change_3 AS c WHERE c.last AND c.xid = x.xid)
        ) AS c
        WHERE pg_visible_in_snapshot(c.xid, seen)
    )
    SELECT coalesce((SELECT n.last FROM numbered AS n), 0) WHERE NOT EXISTS (SELECT FROM unnumbered)
$$;
COMMENT ON FUNCTION onerepl.number_covering(pg_snapshot) IS
'M, if everything captured in transactions that the snapshot sees has a number by now; else null.';
