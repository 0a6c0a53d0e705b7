-- Links: who is at the other end.
--
-- All functions of the administrator are SECURITY DEFINER: GRANT EXECUTE on one is what it takes to let a role use it.

CREATE FUNCTION onerepl_add_central(name text, url text, secret text,
                                    reply_timeout interval DEFAULT NULL,
                                    state_query_interval interval DEFAULT NULL,
                                    send_interval interval DEFAULT NULL) RETURNS int
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_variable
DECLARE
    wanted onerepl.link;
    added onerepl.link;
BEGIN
    PERFORM onerepl.check_link_name(name);
    wanted.role := 'remote';
    wanted.url := url;
    wanted.reply_timeout := reply_timeout;
    wanted.state_query_interval := state_query_interval;
    wanted.send_interval := send_interval;
    PERFORM onerepl.check_link(wanted);
    PERFORM onerepl.hold_numbering();
    INSERT INTO onerepl.link (name, role, url, start, start_identity,
                              reply_timeout, state_query_interval, send_interval)
        SELECT name, wanted.role, url, h.last, h.identity, reply_timeout, state_query_interval, send_interval
        FROM onerepl.identity_at_last() AS h
        RETURNING * INTO added;
    PERFORM onerepl.set_secret(added, secret);
    PERFORM onerepl.write_journal(0, added.id, 'P11', format('link "%s" to a central was added by %s and starts after number %s',
                                                             added.name, session_user, added.start));
    IF EXISTS (SELECT FROM onerepl.tracked) THEN
        RAISE WARNING 'what was changed in tracked tables before now is not sent on link "%"', added.name USING
            DETAIL = 'Tables are tracked already, and a link starts after the newest number of the log.',
            HINT = 'If anything was written since the tables were copied, call onerepl_refresh for them in this transaction or later.';
        PERFORM onerepl.describe_tracked();
    END IF;
    PERFORM onerepl.wake_at_commit(true, false);
    PERFORM onerepl.warn_of_obstacle(added.role);
    RETURN added.id;
END $$;
COMMENT ON FUNCTION onerepl_add_central(text, text, text, interval, interval, interval) IS
'Makes this database a remote of a central: every change of a tracked table is sent to it from now on.
The link starts after the newest number of the log (P17): the tables must be the same in both databases at this moment.
What was captured but has no number yet will still be sent.
The secret itself is stored nowhere, and the server log does not show it. Mind the history of psql.
  name: name of the link, for you.
  url: where the central listens, as ''http://host:port''.
  secret: the same as at the central; at least 16 characters.
  reply_timeout: overrides the setting of this name for this link; null (default): the setting.
  state_query_interval: overrides the setting of this name for this link; null (default): the setting.
  send_interval: overrides the setting of this name for this link; null (default): the setting.
Returns: the id of the link in onerepl.link.
Errors: 42710 when the name is taken, or another link has the secret; 22023 when the name is empty, or a url, secret or interval
    cannot be; 0A000 when the url is https.
See: docs/first-copy.md, onerepl_add_remote, P17';

CREATE FUNCTION onerepl_add_remote(name text, secret text,
                                   tables text[] DEFAULT '{}',
                                   reply_timeout interval DEFAULT NULL,
                                   state_query_interval interval DEFAULT NULL) RETURNS int
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_variable
DECLARE
    wanted onerepl.link;
    added onerepl.link;
BEGIN
    PERFORM onerepl.check_link_name(name);
    wanted.role := 'central';
    wanted.reply_timeout := reply_timeout;
    wanted.state_query_interval := state_query_interval;
    PERFORM onerepl.check_link(wanted);
    INSERT INTO onerepl.link (name, role, reply_timeout, state_query_interval)
        VALUES (name, wanted.role, reply_timeout, state_query_interval)
        RETURNING * INTO added;
    PERFORM onerepl.set_secret(added, secret);
    PERFORM onerepl.allow(added.id, tables);
    PERFORM onerepl.write_journal(0, added.id, 'P11', format('link "%s" to a remote was added by %s; it may write: %s', added.name, session_user,
        coalesce(nullif(array_to_string(onerepl.allowed_list(added.id), ', '), ''), 'nothing')));
    PERFORM onerepl.wake_at_commit(false, true);
    PERFORM onerepl.warn_of_obstacle(added.role);
    RETURN added.id;
