-- onerepl_status(): where every link stands, in words, and what to do.

-- Each state is decided in one function per role; the first reason that holds wins.

CREATE FUNCTION onerepl.longest_silence(l onerepl.link) RETURNS interval
    LANGUAGE sql STABLE
    SET search_path = pg_catalog, pg_temp AS $$
    SELECT interval '3 seconds' + onerepl.effective_interval(l.reply_timeout, 'onerepl.reply_timeout', '10 s')
           + CASE l.role WHEN 'remote' THEN onerepl.effective_interval(l.send_interval, 'onerepl.send_interval', '1 s') ELSE '0' END
$$;
COMMENT ON FUNCTION onerepl.longest_silence(onerepl.link) IS
'After which time without a word of the peer there is no contact: Tr, on the remote after Ti, and what the notes of contact may be late.';

CREATE FUNCTION onerepl.sender_runs() RETURNS bool
    LANGUAGE sql STABLE
    SET search_path = pg_catalog, pg_temp AS $$
    SELECT EXISTS (SELECT FROM pg_stat_activity AS a WHERE a.backend_type = 'onerepl sender' AND a.datname = current_database())
$$;
COMMENT ON FUNCTION onerepl.sender_runs() IS 'Whether this database has its sender.';

CREATE FUNCTION onerepl.busy_state(l onerepl.link, OUT state text, OUT what_to_do text)
    LANGUAGE sql STABLE
    SET search_path = pg_catalog, pg_temp AS $$
    SELECT CASE WHEN o.id = l.id THEN format('writing %s records', w.last - w.first + 1)
                ELSE format('waiting for link "%s", for which %s records are written', o.name, w.last - w.first + 1) END,
           'Nothing: it goes on when they are written.'
    FROM onerepl.link AS o CROSS JOIN LATERAL onerepl.writing(o.id) AS w
    LEFT JOIN onerepl.contact AS c ON c.link = l.id
    WHERE o.role = 'central' AND w.until IS NULL AND w.since < clock_timestamp() - interval '1 second'
      -- Of another link only if this one has been waiting since.
      AND (o.id = l.id OR c.last_contact BETWEEN w.since - onerepl.longest_silence(l) AND clock_timestamp() - onerepl.longest_silence(l))
    ORDER BY o.id <> l.id LIMIT 1
$$;
COMMENT ON FUNCTION onerepl.busy_state(onerepl.link) IS
'The state of a link of the central while a receiver has been writing for a second and answers nobody; nulls: none has.';

CREATE FUNCTION onerepl.contact_state(l onerepl.link, OUT state text, OUT what_to_do text)
    LANGUAGE sql STABLE
    SET search_path = pg_catalog, pg_temp AS $$
    SELECT r.* FROM (VALUES (1)) AS one
    LEFT JOIN onerepl.contact AS c ON c.link = l.id
    CROSS JOIN LATERAL (
        -- The central: the time in which its receivers heard nobody, since they wrote, does not count.
        SELECT c.last_contact < clock_timestamp() - onerepl.longest_silence(l) AND NOT EXISTS (
                   SELECT FROM onerepl.link AS o CROSS JOIN LATERAL onerepl.writing(o.id) AS w
                   WHERE l.role = 'central' AND o.role = 'central' AND w.since - onerepl.longest_silence(l) < c.last_contact
                     AND coalesce(w.until, clock_timestamp()) > clock_timestamp() - onerepl.longest_silence(l))
            OR (c.last_contact IS NULL AND c.last_error IS NOT NULL) AS yes
    ) AS is_late
    CROSS JOIN LATERAL (
        SELECT 'no secret', format('The link came from a dump, which has no keys: call onerepl_change_link(%L, secret => ...).', l.name)
            WHERE NOT EXISTS (SELECT FROM onerepl.link_key AS k WHERE k.link = l.id)
        UNION ALL
        SELECT 'waiting for an answer', 'Nothing, unless it stays so: the central has the connection and does not answer, as while it writes a large transaction. See onerepl_status() there.'
            WHERE l.role = 'remote' AND is_late.yes AND (c.error_kind = 'silent' OR c.last_error IS NULL AND onerepl.sender_runs())
        UNION ALL
        SELECT 'no contact', CASE
                   WHEN l.role = 'central'
                   THEN 'Look whether the remote runs, can reach this server, and has the same secret: the journal tells of refused requests (rule P14).'
                   WHEN c.error_kind = 'refused'
                   THEN 'Look whether the secret is the same at both ends, and whether the central has the link; onerepl_change_link changes the secret.'
                   ELSE 'See last_error; look whether the central runs, and whether its setting onerepl.listen and the url agree.' END
            WHERE is_late.yes
        UNION ALL
        SELECT 'starting', CASE l.role
                   WHEN 'remote' THEN 'Nothing: the sender is about to begin.'
                   ELSE 'At the remote call onerepl_add_central with the same secret, or onerepl_restart_link if it has the link already.' END
            WHERE c.last_contact IS NULL
    ) AS r (state, what_to_do)
    LIMIT 1
