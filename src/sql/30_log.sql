-- What the log keeps beside its tables (src/log).

CREATE TABLE onerepl.log_seal (
    log_table   int4 PRIMARY KEY,
    last        int8 NOT NULL,
    at          timestamptz NOT NULL DEFAULT clock_timestamp()
);
COMMENT ON TABLE onerepl.log_seal IS 'Log tables that capture has left: the largest number that can be in one, and since when nobody writes to it.';

CREATE FUNCTION onerepl.first_number() RETURNS int8
    LANGUAGE c AS 'MODULE_PATHNAME', 'onerepl_first_number'
    SET search_path = pg_catalog, pg_temp;
COMMENT ON FUNCTION onerepl.first_number() IS 'The number from which on all records of the remote''s log can be read; M + 1 if none can.';

CREATE FUNCTION onerepl.identity_at(n int8) RETURNS bytea
    LANGUAGE c STRICT AS 'MODULE_PATHNAME', 'onerepl_identity_at'
    SET search_path = pg_catalog, pg_temp;
COMMENT ON FUNCTION onerepl.identity_at(int8) IS 'The identity of the remote''s history at a number (P9); null: not given yet, or purged.';

CREATE FUNCTION onerepl.hold_numbering() RETURNS void
    LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    LOCK TABLE onerepl.database IN EXCLUSIVE MODE;
END $$;
COMMENT ON FUNCTION onerepl.hold_numbering() IS
'No numbers are given from now until the end of the transaction, and what gets one later sees what the transaction did: a link '
'that begins after M begins before all that has no number yet, its refreshes included. Waits for a numbering step that is at '
'work.';

-- Log tables are written once and emptied as a whole: nothing to vacuum, and a vacuum would stand in the purge's way.
ALTER TABLE onerepl.change_0 SET (autovacuum_enabled = false, toast.autovacuum_enabled = false);
ALTER TABLE onerepl.change_1 SET (autovacuum_enabled = false, toast.autovacuum_enabled = false);
ALTER TABLE onerepl.change_2 SET (autovacuum_enabled = false, toast.autovacuum_enabled = false);
ALTER TABLE onerepl.change_3 SET (autovacuum_enabled = false, toast.autovacuum_enabled = false);
