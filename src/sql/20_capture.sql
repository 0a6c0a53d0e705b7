-- Trigger functions of capture (src/capture). onerepl_add_table() makes the triggers: "!onerepl_capture", AFTER INSERT OR
-- UPDATE OR DELETE FOR EACH ROW, and "!onerepl_truncate", AFTER TRUNCATE, both ENABLE ALWAYS. Their names sort first, so
-- that a change is recorded before the application's own triggers act on it.

CREATE FUNCTION onerepl.onerepl_capture() RETURNS trigger
    LANGUAGE c VOLATILE AS 'MODULE_PATHNAME', 'onerepl_capture';
REVOKE ALL ON FUNCTION onerepl.onerepl_capture() FROM PUBLIC;

CREATE FUNCTION onerepl.onerepl_capture_truncate() RETURNS trigger
    LANGUAGE c VOLATILE AS 'MODULE_PATHNAME', 'onerepl_capture_truncate';
REVOKE ALL ON FUNCTION onerepl.onerepl_capture_truncate() FROM PUBLIC;
