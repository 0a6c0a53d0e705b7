-- What a link gets of a table (the remote), and where it goes (the central). 63_filters.sql has the functions.

CREATE TABLE onerepl.filter (
    id          int8 GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    link        int NOT NULL REFERENCES onerepl.link ON DELETE CASCADE,
    relation    regclass NOT NULL,
    rows        text,
    uses        text[] NOT NULL,
    columns     text[],
    after       int8 NOT NULL,
    database    uuid NOT NULL DEFAULT onerepl.database_id(),
    newest      bool NOT NULL DEFAULT true,
    owner       name NOT NULL,
    made_by     name NOT NULL DEFAULT session_user,
    made_at     timestamptz NOT NULL DEFAULT now()
);
COMMENT ON TABLE onerepl.filter IS
'The remote''s: src/log/link_filters.h. Of a link and table the newest row counts, for numbers past `after`; one without rows and columns ends the
choice. Older ones are for what was numbered before.';
COMMENT ON COLUMN onerepl.filter.relation IS 'The table; it may be gone: what was logged of it is filtered still.';
COMMENT ON COLUMN onerepl.filter.rows IS 'SQL over the table''s columns; null: all.';
COMMENT ON COLUMN onerepl.filter.uses IS 'The shapes of the columns that `rows` looks at (onerepl.column_shapes).';
COMMENT ON COLUMN onerepl.filter.columns IS 'The columns that are sent beside the key''s; null: all.';
COMMENT ON COLUMN onerepl.filter.after IS 'It holds for numbers past this one, of the log of the database in column database.';
COMMENT ON COLUMN onerepl.filter.database IS 'The database that it was made in; one from a dump holds from the beginning.';
COMMENT ON COLUMN onerepl.filter.owner IS 'The owner of the table, should it be gone when its last changes are sent.';
CREATE INDEX filter_relation ON onerepl.filter (relation, id);
-- A restored remote must not send what the filter kept back. What is gone has no log there, and its oid is another one's.
SELECT pg_extension_config_dump('onerepl.filter', 'WHERE newest AND relation IN (SELECT oid FROM pg_catalog.pg_class)');
SELECT pg_extension_config_dump('onerepl.filter_id_seq', '');

CREATE TABLE onerepl.target (
    link            int NOT NULL REFERENCES onerepl.link ON DELETE CASCADE,
    remote_schema   text NOT NULL,
    remote_table    text NOT NULL,
    schema          text NOT NULL,
    name            text,
    branch_column   text,
    branch          text,
    PRIMARY KEY (link, remote_schema, remote_table),
    CHECK ((branch_column IS NULL) = (branch IS NULL)),
    CHECK (remote_table <> '' OR name IS NULL)
);
COMMENT ON TABLE onerepl.target IS 'The central''s: tables of a remote that are called otherwise here, or are one with those of other remotes.';
COMMENT ON COLUMN onerepl.target.remote_table IS ''''': all of the schema that have no row of their own.';
COMMENT ON COLUMN onerepl.target.name IS 'Null: as the remote''s.';
COMMENT ON COLUMN onerepl.target.branch_column IS 'Tells whose row it is.';
SELECT pg_extension_config_dump('onerepl.target', '');