END $$;
COMMENT ON FUNCTION onerepl_add_remote(text, text, text[], interval, interval) IS
'Makes this database the central of a remote: what the remote sends is written here.
The link is bound to the first database that speaks with this secret (P10). It starts at the number that the remote says (P17).
The setting onerepl.listen must name an address in this database.
  name: name of the link, for you.
  secret: the same as at the remote; at least 16 characters.
  tables: what the link may write here, as onerepl_allow takes it, which adds to it later (P18). ''{}'' (default): nothing;
    ''{public.*}'': all of a schema; ''{*}'': everything.
  reply_timeout: overrides the setting of this name for this link; null (default): the setting.
  state_query_interval: overrides the setting of this name for this link; null (default): the setting.
Returns: the id of the link in onerepl.link.
Errors: 42710 when the name is taken, or another link has the secret; 22023 when the name is empty, or a secret, interval or entry
    of tables cannot be.
See: docs/first-copy.md, docs/security.md, onerepl_add_central, onerepl_allow, P10, P17, P18';

CREATE FUNCTION onerepl_change_link(name text, url text DEFAULT NULL, secret text DEFAULT NULL) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    changed onerepl.link := onerepl.get_link(name, CASE WHEN url IS NOT NULL THEN 'remote' END);
    what text := concat_ws(' and ', CASE WHEN url IS NOT NULL THEN 'url' END, CASE WHEN secret IS NOT NULL THEN 'secret' END);
BEGIN
    changed.url := coalesce(url, changed.url);
    PERFORM onerepl.check_link(changed);
    IF secret IS NOT NULL THEN
        PERFORM onerepl.set_secret(changed, secret);
    END IF;
    -- A wrong peer (stop 4) is what this may have mended; if not, the first exchange stops the link again.
    UPDATE onerepl.link AS l SET url = coalesce(onerepl_change_link.url, l.url),
                                 stop = CASE l.stop WHEN 4 THEN 0 ELSE l.stop END
        WHERE l.id = changed.id;
    PERFORM onerepl.write_journal(0, changed.id, 'P11', format('%s of link "%s" changed by %s', what, changed.name, session_user))
        WHERE what <> '';
    PERFORM onerepl.wake_at_commit(changed.role = 'remote', changed.role = 'central');
END $$;
COMMENT ON FUNCTION onerepl_change_link(text, text, text) IS
'Changes where a link leads, or its secret.
Numbers and what waits are kept: it must be the same database at the other end (P9).
A link that has stopped because another database spoke goes on.
  name: name of the link.
  url: as in onerepl_add_central, at the remote only; null (default): as it is.
  secret: the new one; null (default): as it is. Change it at both ends: until then nothing is taken.
Errors: 42704 when there is no such link; 42710 when another link has the secret; 55000 when a url is given at the central;
    22023 when a url or secret cannot be; 0A000 when the url is https.
See: docs/stopped-links.md, P9';

CREATE FUNCTION onerepl.remove_link(name text, role text) RETURNS void
    LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    removed onerepl.link := onerepl.get_link(name, role);
BEGIN
    DELETE FROM onerepl.received AS r WHERE r.link = removed.id;
    DELETE FROM onerepl.link AS l WHERE l.id = removed.id;
    PERFORM onerepl.write_journal(1, removed.id, 'P11', format('link "%s" was removed by %s', removed.name, session_user));
    PERFORM onerepl.wake_at_commit(removed.role = 'remote', removed.role = 'central');
END $$;
COMMENT ON FUNCTION onerepl.remove_link(text, text) IS 'What onerepl_remove_central and onerepl_remove_remote share.';

CREATE FUNCTION onerepl.lock_central(link int) RETURNS void
    LANGUAGE sql
    SET search_path = pg_catalog, pg_temp AS $$
    SELECT pg_advisory_xact_lock(x'6f6e6572'::int, lock_central.link)
$$;
COMMENT ON FUNCTION onerepl.lock_central(int) IS
'Waits until no receiver works for the link, and keeps them off until the end of the transaction (src/receiver/link_lock.h).';

CREATE FUNCTION onerepl_remove_central(name text) RETURNS void
    LANGUAGE sql SECURITY DEFINER
    SET search_path = pg_catalog, pg_temp AS $$ SELECT onerepl.remove_link(name, 'remote') $$;
COMMENT ON FUNCTION onerepl_remove_central(text) IS
'Ends the link to a central.
What the central has not confirmed is not sent any more, and the log no longer waits for it. The tables stay tracked.
  name: name of the link.
