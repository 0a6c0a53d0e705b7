-- Refreshes (Part III): what is copied, how far it is.

-- The remote's: one row for each table on its way to one central.
CREATE TABLE onerepl.refresh (
    id              int8 GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    link            int NOT NULL REFERENCES onerepl.link ON DELETE CASCADE,
    relation        oid NOT NULL,       -- a tracked table
    name            text NOT NULL,
    method          text NOT NULL CHECK (method IN ('empty', 'repair', 'verify')),
    -- sent: all chunks have numbers; cancelling: the central is to be told; then, when that is confirmed, the outcome
    state           text NOT NULL DEFAULT 'waiting' CHECK (state IN ('waiting', 'running', 'paused', 'sent', 'cancelling',
                                                                     'done', 'cancelled', 'failed')),
    outcome         text CHECK (outcome IN ('done', 'cancelled', 'failed')),
    error           text,
    place           int4 NOT NULL DEFAULT 0,    -- smaller ones first
    begun           bool NOT NULL DEFAULT false,    -- the central was told that it comes
    key_shape       text,               -- onerepl.key_shape when it was asked for: all keys here are meant under it (P21)
    chunk_rows      int4 NOT NULL CHECK (chunk_rows > 0),
    key_from        text[],             -- only keys after this one, and up to that one
    key_to          text[],
    with_rows       bool NOT NULL DEFAULT false,    -- a verification that names the rows that differ
    one_snapshot    bool NOT NULL DEFAULT false,    -- all is read in one step: there is no key, or it was asked for
    rows_per_second int8 CHECK (rows_per_second > 0),
    bytes_per_second int8 CHECK (bytes_per_second > 0),
    start_at        timestamptz,
    not_before      timestamptz,        -- the next chunk, because of the throttle or of onerepl.refresh_share
    description     int8,               -- as of the last chunk
    last_key        text[],             -- of the last chunk; null: none, or a table without key
    lid_start       int8,               -- LIDStart: the last number before the refresh
    lid_end         int8,               -- LIDEnd: the last chunk's number
    chunks          int8 NOT NULL DEFAULT 0,
    rows_done       int8 NOT NULL DEFAULT 0,
    bytes_done      int8 NOT NULL DEFAULT 0,
    rows_estimate   int8,
    requested_by    name NOT NULL DEFAULT session_user,
    created_at      timestamptz NOT NULL DEFAULT clock_timestamp(),
    started_at      timestamptz,
    finished_at     timestamptz
) WITH (fillfactor = 50);
CREATE INDEX refresh_active ON onerepl.refresh (link, place, id)
    WHERE state IN ('waiting', 'running', 'paused', 'sent', 'cancelling');

-- Chunks that are not confirmed: their records (core/record.h), zstd if that is smaller.
CREATE TABLE onerepl.chunk (
    n           int8 PRIMARY KEY,
    link        int NOT NULL REFERENCES onerepl.link ON DELETE CASCADE,
    refresh     int8 NOT NULL,
    compressed  bool NOT NULL,
    body        bytea NOT NULL,
    size        int8 NOT NULL           -- of the record
);
ALTER TABLE onerepl.chunk ALTER body SET STORAGE EXTERNAL;
-- Chunks come and go: their room is used again soon.
ALTER TABLE onerepl.chunk SET (
    autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 50, autovacuum_vacuum_cost_delay = 0,
    toast.autovacuum_vacuum_scale_factor = 0, toast.autovacuum_vacuum_threshold = 5000, toast.autovacuum_vacuum_cost_delay = 0);

-- The central's: tables between their refresh's first and last chunk, and what became of them. While a row is there that
-- is not done, the table is not known to be complete, and its changes are written tolerantly.
CREATE TABLE onerepl.refresh_window (
    link        int NOT NULL REFERENCES onerepl.link ON DELETE CASCADE,
    relation    oid NOT NULL,
    refresh     int8 NOT NULL,          -- the remote's onerepl.refresh.id
    method      text NOT NULL,
    -- waiting: the content is the old one; incomplete: a chunk was skipped by the administrator, or went to another table
    state       text NOT NULL CHECK (state IN ('waiting', 'filling', 'incomplete', 'cancelled', 'done')),
    first       int8 NOT NULL,          -- number that opened the window
    last        int8 NOT NULL,          -- of the last chunk so far
    rows_done   int8 NOT NULL DEFAULT 0,
    key         text NOT NULL,          -- the remote's key columns: what the bounds below are meant under (P21)
    partial     bool NOT NULL DEFAULT false,    -- a range of keys is repaired:
    key_from    text[],                 -- what is left of it, after this key
    key_to      text[],
    started_at  timestamptz NOT NULL DEFAULT clock_timestamp(),
    changed_at  timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (link, relation)
) WITH (fillfactor = 50);

-- The central's: what verifications have found; the newest one of a table counts.
CREATE TABLE onerepl.verified (
    link        int NOT NULL REFERENCES onerepl.link ON DELETE CASCADE,
    relation    oid NOT NULL,
    refresh     int8 NOT NULL,          -- the remote's onerepl.refresh.id
    chunks      int8 NOT NULL DEFAULT 0,
    differences int8 NOT NULL DEFAULT 0,
    not_compared int8 NOT NULL DEFAULT 0,
    complete    bool NOT NULL DEFAULT false,
    last        int8 NOT NULL,
    at          timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (link, relation)
) WITH (fillfactor = 50);

CREATE TABLE onerepl.difference (
    link        int NOT NULL REFERENCES onerepl.link ON DELETE CASCADE,
    relation    oid NOT NULL,
    n           int8 NOT NULL,
    key_from    text[] NOT NULL,        -- empty: from the first row
    key_to      text[] NOT NULL,        -- empty: to the last row
    rows_remote int8 NOT NULL,
    rows_here   int8 NOT NULL,
    at          timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (link, n)
);

-- On request, the rows of a difference.
CREATE TABLE onerepl.differing_row (
    link        int NOT NULL REFERENCES onerepl.link ON DELETE CASCADE,
    relation    oid NOT NULL,
    n           int8 NOT NULL,
    key         text[] NOT NULL,
    difference  text NOT NULL CHECK (difference IN ('missing', 'surplus', 'different')),
    columns     text[],                 -- that differ
    PRIMARY KEY (link, n, key)
);

CREATE FUNCTION onerepl.end_refreshes(link int) RETURNS void
    LANGUAGE sql
    SET search_path = pg_catalog, pg_temp AS $$
    DELETE FROM onerepl.chunk AS c WHERE c.link = end_refreshes.link;
    UPDATE onerepl.refresh AS r SET state = 'cancelled', outcome = 'cancelled', finished_at = clock_timestamp()
        WHERE r.link = end_refreshes.link AND r.state IN ('waiting', 'running', 'paused', 'sent', 'cancelling');
$$;
COMMENT ON FUNCTION onerepl.end_refreshes(int) IS 'A link of the remote is started anew: what was under way is void.';
