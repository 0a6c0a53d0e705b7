-- Who may do what, as roles try it. test/pgtap looks at every function and table.
SET client_min_messages = warning;
\set SHOW_CONTEXT never
CREATE EXTENSION IF NOT EXISTS onerepl;
CREATE ROLE regress_onerepl_nobody;
CREATE ROLE regress_onerepl_watcher IN ROLE pg_monitor;
CREATE ROLE regress_onerepl_operator;
CREATE ROLE regress_onerepl_owner;
SELECT onerepl_add_central('east', 'http://127.0.0.1:1', 'a secret of the east') IS NOT NULL AS added;
CREATE TABLE mine (id int PRIMARY KEY);
ALTER TABLE mine OWNER TO regress_onerepl_owner;
CREATE TABLE others (id int PRIMARY KEY);
GRANT ALL ON others TO regress_onerepl_owner;

-- whoever was granted nothing can do nothing
SET ROLE regress_onerepl_nobody;
SELECT * FROM onerepl_status();
\echo :LAST_ERROR_SQLSTATE
SELECT onerepl_pause('east');
\echo :LAST_ERROR_SQLSTATE
SELECT signs_with FROM onerepl.link_key;
\echo :LAST_ERROR_SQLSTATE
SELECT * FROM onerepl.journal;
\echo :LAST_ERROR_SQLSTATE
SELECT onerepl_add_table('mine');
\echo :LAST_ERROR_SQLSTATE
CREATE TEMPORARY TABLE own (id int);
CREATE TRIGGER capture AFTER INSERT ON own FOR EACH ROW EXECUTE FUNCTION onerepl.onerepl_capture();
\echo :LAST_ERROR_SQLSTATE

-- pg_monitor watches
SET ROLE regress_onerepl_watcher;
SELECT link, role FROM onerepl_status();
SELECT count(*) > 0 AS has_entries FROM onerepl.journal;
SELECT count(*) FROM onerepl.queue;
SELECT count(*) FROM onerepl.problems;
SELECT * FROM onerepl.log;
\echo :LAST_ERROR_SQLSTATE
SELECT * FROM onerepl.failed;
\echo :LAST_ERROR_SQLSTATE
SELECT signs_with FROM onerepl.link_key;
\echo :LAST_ERROR_SQLSTATE
SELECT onerepl_pause('east');
\echo :LAST_ERROR_SQLSTATE

-- EXECUTE is all that an operator needs
RESET ROLE;
GRANT EXECUTE ON FUNCTION onerepl_pause(text), onerepl_resume(text), onerepl_block(text, int8), onerepl_unblock(text, int8) TO regress_onerepl_operator;
SET ROLE regress_onerepl_operator;
SELECT onerepl_pause('east');
SELECT onerepl_block('east', 1000000);
SELECT onerepl_unblock('east', 1000000);
SELECT onerepl_resume('east');
SELECT onerepl_restart_link('east');
\echo :LAST_ERROR_SQLSTATE
RESET ROLE;

-- reading keys and rows
GRANT USAGE ON SCHEMA onerepl TO regress_onerepl_operator;
GRANT SELECT ON onerepl.log, onerepl.failed TO regress_onerepl_operator;
GRANT EXECUTE ON FUNCTION onerepl.log_records(text, int8, int8), onerepl_object_state(regclass, text) TO regress_onerepl_operator;
SET ROLE regress_onerepl_operator;
SELECT * FROM onerepl.log;
SELECT * FROM onerepl.failed;
SELECT * FROM onerepl_object_state('others', '1');
SELECT * FROM onerepl.journal;
\echo :LAST_ERROR_SQLSTATE
RESET ROLE;

-- an owner may be allowed to track his tables, and no others
GRANT EXECUTE ON FUNCTION onerepl_add_table(regclass, bool, text), onerepl_remove_table(regclass), onerepl_add_schema(text, bool) TO regress_onerepl_owner;
SET ROLE regress_onerepl_owner;
SELECT onerepl_add_table('mine');
SELECT onerepl_add_table('others');
\echo :LAST_ERROR_SQLSTATE
SELECT onerepl_add_schema('public');
\echo :LAST_ERROR_SQLSTATE
SELECT current_user;
INSERT INTO mine VALUES (1);
RESET ROLE;
SELECT relation FROM onerepl.tracked;
SELECT onerepl_add_table('others');
-- writers need no right on anything of onerepl
SET ROLE regress_onerepl_owner;
INSERT INTO others VALUES (1);
UPDATE others SET id = 2;
DELETE FROM others;
SELECT onerepl_remove_table('others');
\echo :LAST_ERROR_SQLSTATE
-- nor do those who make partitions and alter columns
CREATE TEMPORARY TABLE unrelated (id int);
ALTER TABLE unrelated ALTER COLUMN id TYPE bigint;
ALTER TABLE mine ALTER COLUMN id TYPE bigint;
SELECT onerepl_remove_table('mine');
RESET ROLE;
SELECT relation FROM onerepl.tracked;

DROP TABLE mine, others;
DROP OWNED BY regress_onerepl_nobody, regress_onerepl_watcher, regress_onerepl_operator, regress_onerepl_owner;
DROP ROLE regress_onerepl_nobody, regress_onerepl_watcher, regress_onerepl_operator, regress_onerepl_owner;
DROP EXTENSION onerepl;
CREATE EXTENSION onerepl;
