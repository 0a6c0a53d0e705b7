-- What the functions of the administrator share. Nothing here is for others: 70_rights.sql takes EXECUTE from everybody.

CREATE FUNCTION onerepl.wake_at_commit(sender bool, receivers bool) RETURNS void
    LANGUAGE c STRICT AS 'MODULE_PATHNAME', 'onerepl_wake_at_commit'
    SET search_path = pg_catalog, pg_temp;
CREATE FUNCTION onerepl.obstacle(central bool, version text) RETURNS text[]
    LANGUAGE c STABLE STRICT AS 'MODULE_PATHNAME', 'onerepl_obstacle'
    SET search_path = pg_catalog, pg_temp;
COMMENT ON FUNCTION onerepl.obstacle(bool, text) IS
'What keeps every link of this database from working, and what to do about it; null: nothing is known to. central: whether it '
'is about links on which this database is the central; version: of the extension.';

CREATE FUNCTION onerepl.obstacle(role text, OUT state text, OUT what_to_do text)
    LANGUAGE sql STABLE
    SET search_path = pg_catalog, pg_temp AS $$
    SELECT 'not working: ' || o.texts[1], o.texts[2]
    FROM pg_extension AS e CROSS JOIN LATERAL (SELECT onerepl.obstacle(obstacle.role = 'central', e.extversion)) AS o (texts)
    WHERE e.extname = 'onerepl' AND o.texts IS NOT NULL
$$;
COMMENT ON FUNCTION onerepl.obstacle(text) IS 'The same as a state of onerepl_status(), for a link''s role in this database.';

CREATE FUNCTION onerepl.warn_of_obstacle(role text) RETURNS void
    LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    found record;
BEGIN
    SELECT o.* INTO found FROM onerepl.obstacle(role) AS o;
    IF found.state IS NOT NULL THEN
        RAISE WARNING '%', found.state USING HINT = found.what_to_do;
    END IF;
END $$;
COMMENT ON FUNCTION onerepl.warn_of_obstacle(text) IS 'A WARNING of the set-up calls where the link that they make cannot work yet.';

COMMENT ON FUNCTION onerepl.wake_at_commit(bool, bool) IS
'Wakes this database''s sender, receivers (and the launcher) once the current transaction has committed, and has them look into '
'the tables again: what they know of links, blocked records, refreshes and failures is in their memory.';

CREATE FUNCTION onerepl.link_changed() RETURNS trigger
    LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    PERFORM onerepl.wake_at_commit(true, true);
    RETURN NULL;
END $$;
COMMENT ON FUNCTION onerepl.link_changed() IS
'Trigger of onerepl.link: whoever changes a link, the workers learn of it.';
CREATE TRIGGER changed AFTER INSERT OR UPDATE OR DELETE ON onerepl.link
    FOR EACH STATEMENT EXECUTE FUNCTION onerepl.link_changed();
ALTER TABLE onerepl.link ENABLE ALWAYS TRIGGER changed;

CREATE FUNCTION onerepl.write_journal(level int, link int, rule text, message text, hint text DEFAULT NULL,
                                      first int8 DEFAULT NULL, last int8 DEFAULT NULL) RETURNS void
    LANGUAGE c AS 'MODULE_PATHNAME', 'onerepl_write_journal'
    SET search_path = pg_catalog, pg_temp;
COMMENT ON FUNCTION onerepl.write_journal(int, int, text, text, text, int8, int8) IS
'Writes a journal entry in the current transaction. level: 0 information, 1 warning, 2 critical; link: onerepl.link.id or null; '
'rule: the specification''s name of the rule that speaks. Entries below onerepl.journal_level are dropped; a critical one also '
'goes to the server log and, once the transaction has committed, to onerepl.alert_command.';

CREATE FUNCTION onerepl.get_link(name text, role text DEFAULT NULL) RETURNS onerepl.link
    LANGUAGE plpgsql STABLE
    SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    found onerepl.link;
