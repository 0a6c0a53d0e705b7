-- What a link gets of a table (the remote), and where it goes (the central). 63_filters.sql has the functions.

-- The remote's: src/log/link_filters.h. Of a link and table the newest row counts, for numbers past `after`; one without rows and
-- columns ends the choice. Older ones are for what was numbered before.
CREATE TABLE onerepl.filter (
    id          int8 GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    link        int NOT NULL REFERENCES onerepl.link ON DELETE CASCADE,
    relation    regclass NOT NULL,      -- may be gone: what was logged of it is filtered still
    rows        text,                   -- SQL over the table's columns; null: all
    uses        text[] NOT NULL,        -- the shapes of the columns that `rows` looks at (onerepl.column_shapes)
    columns     text[],                 -- beside the key's; null: all
    after       int8 NOT NULL,          -- of the log of this database:
    database    uuid NOT NULL DEFAULT onerepl.database_id(),    -- that it was made in; one from a dump holds from the beginning
    newest      bool NOT NULL DEFAULT true,
    owner       name NOT NULL,          -- the table's, should it be gone when its last changes are sent
    made_by     name NOT NULL DEFAULT session_user,
    made_at     timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX filter_relation ON onerepl.filter (relation, id);
-- A restored remote must not send what the filter kept back. What is gone has no log there, and its oid is another one's.
SELECT pg_extension_config_dump('onerepl.filter', 'WHERE newest AND relation IN (SELECT oid FROM pg_catalog.pg_class)');
SELECT pg_extension_config_dump('onerepl.filter_id_seq', '');

-- The central's: tables of a remote that are called otherwise here, or are one with those of other remotes.
CREATE TABLE onerepl.target (
    link            int NOT NULL REFERENCES onerepl.link ON DELETE CASCADE,
    remote_schema   text NOT NULL,
    remote_table    text NOT NULL,      -- '': all of the schema that have no row of their own
    schema          text NOT NULL,
    name            text,               -- null: as the remote's
    branch_column   text,               -- tells whose row it is
    branch          text,
    PRIMARY KEY (link, remote_schema, remote_table),
    CHECK ((branch_column IS NULL) = (branch IS NULL)),
    CHECK (remote_table <> '' OR name IS NULL)
);
SELECT pg_extension_config_dump('onerepl.target', '');
