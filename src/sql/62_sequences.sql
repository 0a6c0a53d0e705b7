-- Sequences follow, so that a central can be promoted (P17).

CREATE TABLE onerepl.tracked_sequence (
    relation    regclass PRIMARY KEY,
    added_at    timestamptz NOT NULL DEFAULT now()
);
COMMENT ON TABLE onerepl.tracked_sequence IS
'The remote''s: sequences that are tracked by themselves; those that belong to columns of tracked tables are anyway.';
SELECT pg_extension_config_dump('onerepl.tracked_sequence', 'WHERE relation IN (SELECT oid FROM pg_catalog.pg_class)');

CREATE TABLE onerepl.sequence_record (
    n       int8 PRIMARY KEY,
    body    bytea NOT NULL
);
COMMENT ON TABLE onerepl.sequence_record IS
'The remote''s: records of sequences'' values (src/sender/sequence_taker.h), until all links have confirmed them.';
COMMENT ON COLUMN onerepl.sequence_record.body IS 'core/record.h.';

CREATE TABLE onerepl.sequence_state (
    link        int NOT NULL REFERENCES onerepl.link ON DELETE CASCADE,
    schema      text NOT NULL,
    name        text NOT NULL,
    last_value  int8 NOT NULL,
    is_called   bool NOT NULL,
    is_here     bool NOT NULL,
    PRIMARY KEY (link, schema, name)
) WITH (fillfactor = 50);
COMMENT ON TABLE onerepl.sequence_state IS 'The central''s: where the remote''s sequences stood at S_b, or further on.';
COMMENT ON COLUMN onerepl.sequence_state.is_here IS 'A sequence of that name was here when it was told.';

CREATE VIEW onerepl.followed_sequence AS
    SELECT c.oid AS relation, n.nspname AS schema, c.relname AS name
    FROM pg_catalog.pg_class AS c JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
    WHERE c.relkind = 'S' AND c.relpersistence <> 't'
      AND (c.oid IN (SELECT t.relation::oid FROM onerepl.tracked_sequence AS t)
           OR EXISTS (SELECT FROM pg_catalog.pg_depend AS d JOIN onerepl.tracked AS t ON t.relation = d.refobjid
                      WHERE d.classid = 'pg_class'::regclass AND d.objid = c.oid AND d.refclassid = 'pg_class'::regclass
                        AND d.deptype IN ('a', 'i')));

CREATE FUNCTION onerepl.sequence_here(link int, schema text, name text) RETURNS text
    LANGUAGE plpgsql STABLE
    SET search_path = pg_catalog, pg_temp AS $$
-- Not SQL: its plan is kept, and every record of sequences asks.
DECLARE
    schema_here text;
    is_shared bool;
BEGIN
    SELECT max(t.schema) FILTER (WHERE t.remote_table = ''), bool_or(t.branch IS NOT NULL) INTO schema_here, is_shared
        FROM onerepl.target AS t WHERE t.link = sequence_here.link AND t.remote_schema = sequence_here.schema;
    RETURN CASE WHEN is_shared THEN NULL ELSE format('%I.%I', coalesce(schema_here, sequence_here.schema), sequence_here.name) END;
END $$;
COMMENT ON FUNCTION onerepl.sequence_here(int, text, text) IS
'What a sequence of the remote is called here; null where several remotes share tables, which no sequence of one of them fits.';

CREATE FUNCTION onerepl.sequence_in_reach(link int, schema text, name text, value int8,
                                          OUT sequence regclass, OUT reason text, OUT hint text, OUT is_beyond bool)
    LANGUAGE plpgsql STABLE
    SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_variable
DECLARE
    found record;
BEGIN
    SELECT s.seqrelid, n.nspname AS schema, c.relname AS name, value NOT BETWEEN s.seqmin AND s.seqmax AS is_beyond INTO found
        FROM pg_sequence AS s JOIN pg_class AS c ON c.oid = s.seqrelid JOIN pg_namespace AS n ON n.oid = c.relnamespace
        WHERE s.seqrelid = to_regclass(onerepl.sequence_here(link, schema, name));
    IF found.seqrelid IS NULL THEN
        RETURN;
    END IF;
    sequence := found.seqrelid;
    SELECT r.reason, r.hint INTO reason, hint FROM onerepl.why_out_of_reach(link, sequence, found.schema, found.name, false, false) AS r;
    is_beyond := found.is_beyond;
