-- Refreshes (Part III): what is copied, how far it is.

CREATE TABLE onerepl.refresh (
    id              int8 GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    link            int NOT NULL REFERENCES onerepl.link ON DELETE CASCADE,
    relation        oid NOT NULL,
    name            text NOT NULL,
    method          text NOT NULL CHECK (method IN ('empty', 'repair', 'verify')),
    state           text NOT NULL DEFAULT 'waiting' CHECK (state IN ('waiting', 'running', 'paused', 'sent', 'cancelling',
                                                                     'done', 'cancelled', 'failed')),
    outcome         text CHECK (outcome IN ('done', 'cancelled', 'failed')),
    error           text,
    priority        int4 NOT NULL DEFAULT 0,
    begun           bool NOT NULL DEFAULT false,
    key_shape       text,
    chunk_rows      int4 NOT NULL CHECK (chunk_rows > 0),
    key_from        text[],
    key_to          text[],
    with_rows       bool NOT NULL DEFAULT false,
    one_snapshot    bool NOT NULL DEFAULT false,
    rows_per_second int8 CHECK (rows_per_second > 0),
    bytes_per_second int8 CHECK (bytes_per_second > 0),
    start_at        timestamptz,
    not_before      timestamptz,
    description     int8,
    last_key        text[],
    lid_start       int8,
    lid_end         int8,
    chunks          int8 NOT NULL DEFAULT 0,
    rows_done       int8 NOT NULL DEFAULT 0,
    bytes_done      int8 NOT NULL DEFAULT 0,
    rows_estimate   int8,
    requested_by    name NOT NULL DEFAULT session_user,
    created_at      timestamptz NOT NULL DEFAULT clock_timestamp(),
    started_at      timestamptz,
    finished_at     timestamptz
) WITH (fillfactor = 50);
COMMENT ON TABLE onerepl.refresh IS 'The remote''s: one row for each table on its way to one central.';
COMMENT ON COLUMN onerepl.refresh.relation IS 'A tracked table.';
COMMENT ON COLUMN onerepl.refresh.state IS
'sent: all chunks have numbers; cancelling: the central is to be told; then, when that is confirmed, the outcome.';
COMMENT ON COLUMN onerepl.refresh.priority IS 'Smaller ones first.';
COMMENT ON COLUMN onerepl.refresh.begun IS 'The central was told that it comes.';
COMMENT ON COLUMN onerepl.refresh.key_shape IS 'onerepl.key_shape when it was asked for: all keys here are meant under it (P21).';
COMMENT ON COLUMN onerepl.refresh.key_from IS 'Only keys after this one, and up to that one.';
COMMENT ON COLUMN onerepl.refresh.with_rows IS 'A verification that names the rows that differ.';
COMMENT ON COLUMN onerepl.refresh.one_snapshot IS 'All is read in one step: there is no key, or it was asked for.';
COMMENT ON COLUMN onerepl.refresh.not_before IS 'When the next chunk may be made, because of the throttle or of onerepl.refresh_share.';
COMMENT ON COLUMN onerepl.refresh.description IS 'The table''s description as of the last chunk.';
COMMENT ON COLUMN onerepl.refresh.last_key IS 'The last key of the last chunk; null: none, or a table without key.';
COMMENT ON COLUMN onerepl.refresh.lid_start IS 'LIDStart: the last number before the refresh.';
COMMENT ON COLUMN onerepl.refresh.lid_end IS 'LIDEnd: the last chunk''s number.';
CREATE INDEX refresh_active ON onerepl.refresh (link, priority, id)
    WHERE state IN ('waiting', 'running', 'paused', 'sent', 'cancelling');

CREATE TABLE onerepl.chunk (
    n           int8 PRIMARY KEY,
    link        int NOT NULL REFERENCES onerepl.link ON DELETE CASCADE,
    refresh     int8 NOT NULL,
    compressed  bool NOT NULL,
    body        bytea NOT NULL,
    size        int8 NOT NULL
);
COMMENT ON TABLE onerepl.chunk IS 'Chunks that are not confirmed: their records (core/record.h), zstd if that is smaller.';
COMMENT ON COLUMN onerepl.chunk.size IS 'Bytes of the record.';
ALTER TABLE onerepl.chunk ALTER body SET STORAGE EXTERNAL;
-- Chunks come and go: their room is used again soon.
ALTER TABLE onerepl.chunk SET (
    autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 50, autovacuum_vacuum_cost_delay = 0,
    toast.autovacuum_vacuum_scale_factor = 0, toast.autovacuum_vacuum_threshold = 5000, toast.autovacuum_vacuum_cost_delay = 0);