$$;
COMMENT ON FUNCTION onerepl.contact_state(onerepl.link) IS 'States that say that the peer is not there; nulls: it is.';

CREATE FUNCTION onerepl.new_start(l onerepl.link, after int8) RETURNS text
    LANGUAGE sql STABLE
    SET search_path = pg_catalog, pg_temp AS $$
    SELECT 'Call onerepl_restart_link at the central, then at the remote, there with onerepl_refresh in one transaction unless the tables are equal.'
           || CASE WHEN after IS NULL THEN ''
                   WHEN l.role = 'central' THEN format(' Instead of the refresh, onerepl_restart_link(..., read_point => %s) at the remote is enough if all that is written here is of that remote, and its log still has that record.', after + 1)
                   ELSE ' onerepl_status() at the central names the read point at which no refresh is needed.' END
$$;
COMMENT ON FUNCTION onerepl.new_start(onerepl.link, int8) IS
'The cure of a stopped link in words. after: S_b, if what the central has written may be a part of the remote''s history; else null.';

CREATE FUNCTION onerepl.stop_reason(stop int2) RETURNS text
    LANGUAGE c IMMUTABLE STRICT AS 'MODULE_PATHNAME', 'onerepl_stop_reason'
    SET search_path = pg_catalog, pg_temp;
COMMENT ON FUNCTION onerepl.stop_reason(int2) IS 'Why a link stopped for good (P9), in words. stop: as in onerepl.link.';

CREATE FUNCTION onerepl.stop_state(l onerepl.link, OUT state text, OUT what_to_do text)
    LANGUAGE sql STABLE
    SET search_path = pg_catalog, pg_temp AS $$
    SELECT 'stopped: ' || onerepl.stop_reason(l.stop),
           CASE l.stop
               WHEN 1 THEN onerepl.new_start(l, p.s)
               WHEN 2 THEN 'Find and stop the other copy of the remote first, if there is one. ' || onerepl.new_start(l, NULL)
               WHEN 3 THEN 'Find and stop the other copy of the remote first, if there is one. ' || onerepl.new_start(l, p.s)
               WHEN 4 THEN 'Look at url and secret at both ends, and correct them with onerepl_change_link. If the other database is the right one, call onerepl_restart_link at the central, then at the remote, there with onerepl_refresh in one transaction unless the tables are equal.'
               WHEN 5 THEN 'Write in one of the two only. To replicate again, call onerepl_restart_link at the central, then at the remote, there with onerepl_refresh in one transaction.'
               WHEN 6 THEN 'Find and stop the other copy of the remote first. ' || onerepl.new_start(l, p.s) END
           || coalesce(' Seen: ' || l.stop_detail || '.', '')
    FROM (SELECT CASE l.role WHEN 'central' THEN onerepl.written_to(l.id) ELSE 0 END AS s) AS p
    WHERE l.stop <> 0
$$;
COMMENT ON FUNCTION onerepl.stop_state(onerepl.link) IS 'The state of a link that P9 has stopped (core/body.h Stop); nulls: it is not.';