END $$;
COMMENT ON FUNCTION onerepl.sequence_in_reach(int, text, text, int8) IS
'The sequence here of one of the remote; null: there is none. reason, hint: why the link may not set it (P18); null: it may. '
'is_beyond: the value does not fit its bounds.';

CREATE FUNCTION onerepl.check_sequence(link int, schema text, name text, value int8) RETURNS void
    LANGUAGE plpgsql STABLE
    SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    here record;
BEGIN
    SELECT * INTO here FROM onerepl.sequence_in_reach(check_sequence.link, check_sequence.schema, check_sequence.name, check_sequence.value);
    IF here.reason IS NOT NULL THEN
        RAISE EXCEPTION 'link "%" may not set sequence %', (SELECT l.name FROM onerepl.link AS l WHERE l.id = check_sequence.link), here.sequence USING
            ERRCODE = 'insufficient_privilege', DETAIL = here.reason, HINT = here.hint;
    ELSIF here.is_beyond THEN
        RAISE EXCEPTION 'sequence % cannot be set to the remote''s value %', here.sequence, check_sequence.value USING
            ERRCODE = 'numeric_value_out_of_range',
            HINT = 'Give it the bounds that the remote''s has (ALTER SEQUENCE), then resolve the record with ''retry''.';
    END IF;
END $$;
COMMENT ON FUNCTION onerepl.check_sequence(int, text, text, int8) IS
'Errors: 42501 the link may not set the sequence (P18), 22003 the value is beyond its bounds.';

CREATE FUNCTION onerepl.set_sequence(link int, schema text, name text, last_value int8, is_called bool) RETURNS void
    LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_variable
DECLARE
    here record;
    is_new bool;
BEGIN
    SELECT * INTO here FROM onerepl.sequence_in_reach(link, schema, name, last_value);
    INSERT INTO onerepl.sequence_state AS s (link, schema, name, last_value, is_called, is_here)
        VALUES (link, schema, name, last_value, is_called, here.sequence IS NOT NULL)
        ON CONFLICT ON CONSTRAINT sequence_state_pkey
            DO UPDATE SET last_value = excluded.last_value, is_called = excluded.is_called, is_here = excluded.is_here
        RETURNING s.xmax = 0 INTO is_new;
    IF here.sequence IS NULL THEN
        IF is_new AND onerepl.sequence_here(link, schema, name) IS NOT NULL THEN
            PERFORM onerepl.write_journal(1, link, 'P17', format('the remote''s sequence %I.%I is not here', schema, name),
                'Create it before this database is promoted.');
        END IF;
    ELSIF here.reason IS NULL AND NOT here.is_beyond THEN
        PERFORM setval(here.sequence, last_value, is_called);
    END IF;
END $$;
COMMENT ON FUNCTION onerepl.set_sequence(int, text, text, int8, bool) IS
'Notes on the central where a sequence of the remote stands, and sets the one of that name here, if there is one that the link may set and it fits.';

CREATE FUNCTION onerepl.bound_sequences(link int) RETURNS void
    LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    largest CONSTANT int := 10000;
BEGIN
    DELETE FROM onerepl.sequence_state AS s
        WHERE s.link = bound_sequences.link AND NOT s.is_here
          AND (s.schema, s.name) > (SELECT l.schema, l.name FROM onerepl.sequence_state AS l
                                    WHERE l.link = bound_sequences.link AND NOT l.is_here ORDER BY l.schema, l.name OFFSET largest - 1 LIMIT 1);
    IF FOUND THEN
        PERFORM onerepl.write_journal(1, link, 'P17', format('more than %s of the remote''s sequences are not here: the others are forgotten', largest),
            'Create those that are wanted before this database is promoted.');
    END IF;
END $$;
COMMENT ON FUNCTION onerepl.bound_sequences(int) IS
'Of sequences that a link''s remote tells of and that are not here, no more than 10,000 are kept: whatever it tells, it fills no disk here.';

CREATE FUNCTION onerepl.set_sequences(link int) RETURNS int
    LANGUAGE sql
    SET search_path = pg_catalog, pg_temp AS $$
    SELECT count(onerepl.set_sequence(s.link, s.schema, s.name, s.last_value, s.is_called) IS NULL)::int
    FROM onerepl.sequence_state AS s WHERE s.link = set_sequences.link
