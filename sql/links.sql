-- Links: adding, changing, removing them; every error with its SQLSTATE.
SET client_min_messages = warning;
\set SHOW_CONTEXT never
CREATE EXTENSION IF NOT EXISTS onerepl;

-- a remote
SELECT onerepl_add_central('east', 'http://127.0.0.1:1', 'a secret of the east') IS NOT NULL AS added;
SELECT name, role, url, paused, start, start_identity = uuid_send(d.id) AS starts_at_zero, stop, reply_timeout
FROM onerepl.link, onerepl.database AS d;
SELECT onerepl_add_central('east', 'http://127.0.0.1:1', 'a secret of the east');
\echo :LAST_ERROR_SQLSTATE
SELECT onerepl_add_central('', 'http://127.0.0.1:1', 'a secret of the east');
\echo :LAST_ERROR_SQLSTATE
SELECT onerepl_add_central('west', 'http://127.0.0.1:1', 'too short');
\echo :LAST_ERROR_SQLSTATE
SELECT onerepl_add_central('west', 'https://127.0.0.1:1', 'a secret of the west');
\echo :LAST_ERROR_SQLSTATE
SELECT onerepl_add_central('west', 'http://127.0.0.1:1', 'a secret of the west', reply_timeout => '0');
\echo :LAST_ERROR_SQLSTATE
SELECT onerepl_add_central('west', url, 'a secret of the west')
FROM (VALUES ('127.0.0.1:7075')) AS u (url);
\echo :LAST_ERROR_SQLSTATE
-- urls that cannot be, each by itself
CREATE FUNCTION pg_temp.url_error(url text) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
    PERFORM onerepl.check_url(url);
    RETURN 'taken';
EXCEPTION WHEN OTHERS THEN
    RETURN SQLSTATE;
END $$;
SELECT url, pg_temp.url_error(url)
FROM unnest(ARRAY['http://central', 'http://central:7075', 'http://central:7075/', 'http://central:7075/a/b', 'http://[::1]:7075', 'HTTP://central:1',
                  'http://', 'http:///x', 'http://central:', 'http://central:0', 'http://central:65536', 'http://central:123456', 'ftp://central',
                  'http://user:password@central', 'http://central?x', 'http://central#x', 'http://cen tral', E'http://central\n', '', NULL, 'https://central'])
     AS u (url);

-- a central
SELECT onerepl_add_remote('north', 'a secret of the north', reply_timeout => '5 s') IS NOT NULL AS added;
SELECT name, role, url, start, peer, reply_timeout FROM onerepl.link WHERE name = 'north';
SELECT onerepl_add_remote('north', 'a secret of the north');
\echo :LAST_ERROR_SQLSTATE
SELECT onerepl_add_remote('south', NULL);
\echo :LAST_ERROR_SQLSTATE

-- what a link may write: nothing that is not named
SELECT link, may_write FROM onerepl_status() ORDER BY link;
SELECT onerepl_add_remote('southwest', 'a secret of the southwest', tables => ARRAY['Public.*', '"Sales"."Or.ders"', '*']) IS NOT NULL AS added;
SELECT may_write FROM onerepl_status() WHERE link = 'southwest';
SELECT onerepl_forbid('southwest', '{*}');
SELECT onerepl_allow('southwest', '{sales.orders,public.*}');
SELECT may_write FROM onerepl_status() WHERE link = 'southwest';
SELECT onerepl_forbid('southwest', '{public.orders}');
\echo :LAST_ERROR_SQLSTATE
SELECT onerepl_allow('east', '{public.orders}');
\echo :LAST_ERROR_SQLSTATE
CREATE FUNCTION pg_temp.allow_error(entry text) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
    PERFORM onerepl_allow('southwest', ARRAY[entry]);
    RETURN 'taken';
EXCEPTION WHEN OTHERS THEN
    RETURN SQLSTATE;
END $$;
SELECT entry, pg_temp.allow_error(entry)
FROM unnest(ARRAY['orders', 'a.b.c', '*.orders', '**', '', NULL, 'public.', '.x', 'onerepl.*', 'onerepl.link', 'pg_catalog.pg_class', 'information_schema.*',
                  'pg_toast.*', 'pg_temp.*', 'pg_temp_3.t', 'public."*"', 'pg_tempting.t']) AS e (entry);