CREATE FUNCTION onerepl.remote_state(l onerepl.link, m int8, s int8, sent int8, OUT state text, OUT what_to_do text)
    LANGUAGE sql STABLE
    SET search_path = pg_catalog, pg_temp AS $$
    SELECT r.* FROM (VALUES (1)) AS one
    LEFT JOIN onerepl.contact AS c ON c.link = l.id
    LEFT JOIN LATERAL (SELECT min(b.n) AS n FROM onerepl.blocked AS b WHERE b.link = l.id AND b.n > sent) AS first ON true
    CROSS JOIN LATERAL (
        SELECT p.* FROM onerepl.stop_state(l) AS p WHERE p.state IS NOT NULL
        UNION ALL
        SELECT 'capture stopped: the log reached onerepl.log_critical_size',
               'Changes are not captured any more. When the central can be reached, call onerepl_restart_link there, then here together with onerepl_refresh(..., method => ''repair'') in one transaction.'
            FROM onerepl.log_state AS g WHERE g.capture_stopped
        UNION ALL
        SELECT p.* FROM onerepl.obstacle(l.role) AS p WHERE p.state IS NOT NULL
        UNION ALL
        SELECT 'paused', format('Call onerepl_resume(%L) to go on.', l.name) WHERE l.paused
        UNION ALL
        SELECT 'records cannot be sent', 'Look at last_error; it is tried again by itself once the cause is gone. The journal has more.'
            WHERE c.own_error IS NOT NULL
        UNION ALL
        SELECT 'the central takes nothing just now', 'See last_error, and onerepl_status() and the server log there. It is tried again by itself.'
            WHERE c.peer_sqlstate IS NOT NULL
        UNION ALL
        SELECT p.* FROM onerepl.contact_state(l) AS p WHERE p.state IS NOT NULL
        UNION ALL
        SELECT format('blocked at %s', first.n), format('Call onerepl_unblock(%L, %s) to go on.', l.name, first.n)
            WHERE first.n = sent + 1 AND first.n <= m
        UNION ALL
        SELECT CASE c.peer_state WHEN 'failed' THEN 'the central has a failed record' ELSE 'the central is ' || c.peer_state END,
               'Look at onerepl_status() there.'
            WHERE c.peer_state ~ '^(failed|stopped|paused)'
        UNION ALL
        SELECT 'refreshing', 'Nothing: see onerepl.refresh_progress.'
            FROM onerepl.refresh AS f WHERE f.link = l.id AND f.method <> 'verify' AND f.state IN ('waiting', 'running', 'paused', 'sent', 'cancelling')
        UNION ALL
        SELECT 'in step', 'Nothing.' WHERE s = m
        UNION ALL
        SELECT 'running', 'Nothing.'
    ) AS r (state, what_to_do)
    LIMIT 1
$$;
COMMENT ON FUNCTION onerepl.remote_state(onerepl.link, int8, int8, int8) IS 'The state of a link as the remote sees it.';

CREATE FUNCTION onerepl.central_state(l onerepl.link, m int8, s int8, OUT state text, OUT what_to_do text)
    LANGUAGE sql STABLE
    SET search_path = pg_catalog, pg_temp AS $$
    SELECT r.* FROM (VALUES (1)) AS one
    LEFT JOIN onerepl.contact AS c ON c.link = l.id
    LEFT JOIN LATERAL (SELECT min(f.n) AS n FROM onerepl.failure AS f WHERE f.link = l.id AND f.resolution IS NULL) AS failed ON true
    LEFT JOIN LATERAL (SELECT min(w.first) AS n FROM onerepl.waiting AS w WHERE w.link = l.id) AS queue ON true
    CROSS JOIN LATERAL (
        SELECT p.* FROM onerepl.stop_state(l) AS p WHERE p.state IS NOT NULL
        UNION ALL
        SELECT format('failed at %s', failed.n),
               format('See onerepl.failed; remove the cause, then onerepl_resolve(%L, %s, ''retry''), or ''overwrite'' or ''skip''.', l.name, failed.n)
            WHERE failed.n IS NOT NULL
        UNION ALL
        SELECT 'paused', format('Call onerepl_resume(%L) to go on.', l.name) WHERE l.paused
        UNION ALL
        SELECT 'put off', 'Look at last_error; it is tried again by itself once the cause is gone.'
            WHERE coalesce(c.put_off, onerepl.trouble(l.id)) IS NOT NULL
        UNION ALL
        SELECT p.* FROM onerepl.obstacle(l.role) AS p WHERE p.state IS NOT NULL
        UNION ALL
        SELECT p.* FROM onerepl.busy_state(l) AS p WHERE p.state IS NOT NULL
        UNION ALL
        SELECT p.* FROM onerepl.contact_state(l) AS p WHERE p.state IS NOT NULL
        UNION ALL
        SELECT 'starting', 'Nothing, unless it stays so: then call onerepl_restart_link at the remote, which answers for equal tables.'
            WHERE l.start IS NULL
        UNION ALL
        SELECT 'the remote is ' || c.peer_state, 'Look at onerepl_status() there.'
            WHERE c.peer_state ~ '^(blocked|stopped|paused)'
        UNION ALL
        SELECT 'the remote captures no changes', 'Its log reached onerepl.log_critical_size there. Make room at the remote, then call onerepl_restart_link here and there, there with onerepl_refresh in one transaction.'
            WHERE c.peer_state = 'capture stopped'
        UNION ALL
        SELECT format('waiting for %s', s + 1), 'Nothing: it was asked for.' WHERE queue.n > s + 1
        UNION ALL
        SELECT 'incomplete', 'Some tables are not complete: see onerepl.refresh_progress, and call onerepl_refresh at the remote.'
            FROM onerepl.refresh_window AS f WHERE f.link = l.id AND f.state IN ('incomplete', 'cancelled') AND EXISTS (SELECT FROM pg_class AS k WHERE k.oid = f.relation)
        UNION ALL
        SELECT 'refreshing', 'Nothing: see onerepl.refresh_progress which tables are not complete yet.'
            FROM onerepl.refresh_window AS f WHERE f.link = l.id AND f.state <> 'done' AND EXISTS (SELECT FROM pg_class AS k WHERE k.oid = f.relation)
        UNION ALL
        SELECT 'different', 'Tables differ: see onerepl.differences. At the remote onerepl_refresh(link, table, ''repair'') mends them, and onerepl_verify looks again.'
            FROM onerepl.difference AS d WHERE d.link = l.id AND EXISTS (SELECT FROM pg_class AS k WHERE k.oid = d.relation)
        UNION ALL
        SELECT 'in step', 'Nothing.' WHERE s = m
        UNION ALL
        SELECT 'running', 'Nothing.'
    ) AS r (state, what_to_do)
    LIMIT 1