$$;
COMMENT ON FUNCTION onerepl.set_sequences(int) IS 'Sets all sequences of a link again; returns how many are known.';

CREATE FUNCTION onerepl.forget_other_sequences(link int, schemas text[], names text[]) RETURNS void
    LANGUAGE sql
    SET search_path = pg_catalog, pg_temp AS $$
    DELETE FROM onerepl.sequence_state AS s
        WHERE s.link = forget_other_sequences.link
          AND (s.schema, s.name) NOT IN (SELECT * FROM unnest(forget_other_sequences.schemas, forget_other_sequences.names))
$$;
COMMENT ON FUNCTION onerepl.forget_other_sequences(int, text[], text[]) IS
'Forgets where sequences of a link stood that are not among these: the remote has told all that it has.';

CREATE FUNCTION onerepl.track_sequence(relation regclass, tracked bool) RETURNS void
    LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
BEGIN
    IF tracked THEN
        INSERT INTO onerepl.tracked_sequence (relation) VALUES (track_sequence.relation) ON CONFLICT DO NOTHING;
    ELSE
        DELETE FROM onerepl.tracked_sequence AS t WHERE t.relation = track_sequence.relation;
    END IF;
    PERFORM onerepl.write_journal(0, NULL, 'P17', format('sequence %s is %s, by %s', track_sequence.relation,
        CASE WHEN tracked THEN 'tracked' ELSE 'no longer tracked by itself' END, session_user));
    PERFORM onerepl.wake_at_commit(true, false);
END $$;
COMMENT ON FUNCTION onerepl.track_sequence(regclass, bool) IS 'onerepl_add_sequence and onerepl_remove_sequence, after the rights were checked.';

CREATE FUNCTION onerepl_add_sequence(sequence regclass) RETURNS void
    LANGUAGE c STRICT AS 'MODULE_PATHNAME', 'onerepl_add_sequence'
    SET search_path = pg_catalog, pg_temp;
COMMENT ON FUNCTION onerepl_add_sequence(regclass) IS
'Lets a sequence follow at every central: it is set there, before the first change that was made when it stood so.
Sequences that belong to a column of a tracked table (serial, identity, OWNED BY) follow without it. nextval() costs nothing more.
  sequence: the sequence.
Errors: 42501 when you do not own the sequence; 42809 when it is not a sequence.
See: docs/sequences.md, onerepl_remove_sequence';

CREATE FUNCTION onerepl_remove_sequence(sequence regclass) RETURNS void
    LANGUAGE c STRICT AS 'MODULE_PATHNAME', 'onerepl_remove_sequence'
    SET search_path = pg_catalog, pg_temp;
COMMENT ON FUNCTION onerepl_remove_sequence(regclass) IS
'Ends what onerepl_add_sequence began.
A sequence that belongs to a tracked table still follows.
  sequence: the sequence.
Errors: 42501 when you do not own the sequence; 42809 when it is not a sequence.
See: docs/sequences.md, onerepl_add_sequence';

-- ------------------------------------------------------------------ promotion

CREATE FUNCTION onerepl.why_not_promoted(l onerepl.link) RETURNS TABLE (reason text)
    LANGUAGE sql STABLE
    SET search_path = pg_catalog, pg_temp AS $$
    SELECT format('record %s is in F', min(f.n)) FROM onerepl.failure AS f WHERE f.link = l.id HAVING count(*) > 0
    UNION ALL
    SELECT format('%s records or parts of records wait in the queue', sum(w.last - w.first + 1))
        FROM onerepl.waiting AS w WHERE w.link = l.id HAVING count(*) > 0
    UNION ALL
    SELECT format('the remote has told of its number %s, and %s is the last one here', c.peer_number, onerepl.written_to(l.id))
        FROM onerepl.contact AS c WHERE c.link = l.id AND c.peer_number > onerepl.written_to(l.id)
    UNION ALL
    SELECT format('table %s is not complete: its refresh is %s', coalesce(onerepl.qualified_name(w.relation), w.relation::text), w.state)
        FROM onerepl.refresh_window AS w WHERE w.link = l.id AND w.state <> 'done'
    UNION ALL
    SELECT format('sequence %I.%I of the remote is not here', s.schema, s.name)
        FROM onerepl.sequence_state AS s WHERE s.link = l.id AND onerepl.sequence_here(l.id, s.schema, s.name) IS NOT NULL
          AND NOT EXISTS (SELECT FROM pg_sequence AS p WHERE p.seqrelid = to_regclass(onerepl.sequence_here(l.id, s.schema, s.name)))
    UNION ALL
    SELECT format('the value %s of sequence %I.%I is beyond the bounds that it has here', s.last_value, s.schema, s.name)
        FROM onerepl.sequence_state AS s JOIN pg_sequence AS p ON p.seqrelid = to_regclass(onerepl.sequence_here(l.id, s.schema, s.name))
        WHERE s.link = l.id AND s.last_value NOT BETWEEN p.seqmin AND p.seqmax
