-- The read-only guard of tables that onerepl writes here (P8). The trigger "!onerepl_guard" is put on them by apply.
CREATE FUNCTION onerepl.guard() RETURNS trigger
    LANGUAGE c SET search_path = pg_catalog, pg_temp
    AS 'MODULE_PATHNAME', 'onerepl_guard';
REVOKE ALL ON FUNCTION onerepl.guard() FROM PUBLIC;