BEGIN
    SELECT * INTO found FROM onerepl.link AS l WHERE l.name = get_link.name;
    IF found.id IS NULL THEN
        RAISE EXCEPTION 'link "%" does not exist', get_link.name USING
            ERRCODE = 'undefined_object',
            HINT = 'onerepl_status() lists the links of this database.';
    END IF;
    IF get_link.role IS NOT NULL AND found.role <> get_link.role THEN
        RAISE EXCEPTION 'link "%" is not one on which this database is the %', get_link.name, get_link.role USING
            ERRCODE = 'object_not_in_prerequisite_state',
            DETAIL = format('On link "%s" this database is the %s.', get_link.name, found.role),
            HINT = format('Call the function in the database at the other end of the link.');
    END IF;
    RETURN found;
END $$;
COMMENT ON FUNCTION onerepl.get_link(text, text) IS
'The link of that name. Errors: 42704 if there is none, 55000 if this database has not the role given.';

CREATE FUNCTION onerepl.identity_at_last(OUT last int8, OUT identity bytea)
    LANGUAGE sql STABLE
    SET search_path = pg_catalog, pg_temp AS $$
    SELECT coalesce(b.last, 0),
           coalesce(substr(sha256(b.identity_before || b.random || int8send(b.last)), 1, 16), uuid_send(d.id))
    FROM onerepl.database AS d
    LEFT JOIN (SELECT * FROM onerepl.batch ORDER BY first DESC LIMIT 1) AS b ON true
$$;
COMMENT ON FUNCTION onerepl.identity_at_last() IS
'M_a and the identity of the history there (P9), as src/core/history.h computes it.';

CREATE FUNCTION onerepl.check_secret(secret text) RETURNS void
    LANGUAGE plpgsql IMMUTABLE
    SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF secret IS NULL OR length(secret) < 16 THEN
        RAISE EXCEPTION 'secret is too short' USING
            ERRCODE = 'invalid_parameter_value',
            DETAIL = 'A secret has at least 16 characters.',
            HINT = 'Use the same secret at both ends of the link, for example what "openssl rand -hex 32" prints.';
    END IF;
END $$;
COMMENT ON FUNCTION onerepl.check_secret(text) IS 'Errors: 22023 if the secret is shorter than 16 characters (P10).';

CREATE FUNCTION onerepl.key_of(signer text, secret text) RETURNS bytea
    LANGUAGE sql IMMUTABLE
    SET search_path = pg_catalog, pg_temp AS $$
    SELECT sha256(convert_to(format(E'onerepl 1 %s\n%s', signer, secret), 'UTF8'))
$$;
COMMENT ON FUNCTION onerepl.key_of(text, text) IS
'The key of the bodies of a link''s remote or central (signer), as docs/protocol/wire.md says: another one each way (P10).';

CREATE FUNCTION onerepl.set_secret(link onerepl.link, secret text) RETURNS void
    LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    own bytea := onerepl.key_of(link.role, secret);
    other bytea := onerepl.key_of(CASE link.role WHEN 'remote' THEN 'central' ELSE 'remote' END, secret);
BEGIN
    PERFORM onerepl.check_secret(secret);
    LOCK TABLE onerepl.link_key IN SHARE ROW EXCLUSIVE MODE;
    IF EXISTS (SELECT FROM onerepl.link_key AS k
               WHERE k.link <> (set_secret.link).id AND own IN (k.signs_with, k.checks_with)) THEN
        RAISE EXCEPTION 'another link has this secret' USING
            ERRCODE = 'duplicate_object',
            DETAIL = 'Whoever is at the other end of that link could speak on this one.',
            HINT = 'Give each link a secret of its own, for example what "openssl rand -hex 32" prints.';
    END IF;
    INSERT INTO onerepl.link_key VALUES (link.id, own, other)
        ON CONFLICT ON CONSTRAINT link_key_pkey DO UPDATE SET signs_with = own, checks_with = other;
END $$;
COMMENT ON FUNCTION onerepl.set_secret(onerepl.link, text) IS
'Stores the keys of a link that exists. Errors: 22023 the secret is too short; 42710 another link of this database has it, whichever way it leads.';