Errors: 42704 when there is no such link; 55000 when the link is one to a remote.
See: docs/uninstall.md, onerepl_remove_table';

CREATE FUNCTION onerepl_remove_remote(name text) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    freed regclass;
BEGIN
    PERFORM onerepl.lock_central((onerepl.get_link(name, 'central')).id);
    -- Tables that no other remote writes become writable for everybody again (P8).
    FOR freed IN
        SELECT g.relation FROM onerepl.guarded AS g JOIN onerepl.link AS l ON l.id = g.link
        GROUP BY g.relation HAVING bool_and(l.name = onerepl_remove_remote.name)
    LOOP
        PERFORM onerepl.drop_triggers(freed, '!onerepl_guard%');
    END LOOP;
    PERFORM onerepl.remove_link(name, 'central');
END $$;
COMMENT ON FUNCTION onerepl_remove_remote(text) IS
'Ends the link to a remote.
What waits in the queue is dropped. Rows stay.
The tables that only this remote wrote may be written by everybody again (P8).
  name: name of the link.
Errors: 42704 when there is no such link; 55000 when the link is one to a central.
See: docs/uninstall.md, onerepl_promote, P8';

CREATE FUNCTION onerepl_restart_link(name text, unbind bool DEFAULT true, read_point int8 DEFAULT NULL) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    restarted onerepl.link := onerepl.get_link(name);
BEGIN
    IF restarted.role = 'central' AND read_point IS NOT NULL THEN
        RAISE EXCEPTION 'a read point can only be given at the remote' USING ERRCODE = 'object_not_in_prerequisite_state';
    END IF;
    IF restarted.role = 'remote' THEN
        PERFORM onerepl.restart_as_remote(restarted.id, read_point);
    ELSE
        PERFORM onerepl.restart_as_central(restarted.id);
    END IF;
    IF unbind THEN
        UPDATE onerepl.link AS l SET peer = NULL WHERE l.id = restarted.id;
    END IF;
    DELETE FROM onerepl.contact AS c WHERE c.link = restarted.id;
    PERFORM onerepl.write_journal(1, restarted.id, 'P9', format('link "%s" was started anew by %s', restarted.name, session_user));
    PERFORM onerepl.wake_at_commit(restarted.role = 'remote', restarted.role = 'central');
END $$;
COMMENT ON FUNCTION onerepl_restart_link(text, bool, int8) IS
'Starts a stopped link anew; call it at both ends, first at the central.
You answer for the tables: they must be the same in both databases when the remote calls it, or the remote calls onerepl_refresh
for them in the same transaction.
On the remote the link goes on after the newest number of the log, or at read_point. No number is given while the remote''s
transaction is open.
On the central everything known of the remote''s numbers is dropped, with what waits in the queue and the failures. The remote says
where to start.
  name: name of the link.
  unbind: true (default): binds the link to the next database that speaks with the secret; false: keeps the one it is bound to.
  read_point: on the remote, the log number from which mirroring reads; null (default): the one after the newest number. Give it
    when you know that the central''s tables hold all before it and nothing after it, or refresh them.
Errors: 42704 when there is no such link; 55000 when a read point is given at the central; 22023 when the read point is past M + 1
    (LIDStart + 1 of a refresh that begins now), or when its record or a later one is purged.
See: docs/stopped-links.md, onerepl_refresh, P9';

CREATE FUNCTION onerepl.check_read_point(read_point int8) RETURNS void
    LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    last int8 := (SELECT h.last FROM onerepl.identity_at_last() AS h);
    first int8;
BEGIN
    -- Keeps the purge off until this link's position is known.
    LOCK TABLE onerepl.change_0, onerepl.change_1, onerepl.change_2, onerepl.change_3 IN ACCESS SHARE MODE;
    first := onerepl.first_number();
    IF read_point > last + 1 THEN
        RAISE EXCEPTION 'read point % is past the newest number', read_point USING
            ERRCODE = 'invalid_parameter_value', DETAIL = format('The newest number of the log is %s.', last),
            HINT = format('The largest read point is %s, which is where a refresh that begins now starts.', last + 1);
    END IF;
    IF read_point < first OR onerepl.identity_at(read_point - 1) IS NULL THEN
        RAISE EXCEPTION 'read point % is purged', read_point USING
            ERRCODE = 'invalid_parameter_value', DETAIL = format('The log can be read from number %s on.', first),
            HINT = 'See the setting onerepl.log_retention; without a read point the link starts after the newest number.';
    END IF;
