-- Who may do what. Superusers may everything; everybody else nothing, but:
--   pg_monitor: onerepl_status(), onerepl.journal, onerepl.queue, onerepl.problems, onerepl.refresh_progress, which show no
--   row of a table.
-- More is granted function by function (GRANT EXECUTE ON FUNCTION onerepl_pause(text) TO ...); reading keys and rows, with
-- GRANT USAGE ON SCHEMA onerepl, GRANT SELECT ON onerepl.log, onerepl.failed and GRANT EXECUTE ON FUNCTION onerepl.log_records.
-- Nobody needs rights on onerepl.link_key, which holds what bodies are signed with.

REVOKE ALL ON ALL FUNCTIONS IN SCHEMA onerepl FROM PUBLIC;
REVOKE ALL ON ALL TABLES IN SCHEMA onerepl FROM PUBLIC;
REVOKE ALL ON ALL SEQUENCES IN SCHEMA onerepl FROM PUBLIC;

REVOKE ALL ON FUNCTION onerepl_add_central(text, text, text, interval, interval, interval) FROM PUBLIC;
REVOKE ALL ON FUNCTION onerepl_add_remote(text, text, text[], interval, interval) FROM PUBLIC;
REVOKE ALL ON FUNCTION onerepl_allow(text, text[]) FROM PUBLIC;
REVOKE ALL ON FUNCTION onerepl_forbid(text, text[]) FROM PUBLIC;
REVOKE ALL ON FUNCTION onerepl_remove_central(text) FROM PUBLIC;
REVOKE ALL ON FUNCTION onerepl_remove_remote(text) FROM PUBLIC;
REVOKE ALL ON FUNCTION onerepl_restart_link(text, bool, int8) FROM PUBLIC;
REVOKE ALL ON FUNCTION onerepl_change_link(text, text, text) FROM PUBLIC;
REVOKE ALL ON FUNCTION onerepl_pause(text) FROM PUBLIC;
REVOKE ALL ON FUNCTION onerepl_resume(text) FROM PUBLIC;
REVOKE ALL ON FUNCTION onerepl_block(text, int8) FROM PUBLIC;
REVOKE ALL ON FUNCTION onerepl_unblock(text, int8) FROM PUBLIC;
REVOKE ALL ON FUNCTION onerepl_wait(text, interval) FROM PUBLIC;
REVOKE ALL ON FUNCTION onerepl_add_table(regclass, bool, text) FROM PUBLIC;
REVOKE ALL ON FUNCTION onerepl_add_schema(text, bool) FROM PUBLIC;
REVOKE ALL ON FUNCTION onerepl_execute_ddl(text, text) FROM PUBLIC;
REVOKE ALL ON FUNCTION onerepl_set_ddl(text, text, name) FROM PUBLIC;
REVOKE ALL ON FUNCTION onerepl_add_sequence(regclass) FROM PUBLIC;
REVOKE ALL ON FUNCTION onerepl_remove_sequence(regclass) FROM PUBLIC;
REVOKE ALL ON FUNCTION onerepl_promote(text, bool) FROM PUBLIC;
REVOKE ALL ON FUNCTION onerepl_set_filter(text, regclass, text, text[], text) FROM PUBLIC;
REVOKE ALL ON FUNCTION onerepl_set_target(text, text, text, text, text, text, text) FROM PUBLIC;
REVOKE ALL ON FUNCTION onerepl_remove_table(regclass) FROM PUBLIC;
REVOKE ALL ON FUNCTION onerepl_resolve(text, int8, text) FROM PUBLIC;
REVOKE ALL ON FUNCTION onerepl_resolve_all(text, text, text, text, text) FROM PUBLIC;
REVOKE ALL ON FUNCTION onerepl_object_state(regclass, text) FROM PUBLIC;
REVOKE ALL ON FUNCTION onerepl_status() FROM PUBLIC;
REVOKE ALL ON FUNCTION onerepl_refresh(text, regclass, text, int, timestamptz, int8, int8, int, text, text[], text[]) FROM PUBLIC;
REVOKE ALL ON FUNCTION onerepl_verify(text, regclass, int, timestamptz, int8, int, bool, text[], text[]) FROM PUBLIC;
REVOKE ALL ON FUNCTION onerepl_refresh_pause(text, regclass) FROM PUBLIC;
REVOKE ALL ON FUNCTION onerepl_refresh_resume(text, regclass) FROM PUBLIC;
REVOKE ALL ON FUNCTION onerepl_refresh_cancel(text, regclass) FROM PUBLIC;

GRANT EXECUTE ON FUNCTION onerepl.onerepl_capture() TO PUBLIC;

-- Not even pg_read_all_data reads the keys; the owner does, and so do the functions that run with his rights.
ALTER TABLE onerepl.link ENABLE ROW LEVEL SECURITY;
ALTER TABLE onerepl.link_key ENABLE ROW LEVEL SECURITY;

GRANT USAGE ON SCHEMA onerepl TO pg_monitor;
GRANT EXECUTE ON FUNCTION onerepl.qualified_name(regclass) TO pg_monitor;
GRANT EXECUTE ON FUNCTION onerepl_status() TO pg_monitor;
GRANT SELECT ON onerepl.journal, onerepl.queue, onerepl.problems, onerepl.refresh_progress TO pg_monitor;