CREATE TABLE onerepl.refresh_window (
    link        int NOT NULL REFERENCES onerepl.link ON DELETE CASCADE,
    relation    oid NOT NULL,
    refresh     int8 NOT NULL,
    method      text NOT NULL,
    state       text NOT NULL CHECK (state IN ('waiting', 'filling', 'incomplete', 'cancelled', 'done')),
    first       int8 NOT NULL,
    last        int8 NOT NULL,
    rows_done   int8 NOT NULL DEFAULT 0,
    key         text NOT NULL,
    partial     bool NOT NULL DEFAULT false,
    key_from    text[],
    key_to      text[],
    started_at  timestamptz NOT NULL DEFAULT clock_timestamp(),
    changed_at  timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (link, relation)
) WITH (fillfactor = 50);
COMMENT ON TABLE onerepl.refresh_window IS
'The central''s: tables between their refresh''s first and last chunk, and what became of them. While a row is there that is not done, the table is
not known to be complete, and its changes are written tolerantly.';
COMMENT ON COLUMN onerepl.refresh_window.refresh IS 'The remote''s onerepl.refresh.id.';
COMMENT ON COLUMN onerepl.refresh_window.state IS
'waiting: the content is the old one; incomplete: a chunk was skipped by the administrator, or went to another table.';
COMMENT ON COLUMN onerepl.refresh_window.first IS 'Number that opened the window.';
COMMENT ON COLUMN onerepl.refresh_window.last IS 'The number of the last chunk so far.';
COMMENT ON COLUMN onerepl.refresh_window.key IS 'The remote''s key columns: what the bounds below are meant under (P21).';
COMMENT ON COLUMN onerepl.refresh_window.partial IS 'Only a range of keys is repaired.';
COMMENT ON COLUMN onerepl.refresh_window.key_from IS 'What is left of the range begins after this key.';

CREATE TABLE onerepl.verified (
    link        int NOT NULL REFERENCES onerepl.link ON DELETE CASCADE,
    relation    oid NOT NULL,
    refresh     int8 NOT NULL,
    chunks      int8 NOT NULL DEFAULT 0,
    differences int8 NOT NULL DEFAULT 0,
    not_compared int8 NOT NULL DEFAULT 0,
    complete    bool NOT NULL DEFAULT false,
    last        int8 NOT NULL,
    at          timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (link, relation)
) WITH (fillfactor = 50);
COMMENT ON TABLE onerepl.verified IS 'The central''s: what verifications have found; the newest one of a table counts.';
COMMENT ON COLUMN onerepl.verified.refresh IS 'The remote''s onerepl.refresh.id.';

CREATE TABLE onerepl.difference (
    link        int NOT NULL REFERENCES onerepl.link ON DELETE CASCADE,
    relation    oid NOT NULL,
    n           int8 NOT NULL,
    key_from    text[] NOT NULL,
    key_to      text[] NOT NULL,
    rows_remote int8 NOT NULL,
    rows_here   int8 NOT NULL,
    at          timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (link, n)
);
COMMENT ON TABLE onerepl.difference IS 'The central: ranges of keys in which a verification found a table different.';
COMMENT ON COLUMN onerepl.difference.key_from IS 'Empty: from the first row.';
COMMENT ON COLUMN onerepl.difference.key_to IS 'Empty: to the last row.';

CREATE TABLE onerepl.differing_row (
    link        int NOT NULL REFERENCES onerepl.link ON DELETE CASCADE,
    relation    oid NOT NULL,
    n           int8 NOT NULL,
    key         text[] NOT NULL,
    difference  text NOT NULL CHECK (difference IN ('missing', 'surplus', 'different')),
    columns     text[],
    PRIMARY KEY (link, n, key)
);
COMMENT ON TABLE onerepl.differing_row IS 'On request, the rows of a difference.';
COMMENT ON COLUMN onerepl.differing_row.columns IS 'The columns that differ.';

CREATE FUNCTION onerepl.end_refreshes(link int) RETURNS void
    LANGUAGE sql
    SET search_path = pg_catalog, pg_temp AS $$
    DELETE FROM onerepl.chunk AS c WHERE c.link = end_refreshes.link;
    UPDATE onerepl.refresh AS r SET state = 'cancelled', outcome = 'cancelled', finished_at = clock_timestamp()
        WHERE r.link = end_refreshes.link AND r.state IN ('waiting', 'running', 'paused', 'sent', 'cancelling');
$$;
COMMENT ON FUNCTION onerepl.end_refreshes(int) IS 'A link of the remote is started anew: what was under way is void.';