END $$;
COMMENT ON FUNCTION onerepl.check_read_point(int8) IS 'Errors: 22023 unless all records from the read point on can be read.';

CREATE FUNCTION onerepl.set_capture_stopped(stopped bool) RETURNS void
    LANGUAGE c STRICT AS 'MODULE_PATHNAME', 'onerepl_set_capture_stopped'
    SET search_path = pg_catalog, pg_temp;
COMMENT ON FUNCTION onerepl.set_capture_stopped(bool) IS
'Tells all sessions at once whether changes are captured (P7); onerepl.log_state tells it across restarts.';

CREATE FUNCTION onerepl.wait_for_writers() RETURNS void
    LANGUAGE c AS 'MODULE_PATHNAME', 'onerepl_wait_for_writers'
    SET search_path = pg_catalog, pg_temp;
COMMENT ON FUNCTION onerepl.wait_for_writers() IS
'Waits until every other transaction has ended that has written a tracked table up to now. Nobody waits for the caller.';

CREATE FUNCTION onerepl.resume_capture() RETURNS void
    LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    UPDATE onerepl.log_state AS s SET capture_stopped = false;
    PERFORM onerepl.set_capture_stopped(false);
    -- A transaction that began to write while nothing was captured is not captured to its end: what it writes must be there before
    -- the tables are copied or called equal.
    PERFORM onerepl.wait_for_writers();
EXCEPTION WHEN query_canceled OR OTHERS THEN
    PERFORM onerepl.set_capture_stopped(true);
    RAISE;
END $$;
COMMENT ON FUNCTION onerepl.resume_capture() IS 'Capture goes on after it was stopped at the log''s limit (P7).';

CREATE FUNCTION onerepl.start_after_last(link int) RETURNS void
    LANGUAGE sql
    SET search_path = pg_catalog, pg_temp AS $$
    SELECT onerepl.hold_numbering();
    SELECT onerepl.end_refreshes(start_after_last.link);
    DELETE FROM onerepl.blocked AS b WHERE b.link = start_after_last.link;
    UPDATE onerepl.link AS l SET stop = 0, stop_detail = NULL, start = h.last, start_identity = h.identity, challenge = gen_random_uuid(),
                                 database = onerepl.database_id()
        FROM onerepl.identity_at_last() AS h WHERE l.id = start_after_last.link;
    -- One from a dump was there before anything of this log.
    UPDATE onerepl.filter AS f SET after = 0, database = onerepl.database_id()
        WHERE f.link = start_after_last.link AND f.database <> onerepl.database_id();
$$;
COMMENT ON FUNCTION onerepl.start_after_last(int) IS 'Lets a link of the remote begin after the newest number, as if it were new.';

CREATE FUNCTION onerepl.forget_position(link int) RETURNS void
    LANGUAGE sql
    SET search_path = pg_catalog, pg_temp AS $$
    -- The newest counts, so it is also above those that the sender adds until it sees the new start.
    INSERT INTO onerepl.sent_progress (link, seq, sent, confirmed)
        SELECT l.id, coalesce((SELECT max(p.seq) FROM onerepl.sent_progress AS p WHERE p.link = l.id), 0) + 1000000, l.start, l.start
        FROM onerepl.link AS l WHERE l.id = forget_position.link;
    DELETE FROM onerepl.sent_progress AS p WHERE p.link = forget_position.link
        AND p.seq < (SELECT max(q.seq) FROM onerepl.sent_progress AS q WHERE q.link = forget_position.link)
$$;
COMMENT ON FUNCTION onerepl.forget_position(int) IS 'A link of the remote has got another start: nothing after it is sent or confirmed.';

CREATE FUNCTION onerepl.restart_as_remote(link int, read_point int8) RETURNS void
    LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
    other onerepl.link;