SELECT onerepl_remove_remote('southwest');

-- the status has a row for each
SELECT link, role, peer, written_to, numbered_to, lag_records, lag_seconds, lag_bytes, problems, log_size > 0 AS log_has_size FROM onerepl_status();

-- changing where a link leads
SELECT onerepl_change_link('east', url => 'http://127.0.0.1:2', secret => 'another secret of the east');
SELECT url, signs_with = onerepl.key_of('remote', 'another secret of the east') AS signs, checks_with = onerepl.key_of('central', 'another secret of the east') AS checks
    FROM onerepl.link JOIN onerepl.link_key ON link = id WHERE name = 'east';
SELECT onerepl_change_link('north', url => 'http://127.0.0.1:2');
\echo :LAST_ERROR_SQLSTATE
SELECT onerepl_change_link('east', secret => 'short');
\echo :LAST_ERROR_SQLSTATE
SELECT onerepl_change_link('east', url => 'nonsense');
\echo :LAST_ERROR_SQLSTATE

-- pausing
SELECT onerepl_pause('east'), onerepl_pause('north'), onerepl_pause('east');
SELECT link, state, what_to_do FROM onerepl_status();
SELECT onerepl_resume('east'), onerepl_resume('north');
SELECT name, paused FROM onerepl.link ORDER BY name;
SELECT onerepl_pause('nobody');
\echo :LAST_ERROR_SQLSTATE

-- a link that P9 has stopped says why, whatever else there is to say
UPDATE onerepl.link SET stop = 1, paused = true WHERE name = 'east';
SELECT state, what_to_do FROM onerepl_status() WHERE link = 'east';
SELECT onerepl_wait('east', '1 s');
\echo :LAST_ERROR_SQLSTATE
SELECT onerepl_restart_link('east');
SELECT stop, start, peer FROM onerepl.link WHERE name = 'east';
SELECT state FROM onerepl_status() WHERE link = 'east';
UPDATE onerepl.link SET stop = 3, start = 10, start_identity = '\x00' WHERE name = 'north';
INSERT INTO onerepl.apply_progress (link, seq, written, identity) SELECT id, 1, 12, '\x00' FROM onerepl.link WHERE name = 'north';
SELECT written_to, state FROM onerepl_status() WHERE link = 'north';
SELECT onerepl_restart_link('north');
SELECT stop, start, start_identity FROM onerepl.link WHERE name = 'north';
SELECT written_to FROM onerepl_status() WHERE link = 'north';
SELECT onerepl_restart_link('nobody');
\echo :LAST_ERROR_SQLSTATE

-- functions of the one side refuse links of the other
SELECT onerepl_block('north', 1);
\echo :LAST_ERROR_SQLSTATE
SELECT onerepl_unblock('north', 1);
\echo :LAST_ERROR_SQLSTATE
SELECT onerepl_wait('north');
\echo :LAST_ERROR_SQLSTATE
SELECT onerepl_resolve('east', 1, 'retry');
\echo :LAST_ERROR_SQLSTATE
SELECT onerepl_resolve_all('east', 'retry');
\echo :LAST_ERROR_SQLSTATE
SELECT onerepl_remove_central('north');
\echo :LAST_ERROR_SQLSTATE
SELECT onerepl_remove_remote('east');
\echo :LAST_ERROR_SQLSTATE

-- removing
SELECT onerepl_remove_central('east'), onerepl_remove_remote('north');
SELECT count(*) FROM onerepl.link;
SELECT onerepl_remove_central('east');
\echo :LAST_ERROR_SQLSTATE

-- the journal tells who did all that
SELECT level, rule, replace(message, session_user, 'USER') AS message FROM onerepl.journal WHERE rule IN ('P11', 'P9') AND message ~ ' by ' ORDER BY id;

-- Everything goes with the extension, and it can come back.
DROP EXTENSION onerepl;
SELECT count(*) FROM pg_namespace WHERE nspname = 'onerepl';
CREATE SCHEMA other;
CREATE EXTENSION onerepl SCHEMA other;
SELECT count(*) FROM other.onerepl_status();
DROP EXTENSION onerepl;
DROP SCHEMA other;
CREATE EXTENSION onerepl;