CREATE FUNCTION onerepl.check_url(url text) RETURNS void
    LANGUAGE plpgsql IMMUTABLE
    SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF url ~* '^https://' THEN
        RAISE EXCEPTION 'https is not supported yet' USING
            ERRCODE = 'feature_not_supported',
            DETAIL = 'Messages are authenticated with the secret of the link, but not encrypted.',
            HINT = 'Use http:// through an encrypted tunnel, such as a VPN or a TLS proxy.';
    END IF;
    IF url IS NULL OR url !~* '^http://([^][/:@?#[:space:][:cntrl:]]+|\[[0-9a-f:.]+\])(:[0-9]{1,5})?(/[^?#[:space:][:cntrl:]]*)?$'
       OR substring(url FROM '^[^/]*//(?:\[[^]]*\]|[^/:]*):([0-9]+)')::int NOT BETWEEN 1 AND 65535
    THEN
        RAISE EXCEPTION 'invalid url "%"', url USING
            ERRCODE = 'invalid_parameter_value',
            HINT = 'Give it as http://host:port or http://host:port/path, where the central listens (its setting onerepl.listen).';
    END IF;
END $$;
COMMENT ON FUNCTION onerepl.check_url(text) IS
'Errors: 22023 if the url is not http://host[:port][/path], 0A000 for https.';

CREATE FUNCTION onerepl.check_interval(name text, value interval) RETURNS void
    LANGUAGE plpgsql IMMUTABLE
    SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF value <= interval '0' THEN
        RAISE EXCEPTION '% must be greater than zero', name USING ERRCODE = 'invalid_parameter_value';
    END IF;
END $$;
COMMENT ON FUNCTION onerepl.check_interval(text, interval) IS 'Errors: 22023 unless the interval is null or positive.';

CREATE FUNCTION onerepl.check_link(wanted onerepl.link) RETURNS void
    LANGUAGE plpgsql IMMUTABLE
    SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF wanted.role = 'remote' THEN
        PERFORM onerepl.check_url(wanted.url);
    END IF;
    PERFORM onerepl.check_interval('reply_timeout', wanted.reply_timeout);
    PERFORM onerepl.check_interval('state_query_interval', wanted.state_query_interval);
    PERFORM onerepl.check_interval('send_interval', wanted.send_interval);
END $$;
COMMENT ON FUNCTION onerepl.check_link(onerepl.link) IS
'Of what the administrator says of a link. Errors: 22023 a url or interval that cannot be; 0A000 https.';

CREATE FUNCTION onerepl.effective_interval(override interval, setting text, fallback interval) RETURNS interval
    LANGUAGE sql STABLE
    SET search_path = pg_catalog, pg_temp AS $$
    SELECT coalesce(override, current_setting(setting, true)::interval, fallback)
$$;
COMMENT ON FUNCTION onerepl.effective_interval(interval, text, interval) IS
'A link''s own value of a setting, else the setting, else (the library is not loaded) what is given.';

CREATE FUNCTION onerepl.check_link_name(name text) RETURNS void
    LANGUAGE plpgsql STABLE
    SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF coalesce(check_link_name.name, '') = '' THEN
        RAISE EXCEPTION 'a link needs a name' USING ERRCODE = 'invalid_parameter_value';
    END IF;
    IF EXISTS (SELECT FROM onerepl.link AS l WHERE l.name = check_link_name.name) THEN
        RAISE EXCEPTION 'link "%" already exists', check_link_name.name USING
            ERRCODE = 'duplicate_object',
            HINT = 'Choose another name, or remove the link first.';
    END IF;
END $$;
COMMENT ON FUNCTION onerepl.check_link_name(text) IS 'Errors: 22023 if the name is empty, 42710 if there is a link of that name.';

CREATE FUNCTION onerepl.sent_to(link int) RETURNS int8
    LANGUAGE sql STABLE
    SET search_path = pg_catalog, pg_temp AS $$
    SELECT coalesce((SELECT p.sent FROM onerepl.sent_progress AS p WHERE p.link = sent_to.link ORDER BY p.seq DESC LIMIT 1),
                    (SELECT l.start FROM onerepl.link AS l WHERE l.id = sent_to.link), 0)
$$;
COMMENT ON FUNCTION onerepl.sent_to(int) IS 'The last number that left state L on the link (the remote).';

