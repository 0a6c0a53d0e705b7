-- What the log keeps beside its tables (src/log).

-- Log tables that capture has left: the largest number that can be in one, and since when nobody writes to it.
CREATE TABLE onerepl.log_seal (
    log_table   int4 PRIMARY KEY,
    last        int8 NOT NULL,
    at          timestamptz NOT NULL DEFAULT clock_timestamp()
);

-- Log tables are written once and emptied as a whole: nothing to vacuum, and a vacuum would stand in the purge's way.
ALTER TABLE onerepl.change_0 SET (autovacuum_enabled = false, toast.autovacuum_enabled = false);
ALTER TABLE onerepl.change_1 SET (autovacuum_enabled = false, toast.autovacuum_enabled = false);
ALTER TABLE onerepl.change_2 SET (autovacuum_enabled = false, toast.autovacuum_enabled = false);
ALTER TABLE onerepl.change_3 SET (autovacuum_enabled = false, toast.autovacuum_enabled = false);
