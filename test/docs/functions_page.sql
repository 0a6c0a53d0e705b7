-- Prints docs/functions.md from the comments in the catalog: `make docs`, or psql -XqAt -f test/docs/functions_page.sql in a database with the extension.
\pset format unaligned
\pset tuples_only on

-- Values and names of onerepl as code.
CREATE FUNCTION pg_temp.marked(text text) RETURNS text LANGUAGE sql IMMUTABLE AS $f$
    SELECT regexp_replace(text, $$(?<!\w)('[^']*'|onerepl[._][a-z_.]*[a-z_](\(\))?)(?!\w)$$, '`\1`', 'g')
$f$;

-- What a comment names after "See: ", as links: pages, rules, functions, views.
CREATE FUNCTION pg_temp.links(names text) RETURNS text LANGUAGE sql IMMUTABLE AS $f$
    SELECT string_agg(format('[%s](%s)', CASE WHEN name ~ '^onerepl' THEN format('`%s`', name) ELSE regexp_replace(name, '^docs/', '') END,
                             CASE WHEN name ~ '^docs/' THEN substr(name, 6)
                                  WHEN name ~ '^[A-Z][0-9]' THEN 'protocol/rules.md#' || lower(name)
                                  ELSE '#' || replace(name, '.', '') END), ', ' ORDER BY place)
    FROM string_to_table(names, ', ') WITH ORDINALITY AS t (name, place)
$f$;

-- One line of a comment. Arguments, columns and errors become items of a list.
CREATE FUNCTION pg_temp.line(kind text, text text) RETURNS text LANGUAGE sql IMMUTABLE AS $f$
    SELECT CASE kind
               WHEN 'item' THEN regexp_replace(pg_temp.marked(text), '^(\w+): ', '- `\1`: ')
               WHEN 'Errors' THEN E'Errors:\n\n' || regexp_replace('- ' || pg_temp.marked(text), '; (?=[0-9A-Z]{5} when|and )', E';\n- ', 'g')
               WHEN 'Returns' THEN 'Returns: ' || pg_temp.marked(text)
               WHEN 'See' THEN 'See: ' || pg_temp.links(text) || '.'
               ELSE pg_temp.marked(text) END
$f$;

-- A comment of the shape that CONTRIBUTING.md describes.
CREATE FUNCTION pg_temp.rendered(comment text) RETURNS text LANGUAGE sql IMMUTABLE AS $f$
    WITH lines AS (
        SELECT place, coalesce(substring(line FROM '^(Errors|Returns|See): '), CASE WHEN line ~ '^  ' THEN 'item' ELSE 'text' END) AS kind,
               regexp_replace(line, '^(  |Errors: |Returns: |See: )', '') AS text
        FROM string_to_table(regexp_replace(comment, E'\n    ', ' ', 'g'), E'\n') WITH ORDINALITY AS t (line, place)
    )
    SELECT string_agg(CASE WHEN place = 1 THEN ''
                           WHEN kind = before AND (kind = 'item' OR place > 2) THEN E'\n'
                           ELSE E'\n\n' END || pg_temp.line(kind, text), '' ORDER BY place)
    FROM (SELECT *, lag(kind) OVER (ORDER BY place) AS before FROM lines) AS l
$f$;

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
SELECT format(E'\n### %s\n\n```sql\n%s(%s)\n    RETURNS %s\n```\n\n%s', name, name, arguments, result, pg_temp.rendered(comment))
FROM described ORDER BY name, arguments;
SELECT E'\n## Views\n\nThose that administrators read.';
WITH views AS (
    SELECT c.oid, c.relname AS name, obj_description(c.oid, 'pg_class') AS comment
    FROM pg_class AS c WHERE c.relnamespace = 'onerepl'::regnamespace AND c.relkind = 'v'
      AND c.relname NOT IN ('failed_log', 'followed_sequence', 'tracked_member', 'trigger_definition', 'written_log')
)
SELECT format(E'\n### onerepl.%s\n\n%s\n\n%s', name, pg_temp.rendered(comment),
              (SELECT string_agg(format('- `%s`: %s', a.attname, pg_temp.marked(col_description(v.oid, a.attnum))), E'\n' ORDER BY a.attnum)
               FROM pg_attribute AS a WHERE a.attrelid = v.oid AND a.attnum > 0))
FROM views AS v ORDER BY name;
