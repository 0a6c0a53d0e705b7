-- What a link may write (P18). 64_reach.sql has the functions, and the one decision.

-- The central's: tables and sequences here that its administrator has named for a link. Names, because a table may not be there yet.
CREATE TABLE onerepl.allowed (
    link    int NOT NULL REFERENCES onerepl.link ON DELETE CASCADE,
    schema  text NOT NULL,              -- '': every schema, with every name
    name    text NOT NULL,              -- '': every table and sequence of the schema
    PRIMARY KEY (link, schema, name),
    CHECK (schema <> '' OR name = '')
);
SELECT pg_extension_config_dump('onerepl.allowed', '');
