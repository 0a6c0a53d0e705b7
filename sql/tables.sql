-- Tracked tables: what can be tracked, the triggers, and the self-check.
SET client_min_messages = warning;
\set SHOW_CONTEXT never
CREATE EXTENSION IF NOT EXISTS onerepl;
CREATE SCHEMA shop;
SET search_path = shop, public;
CREATE TABLE item (id int PRIMARY KEY, name text);
CREATE VIEW triggers AS
    SELECT t.tgrelid::regclass AS relation, t.tgname, t.tgenabled, t.tgparentid <> 0 AS from_parent
    FROM pg_trigger AS t WHERE t.tgname LIKE '!onerepl%' ORDER BY 1, 2;

SELECT onerepl_add_table('item');
SELECT * FROM triggers;
SELECT relation, lock_pending FROM onerepl.tracked;
-- again: the rule of locking can be changed
SELECT onerepl_add_table('item', lock_pending => true);
SELECT relation, lock_pending FROM onerepl.tracked;
SELECT * FROM triggers;
SELECT onerepl.self_check();
ALTER TABLE item DISABLE TRIGGER "!onerepl_lock";
SELECT onerepl.self_check();
SELECT relation, kind, message, hint FROM onerepl.problems;
SELECT onerepl_add_table('item');
SELECT * FROM triggers;
SELECT onerepl.self_check();

-- refused, with reason and way out
CREATE VIEW some_view AS SELECT 1 AS one;
CREATE MATERIALIZED VIEW some_materialized_view AS SELECT 1 AS one;
CREATE UNLOGGED TABLE some_unlogged (id int PRIMARY KEY);
CREATE TEMPORARY TABLE some_temporary (id int PRIMARY KEY);
CREATE FOREIGN DATA WRAPPER nothing;
CREATE SERVER nowhere FOREIGN DATA WRAPPER nothing;
CREATE FOREIGN TABLE some_foreign (id int) SERVER nowhere;
CREATE SEQUENCE some_sequence;
SELECT onerepl_add_table('some_view');
\echo :LAST_ERROR_SQLSTATE
SELECT onerepl_add_table('some_materialized_view');
\echo :LAST_ERROR_SQLSTATE
SELECT onerepl_add_table('some_unlogged');
\echo :LAST_ERROR_SQLSTATE
SELECT onerepl_add_table('some_temporary');
\echo :LAST_ERROR_SQLSTATE
SELECT onerepl_add_table('some_foreign');
\echo :LAST_ERROR_SQLSTATE
SELECT onerepl_add_table('some_sequence');
\echo :LAST_ERROR_SQLSTATE
SELECT onerepl_add_table('pg_catalog.pg_class');
\echo :LAST_ERROR_SQLSTATE
SELECT onerepl_add_table('onerepl.link');
\echo :LAST_ERROR_SQLSTATE
SELECT onerepl_add_table('no_table');
\echo :LAST_ERROR_SQLSTATE
SELECT onerepl_add_table(1::oid::regclass);
\echo :LAST_ERROR_SQLSTATE

-- a partitioned table, with partitions that are there, that come, and that bring rows along
CREATE TABLE sale (id int, at date, PRIMARY KEY (id, at)) PARTITION BY RANGE (at);
CREATE TABLE sale_1 PARTITION OF sale FOR VALUES FROM ('2026-01-01') TO ('2026-02-01');
SELECT onerepl_add_table('sale');
CREATE TABLE sale_2 PARTITION OF sale FOR VALUES FROM ('2026-02-01') TO ('2026-03-01') PARTITION BY RANGE (at);
CREATE TABLE sale_2_1 PARTITION OF sale_2 FOR VALUES FROM ('2026-02-01') TO ('2026-02-15');
CREATE TABLE sale_3 (LIKE sale INCLUDING ALL);
ALTER TABLE sale ATTACH PARTITION sale_3 FOR VALUES FROM ('2026-03-01') TO ('2026-04-01');
SELECT * FROM triggers WHERE relation::text LIKE 'sale%';
SELECT onerepl.self_check();
CREATE TABLE sale_4 (LIKE sale INCLUDING ALL);
INSERT INTO sale_4 VALUES (1, '2026-04-01');
ALTER TABLE sale ATTACH PARTITION sale_4 FOR VALUES FROM ('2026-04-01') TO ('2026-05-01');
SELECT onerepl.self_check();
SELECT relation, kind, message, hint FROM onerepl.problems;
SELECT onerepl_add_table('sale_1');
\echo :LAST_ERROR_SQLSTATE
SELECT onerepl_add_table('sale');
SELECT onerepl.self_check();
ALTER TABLE sale DETACH PARTITION sale_4;
SELECT * FROM triggers WHERE relation::text = 'sale_4';
DROP TABLE sale_4;
SELECT onerepl.self_check();

CREATE TABLE visit (id int PRIMARY KEY) PARTITION BY RANGE (id);
CREATE TABLE visit_1 PARTITION OF visit FOR VALUES FROM (0) TO (10);
SELECT onerepl_add_table('visit_1');
SELECT onerepl_add_table('visit');
\echo :LAST_ERROR_SQLSTATE
DROP TABLE visit;
CREATE TABLE parent (id int PRIMARY KEY);
CREATE TABLE child (PRIMARY KEY (id)) INHERITS (parent);
SELECT onerepl_add_table('parent');
DROP TABLE child, parent;
SELECT onerepl.self_check();

