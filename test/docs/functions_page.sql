-- Prints docs/functions.md from the comments in the catalog: `make docs`, or psql -XqAt -f test/docs/functions_page.sql in a database with the extension.
\pset format unaligned
\pset tuples_only on
SELECT $$# Functions and views

Made from the comments in the catalog by `make docs`; do not edit it. In psql, `\df+ onerepl_*` and `\d+ onerepl.*` show the same.

## Functions$$;
WITH described AS (
    SELECT CASE WHEN p.pronamespace = 'onerepl'::regnamespace THEN 'onerepl.' ELSE '' END || p.proname AS name, obj_description(p.oid, 'pg_proc') AS comment,
           regexp_replace(pg_get_function_arguments(p.oid), '::(\w+ ?)+(\[\])?', '', 'g') AS arguments, pg_get_function_result(p.oid) AS result
    FROM pg_proc AS p JOIN pg_depend AS d ON d.classid = 'pg_proc'::regclass AND d.objid = p.oid AND d.deptype = 'e'
    JOIN pg_extension AS e ON d.refclassid = 'pg_extension'::regclass AND d.refobjid = e.oid AND e.extname = 'onerepl'
    WHERE p.proname ~ '^onerepl_' AND p.prorettype <> 'trigger'::regtype OR p.oid::regprocedure::text ~ '^onerepl.log_records'
)
SELECT format(E'\n### %s\n\n```sql\n%s(%s)\n    RETURNS %s\n```\n\n```text\n%s\n```', name, name, arguments, result, comment)
FROM described ORDER BY name, arguments;
SELECT E'\n## Views';
WITH views AS (
    SELECT c.oid, c.relname AS name, obj_description(c.oid, 'pg_class') AS comment
    FROM pg_class AS c WHERE c.relnamespace = 'onerepl'::regnamespace AND c.relkind = 'v' AND obj_description(c.oid, 'pg_class') IS NOT NULL
)
SELECT format(E'\n### onerepl.%s\n\n```text\n%s\n```\n\nColumns: %s.', name, comment,
              (SELECT string_agg(format('`%s`', a.attname), ', ' ORDER BY a.attnum) FROM pg_attribute AS a WHERE a.attrelid = v.oid AND a.attnum > 0))
FROM views AS v ORDER BY name;
