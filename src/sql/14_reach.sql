-- What a link may write (P18). 64_reach.sql has the functions, and the one decision.

CREATE TABLE onerepl.allowed (
    link    int NOT NULL REFERENCES onerepl.link ON DELETE CASCADE,
    schema  text NOT NULL,
    name    text NOT NULL,
    PRIMARY KEY (link, schema, name),
    CHECK (schema <> '' OR name = '')
);
COMMENT ON TABLE onerepl.allowed IS
'The central''s: tables and sequences here that its administrator has named for a link. Names, because a table may not be there yet.';
COMMENT ON COLUMN onerepl.allowed.schema IS ''''': every schema, with every name.';
COMMENT ON COLUMN onerepl.allowed.name IS ''''': every table and sequence of the schema.';
SELECT pg_extension_config_dump('onerepl.allowed', '');