$$;
COMMENT ON FUNCTION onerepl.central_state(onerepl.link, int8, int8) IS 'The state of a link as the central sees it.';

CREATE FUNCTION onerepl.log_size() RETURNS int8
    LANGUAGE sql STABLE
    SET search_path = pg_catalog, pg_temp AS $$
    SELECT sum(pg_total_relation_size(t))::int8
    FROM (VALUES ('onerepl.change_0'::regclass), ('onerepl.change_1'), ('onerepl.change_2'), ('onerepl.change_3'),
                 ('onerepl.batch'), ('onerepl.description')) AS tables (t)
$$;
COMMENT ON FUNCTION onerepl.log_size() IS 'Bytes on disk of the remote''s log, with its indexes (P7).';

CREATE FUNCTION onerepl.remote_status() RETURNS TABLE (link int, m int8, s int8, lag_seconds float8, lag_bytes int8, state text,
                                                       what_to_do text, log_size int8)
    LANGUAGE sql STABLE
    SET search_path = pg_catalog, pg_temp AS $$
    SELECT l.id, h.last, p.s,
           CASE WHEN p.s >= h.last THEN 0
                ELSE (SELECT extract(epoch FROM clock_timestamp() - b.made_at) FROM onerepl.batch AS b
                      WHERE b.first <= p.s + 1 ORDER BY b.first DESC LIMIT 1) END AS lag_seconds,
           -- The log's size over its records, times what is missing.
           CASE WHEN p.s >= h.last THEN 0
                ELSE (z.bytes * least(1, (h.last - p.s)::float8 / greatest(1, h.last - h.oldest + 1)))::int8 END,
           t.state, t.what_to_do, z.bytes
    FROM onerepl.link AS l
    CROSS JOIN (SELECT coalesce(max(b.last), 0) AS last, coalesce(min(b.first), 1) AS oldest FROM onerepl.batch AS b) AS h
    CROSS JOIN (SELECT onerepl.log_size() AS bytes) AS z
    CROSS JOIN LATERAL (SELECT onerepl.confirmed_to(l.id) AS s, onerepl.sent_to(l.id) AS sent) AS p
    CROSS JOIN LATERAL onerepl.remote_state(l, h.last, p.s, p.sent) AS t
    WHERE l.role = 'remote'
$$;
COMMENT ON FUNCTION onerepl.remote_status() IS 'onerepl_status() of the links on which this database is the remote.';

CREATE FUNCTION onerepl.central_status() RETURNS TABLE (link int, m int8, s int8, lag_seconds float8, lag_bytes int8, state text,
                                                        what_to_do text, log_size int8)
    LANGUAGE sql STABLE
    SET search_path = pg_catalog, pg_temp AS $$
    SELECT l.id, h.m, p.s,
           -- An older record than S_b + 1, if B has written more since.
           CASE WHEN h.m <= p.s THEN 0 ELSE extract(epoch FROM clock_timestamp() - c.oldest_since) END AS lag_seconds,
           coalesce(q.bytes, 0), t.state, t.what_to_do, NULL::int8
    FROM onerepl.link AS l
    LEFT JOIN onerepl.contact AS c ON c.link = l.id
    CROSS JOIN LATERAL (SELECT onerepl.written_to(l.id) AS s) AS p
    -- What the remote said last may be older than what has come since.
    CROSS JOIN LATERAL (SELECT CASE WHEN c.peer_number IS NOT NULL THEN greatest(c.peer_number, p.s) END AS m) AS h
    LEFT JOIN LATERAL (SELECT sum(w.size)::int8 AS bytes FROM onerepl.waiting AS w WHERE w.link = l.id) AS q ON true
    CROSS JOIN LATERAL onerepl.central_state(l, h.m, p.s) AS t
    WHERE l.role = 'central'