-- the self-check: each fault is found, told once, and gone when cured
ALTER TABLE item DISABLE TRIGGER "!onerepl_capture";
SELECT onerepl.self_check();
SELECT onerepl.self_check();
SELECT relation, kind, message, hint FROM onerepl.problems;
SELECT onerepl_add_table('item');
SELECT onerepl.self_check();
ALTER TABLE item ENABLE TRIGGER "!onerepl_truncate";
ALTER TABLE sale_1 DISABLE TRIGGER "!onerepl_capture";
SELECT onerepl.self_check();
SELECT relation, kind, message FROM onerepl.problems ORDER BY 1, 2;
SELECT onerepl_add_table('item'), onerepl_add_table('sale');
SELECT onerepl.self_check();
DROP TRIGGER "!onerepl_capture" ON item;
CREATE TRIGGER "!onerepl_capture" AFTER INSERT ON item FOR EACH ROW EXECUTE FUNCTION suppress_redundant_updates_trigger();
ALTER TABLE item ENABLE ALWAYS TRIGGER "!onerepl_capture";
SELECT onerepl.self_check();
SELECT relation, kind, message FROM onerepl.problems ORDER BY 1, 2;
DROP TRIGGER "!onerepl_capture" ON item;
DROP TRIGGER "!onerepl_truncate" ON item;
SELECT onerepl.self_check();
SELECT relation, kind, message FROM onerepl.problems ORDER BY 1, 2;
SELECT onerepl_add_table('item');
SELECT onerepl.self_check();
-- rewrites: only those that change values
INSERT INTO item VALUES (1, 'one');
VACUUM FULL item;
CLUSTER item USING item_pkey;
ALTER TABLE item ADD COLUMN price int DEFAULT 0;
SELECT onerepl.self_check();
ALTER TABLE item ALTER COLUMN price TYPE int USING price + 1;
SELECT onerepl.self_check();
SELECT relation, kind, message, hint FROM onerepl.problems;
SELECT onerepl_add_table('item');
SELECT onerepl.self_check();
ALTER TABLE item ADD COLUMN at timestamptz DEFAULT clock_timestamp();
SELECT onerepl.self_check();
SELECT onerepl_add_table('item');
-- dropped and made again; replaced under its name; renamed
DROP TABLE item;
SELECT onerepl.self_check();
CREATE TABLE item (id int PRIMARY KEY, name text);
SELECT onerepl.self_check();
SELECT relation, kind, message, hint FROM onerepl.problems;
SELECT onerepl_add_table('item');
SELECT onerepl.self_check();
ALTER TABLE item RENAME TO item_renamed;
SELECT onerepl.self_check();
CREATE TABLE item (id int PRIMARY KEY, name text);
SELECT onerepl.self_check();
ALTER TABLE item RENAME TO new_item;
ALTER TABLE item_renamed RENAME TO item;
SELECT onerepl.self_check();
BEGIN;
ALTER TABLE item RENAME TO old_item;
ALTER TABLE new_item RENAME TO item;
COMMIT;
SELECT onerepl.self_check();
SELECT relation, kind, message FROM onerepl.problems;
SELECT onerepl_remove_table('old_item');
SELECT onerepl.self_check();
-- unlogged, and without the event triggers
SELECT onerepl_add_table('item');
ALTER TABLE item SET UNLOGGED;
ALTER EVENT TRIGGER onerepl_rewrite DISABLE;
SELECT onerepl.self_check();
SELECT relation, kind, message, hint FROM onerepl.problems ORDER BY kind;
ALTER EVENT TRIGGER onerepl_rewrite ENABLE ALWAYS;
ALTER TABLE item SET LOGGED;
SELECT onerepl.self_check();
-- every fault was critical, once
SELECT level, message FROM onerepl.journal WHERE rule = 'P6' AND level <> 'information' ORDER BY id;

-- whole schemas
SET client_min_messages = error;
SELECT onerepl_add_schema('shop');
RESET client_min_messages;
SELECT relation FROM onerepl.tracked ORDER BY relation::text;
SELECT onerepl_add_schema('no schema');
\echo :LAST_ERROR_SQLSTATE

-- removing
SELECT onerepl_remove_table('sale');
SELECT onerepl_remove_table('sale');
SELECT * FROM triggers WHERE relation::text LIKE 'sale%';
SELECT onerepl_remove_table('item'), onerepl_remove_table('old_item');
SELECT * FROM triggers;
SELECT onerepl.self_check();

-- DROP EXTENSION takes the triggers along, without CASCADE
SELECT onerepl_add_table('sale'), onerepl_add_table('item');
DROP EXTENSION onerepl;
SELECT * FROM triggers;
RESET search_path;
CREATE EXTENSION onerepl;
SET client_min_messages = warning;
DROP FOREIGN DATA WRAPPER nothing CASCADE;
DROP SCHEMA shop CASCADE;