$$;
COMMENT ON FUNCTION onerepl.why_not_promoted(onerepl.link) IS 'What of a link would be missing if its central were promoted now.';

CREATE FUNCTION onerepl.free_tables(link int) RETURNS int
    LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    freed regclass;
    count int := 0;
BEGIN
    FOR freed IN
        SELECT g.relation FROM onerepl.guarded AS g GROUP BY g.relation HAVING bool_and(g.link = free_tables.link)
    LOOP
        PERFORM onerepl.drop_triggers(freed, '!onerepl_guard%');
        count := count + 1;
    END LOOP;
    DELETE FROM onerepl.guarded AS g WHERE g.link = free_tables.link;
    RETURN count;
END $$;
COMMENT ON FUNCTION onerepl.free_tables(int) IS
'Lets everybody write to the tables that only this link writes (P8); returns how many.';

CREATE FUNCTION onerepl_promote(link text, force bool DEFAULT false) RETURNS int8
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_variable
DECLARE
    promoted onerepl.link := onerepl.get_link(link, 'central');
    missing text;
    tables int;
    sequences int;
BEGIN
    PERFORM onerepl.lock_central(promoted.id);
    promoted := onerepl.get_link(link, 'central');
    SELECT string_agg(r.reason, '; ') INTO missing FROM onerepl.why_not_promoted(promoted) AS r;
    IF missing IS NOT NULL AND NOT force THEN
        RAISE EXCEPTION 'link "%" has not passed on everything', link USING
            ERRCODE = 'object_not_in_prerequisite_state', DETAIL = upper(left(missing, 1)) || substr(missing, 2) || '.',
            HINT = 'Wait, or resolve what is in F; or promote with force => true, and what is missing is lost here.';
    END IF;
    -- core/body.h Stop: the remote is told, too.
    UPDATE onerepl.link AS l SET stop = 5 WHERE l.id = promoted.id;
    DELETE FROM onerepl.waiting AS w WHERE w.link = promoted.id;
    DELETE FROM onerepl.failure AS f WHERE f.link = promoted.id;
    sequences := onerepl.set_sequences(promoted.id);
    tables := onerepl.free_tables(promoted.id);
    PERFORM onerepl.write_journal(2, promoted.id, 'P8', format('promoted by %s: link "%s" ends at number %s, %s tables are writable, %s sequences are set%s',
        session_user, link, onerepl.written_to(promoted.id), tables, sequences, coalesce('; forced: ' || missing, '')),
        'The remote must not be written any more: nothing of it comes here.');
    PERFORM onerepl.wake_at_commit(false, true);
    RETURN onerepl.written_to(promoted.id);
END $$;
COMMENT ON FUNCTION onerepl_promote(text, bool) IS
'Makes the central of a link a database for everybody, and ends the link.
The remote stops with it as soon as it hears so. The tables that only this link writes may be written.
The sequences of the remote that are followed stand where no value that is in a row was not yet given: no margin is needed.
To go back, call onerepl_restart_link at both ends, with a refresh.
  link: name of the link.
  force: true: also if the remote has told of records that are not here, records wait or are in F, a table is being refreshed, or
    a sequence is missing here or its value is beyond the bounds here; what is missing is lost then. What the remote has not told of
    cannot be known. Default false.
Returns: S_b, the last number that is in.
Errors: 42704 when there is no such link; 55000 when this database is not its central, or not everything is here.
See: docs/sequences.md, docs/backup.md, onerepl_restart_link, P8';