$$;
COMMENT ON FUNCTION onerepl.central_status() IS 'onerepl_status() of the links on which this database is the central.';

CREATE FUNCTION onerepl_status() RETURNS TABLE (link text, role text, peer uuid, written_to int8, numbered_to int8, lag_records int8, lag_seconds float8,
                                                lag_bytes int8, state text, last_contact timestamptz, last_error text,
                                                what_to_do text, problems int8, log_size int8, may_write text)
    LANGUAGE sql STABLE SECURITY DEFINER
    SET search_path = pg_catalog, pg_temp AS $$
    SELECT l.name, l.role, l.peer, t.s, t.m, lag.records, round(lag.seconds::numeric, 3)::float8, t.lag_bytes, t.state, c.last_contact,
           coalesce(c.put_off, onerepl.trouble(l.id), c.own_error, c.last_error),
           CASE WHEN p.problems > 0
                THEN concat_ws(' ', format('See onerepl.problems: %s problem%s with tables.', p.problems, CASE WHEN p.problems > 1 THEN 's' END),
                            nullif(t.what_to_do, 'Nothing.'))
                ELSE t.what_to_do END,
           p.problems, t.log_size,
           CASE WHEN l.role = 'central'
                THEN coalesce(nullif(array_to_string(onerepl.allowed_list(l.id), ', '), ''), format('nothing: see onerepl_allow(%L, ...)', l.name)) END
    FROM (SELECT * FROM onerepl.remote_status() UNION ALL SELECT * FROM onerepl.central_status()) AS t
    JOIN onerepl.link AS l ON l.id = t.link
    LEFT JOIN onerepl.contact AS c ON c.link = l.id
    -- The numbers of a stopped link are of two histories.
    LEFT JOIN LATERAL (SELECT t.m - t.s AS records, CASE WHEN t.lag_seconds < 0 THEN 0 ELSE t.lag_seconds END AS seconds WHERE l.stop = 0 AND t.m >= t.s) AS lag ON true
    CROSS JOIN LATERAL (
        SELECT count(*) AS problems FROM onerepl.problem AS q WHERE (q.kind = 'guard trigger') = (l.role = 'central')
    ) AS p
    ORDER BY l.role DESC, l.name
$$;
COMMENT ON FUNCTION onerepl_status() IS
'Shows one row for each link of this database: where it stands, and what to do.
The lag is what the remote has numbered and this side does not know as written at the central. Both lag_records and lag_seconds are
never negative. They are null while they cannot be known: before the first contact, and while the link is stopped.
The central has them from the remote''s last message (last_contact), and counts on from there.
Returns: one row for each link.
  link: name of the link.
  role: what this database is on it: ''remote'' or ''central''.
  peer: identifier of the other database; null before the first contact.
  written_to: S, the last number that is confirmed (remote) or written (central).
  numbered_to: M, the newest number of the remote''s log; on the central as last told.
  lag_records: records that are missing: numbered_to - written_to.
  lag_seconds: seconds since the first of them got its number, by the remote''s clock, so that time without changes is no lag;
    0: there is none.
  lag_bytes: bytes: estimated size of what is not confirmed (remote), size of the queue (central).
  state: in step, running, not working: why (settings or workers are missing), refreshing, incomplete (tables of the central),
    starting, no contact, waiting for an answer (the central has the connection and is silent), writing N records, waiting for
    link ... (another link''s records are written by the receiver of this one), paused, blocked at N, failed at N, waiting for N,
    stopped: why, capture stopped, the central is or has ..., the remote is ..., records cannot be sent (the remote fails to form
    them), put off (the central cannot write just now), different (onerepl_verify found it).
  last_contact: time of the last authentic message of the peer.
  last_error: of the last contact, or why records cannot be sent or written just now; null: all was good.
  what_to_do: what the administrator does now.
  problems: how many problems the self-check found (onerepl.problems).
  log_size: bytes of the log (remote); null on the central.
  may_write: what the link may write here, as onerepl_allow has it; ''*'' is everything (central); null on the remote.
See: docs/looking.md, docs/trouble.md, onerepl.problems';