BEGIN
    IF (SELECT s.capture_stopped FROM onerepl.log_state AS s) THEN
        PERFORM onerepl.resume_capture();
        -- What was not captured is missing for every link: the others stop until they are started anew, too.
        FOR other IN SELECT * FROM onerepl.link AS l WHERE l.role = 'remote' AND l.id <> restart_as_remote.link LOOP
            PERFORM onerepl.start_after_last(other.id);
            PERFORM onerepl.forget_position(other.id);
            UPDATE onerepl.link AS l SET stop = 3 WHERE l.id = other.id;
            PERFORM onerepl.write_journal(2, other.id, 'P7',
                format('link "%s" lacks what was changed while capture was stopped', other.name),
                'Call onerepl_restart_link at the central, then here, with onerepl_refresh in one transaction.');
        END LOOP;
    END IF;
    PERFORM onerepl.start_after_last(restart_as_remote.link);
    IF restart_as_remote.read_point IS NOT NULL THEN
        PERFORM onerepl.check_read_point(restart_as_remote.read_point);
        UPDATE onerepl.link AS l SET start = restart_as_remote.read_point - 1,
                                     start_identity = onerepl.identity_at(restart_as_remote.read_point - 1)
            WHERE l.id = restart_as_remote.link;
    END IF;
    PERFORM onerepl.forget_position(restart_as_remote.link);
    PERFORM onerepl.describe_tracked();
END $$;
COMMENT ON FUNCTION onerepl.restart_as_remote(int, int8) IS 'A''s part of onerepl_restart_link. Capture goes on if it was stopped.';

CREATE FUNCTION onerepl.restart_as_central(link int) RETURNS void
    LANGUAGE sql
    SET search_path = pg_catalog, pg_temp AS $$
    SELECT onerepl.lock_central(restart_as_central.link);
    -- First: then no receiver without that lock adds to the queue what belongs to the start before (P20).
    UPDATE onerepl.link AS l SET stop = 0, stop_detail = NULL, start = NULL, start_identity = NULL, challenge = gen_random_uuid(),
                                 database = onerepl.database_id() WHERE l.id = restart_as_central.link;
    DELETE FROM onerepl.apply_progress AS a WHERE a.link = restart_as_central.link;
    DELETE FROM onerepl.waiting AS w WHERE w.link = restart_as_central.link;
    DELETE FROM onerepl.failure AS f WHERE f.link = restart_as_central.link;
    DELETE FROM onerepl.received AS r WHERE r.link = restart_as_central.link;
    DELETE FROM onerepl.remote_description AS d WHERE d.link = restart_as_central.link;
    DELETE FROM onerepl.foreign_position AS p WHERE p.link = restart_as_central.link;
    DELETE FROM onerepl.sequence_state AS s WHERE s.link = restart_as_central.link;
    DELETE FROM onerepl.refresh_window AS w WHERE w.link = restart_as_central.link;
    DELETE FROM onerepl.verified AS v WHERE v.link = restart_as_central.link;
    DELETE FROM onerepl.difference AS d WHERE d.link = restart_as_central.link;
    DELETE FROM onerepl.differing_row AS d WHERE d.link = restart_as_central.link;
$$;
COMMENT ON FUNCTION onerepl.restart_as_central(int) IS 'B''s part of onerepl_restart_link.';

CREATE FUNCTION onerepl.set_paused(name text, paused bool) RETURNS void
    LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_variable
DECLARE
    changed onerepl.link := onerepl.get_link(name);
BEGIN
    IF changed.paused = paused THEN
        RETURN;
    END IF;
    UPDATE onerepl.link AS l SET paused = set_paused.paused WHERE l.id = changed.id;
    PERFORM onerepl.write_journal(0, changed.id, 'P11', format('link "%s" was %s by %s', changed.name,
                                                               CASE WHEN paused THEN 'paused' ELSE 'resumed' END, session_user));
    PERFORM onerepl.wake_at_commit(changed.role = 'remote', changed.role = 'central');
END $$;
COMMENT ON FUNCTION onerepl.set_paused(text, bool) IS 'What onerepl_pause and onerepl_resume share.';

CREATE FUNCTION onerepl_pause(link text) RETURNS void
    LANGUAGE sql SECURITY DEFINER
    SET search_path = pg_catalog, pg_temp AS $$ SELECT onerepl.set_paused(link, true) $$;
COMMENT ON FUNCTION onerepl_pause(text) IS
'Pauses a link until onerepl_resume.
On the remote nothing more is sent, on the central nothing more is written. Contact is kept, and nothing is lost.
Pausing a paused link changes nothing.
  link: name of the link.
Errors: 42704 when there is no such link.
See: onerepl_resume, P2, P11';

CREATE FUNCTION onerepl_resume(link text) RETURNS void
    LANGUAGE sql SECURITY DEFINER
    SET search_path = pg_catalog, pg_temp AS $$ SELECT onerepl.set_paused(link, false) $$;
COMMENT ON FUNCTION onerepl_resume(text) IS
'Ends what onerepl_pause began.
  link: name of the link.
Errors: 42704 when there is no such link.
See: onerepl_pause';