CREATE FUNCTION onerepl.confirmed_to(link int) RETURNS int8
    LANGUAGE sql STABLE
    SET search_path = pg_catalog, pg_temp AS $$
    SELECT coalesce((SELECT p.confirmed FROM onerepl.sent_progress AS p WHERE p.link = confirmed_to.link ORDER BY p.seq DESC LIMIT 1),
                    (SELECT l.start FROM onerepl.link AS l WHERE l.id = confirmed_to.link), 0)
$$;
COMMENT ON FUNCTION onerepl.confirmed_to(int) IS 'S_a of the link (the remote).';

CREATE FUNCTION onerepl.written_to(link int) RETURNS int8
    LANGUAGE sql STABLE
    SET search_path = pg_catalog, pg_temp AS $$
    SELECT coalesce((SELECT a.written FROM onerepl.apply_progress AS a WHERE a.link = written_to.link ORDER BY a.seq DESC LIMIT 1),
                    (SELECT l.start FROM onerepl.link AS l WHERE l.id = written_to.link), 0)
$$;
COMMENT ON FUNCTION onerepl.written_to(int) IS 'S_b of the link (the central).';

CREATE FUNCTION onerepl.writing(link int, OUT process int, OUT first int8, OUT last int8, OUT since timestamptz, OUT until timestamptz)
    LANGUAGE c STRICT VOLATILE AS 'MODULE_PATHNAME', 'onerepl_writing'
    SET search_path = pg_catalog, pg_temp;
COMMENT ON FUNCTION onerepl.writing(int) IS
'The numbers of a link that a receiver of this central writes just now (until is null), or wrote last; nulls: none. That '
'receiver answers nobody meanwhile.';

CREATE FUNCTION onerepl.trouble(link int) RETURNS text
    LANGUAGE c STRICT VOLATILE AS 'MODULE_PATHNAME', 'onerepl_trouble'
    SET search_path = pg_catalog, pg_temp;
COMMENT ON FUNCTION onerepl.trouble(int) IS
'Why the central could not take the last body of the link, with its SQLSTATE; null: it could. Known without a table.';

CREATE FUNCTION onerepl.qualified_name(relation regclass) RETURNS text
    LANGUAGE sql STABLE
    SET search_path = pg_catalog, pg_temp AS $$
    SELECT format('%I.%I', n.nspname, c.relname) FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
    WHERE c.oid = relation
$$;
COMMENT ON FUNCTION onerepl.qualified_name(regclass) IS 'Schema and name, quoted as needed; null if there is no such relation.';

CREATE FUNCTION onerepl.table_of(classid oid, objid oid) RETURNS oid
    LANGUAGE sql STABLE
    SET search_path = pg_catalog, pg_temp AS $$
    SELECT CASE table_of.classid
        WHEN 'pg_class'::regclass THEN table_of.objid
        WHEN 'pg_trigger'::regclass THEN (SELECT t.tgrelid FROM pg_trigger AS t WHERE t.oid = table_of.objid)
        WHEN 'pg_rewrite'::regclass THEN (SELECT w.ev_class FROM pg_rewrite AS w WHERE w.oid = table_of.objid)
        WHEN 'pg_policy'::regclass THEN (SELECT p.polrelid FROM pg_policy AS p WHERE p.oid = table_of.objid)
        WHEN 'pg_constraint'::regclass THEN (SELECT nullif(k.conrelid, 0) FROM pg_constraint AS k WHERE k.oid = table_of.objid)
        WHEN 'pg_statistic_ext'::regclass THEN (SELECT s.stxrelid FROM pg_statistic_ext AS s WHERE s.oid = table_of.objid) END
$$;
COMMENT ON FUNCTION onerepl.table_of(oid, oid) IS
'The table of a trigger, rule, policy, constraint or statistics object; a relation itself; null: the object belongs to none.';

CREATE FUNCTION onerepl.table_at(address text[]) RETURNS oid
    LANGUAGE sql STABLE
    SET search_path = pg_catalog, pg_temp AS $$
    SELECT to_regclass(format('%I.%I', address[1], address[2]))::oid
$$;
COMMENT ON FUNCTION onerepl.table_at(text[]) IS
'The same of one that is gone, by address_names of pg_event_trigger_dropped_objects(); null: the table is gone, too.';
