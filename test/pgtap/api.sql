-- What the functions answer, where pg_regress compares text: SQLSTATEs, lookups, the wait.
BEGIN;
SELECT no_plan();

SELECT lives_ok($$SELECT onerepl_add_central('east', 'http://127.0.0.1:1', 'a secret of the east')$$);
SELECT lives_ok($$SELECT onerepl_add_remote('north', 'a secret of the north')$$);
SELECT lives_ok($$SELECT onerepl_pause('east')$$);
SELECT throws_ok($$SELECT onerepl_add_central('east', 'http://127.0.0.1:1', 'a secret of the east')$$, '42710', 'link "east" already exists');
SELECT throws_ok($$SELECT onerepl_add_central('x', 'https://central', 'a secret of the east')$$, '0A000', 'https is not supported yet');
SELECT throws_ok($$SELECT onerepl_add_central('x', 'central', 'a secret of the east')$$, '22023', 'invalid url "central"');
SELECT throws_ok($$SELECT onerepl_add_remote('x', 'short')$$, '22023', 'secret is too short');
SELECT throws_ok($$SELECT onerepl_block('x', 1)$$, '42704', 'link "x" does not exist');
SELECT throws_ok($$SELECT onerepl_block('north', 1)$$, '55000');
SELECT throws_ok($$SELECT onerepl_unblock('east', 1)$$, 'P0002', 'record 1 of link "east" is not blocked');
SELECT throws_ok($$SELECT onerepl_resolve('north', 1, 'skip')$$, 'P0002', 'record 1 of link "north" is no failure');
SELECT throws_ok($$SELECT onerepl_wait('east')$$, '25001');
SELECT results_eq($$SELECT link, role FROM onerepl_status()$$, $$VALUES ('east', 'remote'), ('north', 'central')$$);

-- an object that was never changed is in I, for each link
CREATE TABLE tap_item (id int PRIMARY KEY);
SELECT set_eq($$SELECT link, state, n FROM onerepl_object_state('tap_item', '1')$$,
              $$VALUES ('east', 'I', NULL::bigint), ('north', 'I', NULL)$$);

-- the identity at 0 is the database's identifier; further on, what src/core/history.h says
SELECT is(identity, uuid_send((SELECT id FROM onerepl.database)), 'identity at 0') FROM onerepl.identity_at_last();
INSERT INTO onerepl.batch (first, last, identity_before, random, transactions)
    SELECT 1, 5, uuid_send(id), decode(repeat('11', 16), 'hex'), '' FROM onerepl.database;
SELECT is(identity, substr(sha256(uuid_send((SELECT id FROM onerepl.database)) || decode(repeat('11', 16), 'hex') || '\x0000000000000005'), 1, 16),
          'identity at 5')
FROM onerepl.identity_at_last();
SELECT is(last, 5::bigint) FROM onerepl.identity_at_last();
SELECT lives_ok($$SELECT onerepl_add_central('late', 'http://127.0.0.1:1', 'a secret of the late')$$);
SELECT is(start, 5::bigint, 'a link starts after the newest number') FROM onerepl.link WHERE name = 'late';

-- states of records by position
INSERT INTO onerepl.sent_progress (link, seq, sent, confirmed) SELECT id, 1, 3, 2 FROM onerepl.link WHERE name = 'east';
SELECT onerepl_block('east', 5);
SELECT results_eq($$SELECT onerepl.record_state(l.id, n, onerepl.confirmed_to(l.id), onerepl.sent_to(l.id))
                    FROM onerepl.link AS l, generate_series(1, 5) AS n WHERE l.name = 'east' ORDER BY n$$,
                  ARRAY['C', 'C', 'S', 'L', 'B'], 'C, S, L, B');
SELECT throws_ok($$SELECT onerepl_block('east', 3)$$, '55000', 'record 3 was already sent on link "east"');
SELECT results_eq($$SELECT written_to, numbered_to, lag_records FROM onerepl_status() WHERE link = 'east'$$, $$VALUES (2::bigint, 5::bigint, 3::bigint)$$);

-- capture that was stopped goes on with a link's new start; what was not captured is missing for the others, too
UPDATE onerepl.log_state SET capture_stopped = true;
SELECT is(state, 'capture stopped: the log reached onerepl.log_critical_size') FROM onerepl_status() WHERE link = 'late';
SELECT onerepl_restart_link('late');
SELECT is(capture_stopped, false, 'capture goes on') FROM onerepl.log_state;
SELECT results_eq($$SELECT name, stop::int FROM onerepl.link WHERE role = 'remote' ORDER BY name$$, $$VALUES ('east', 3), ('late', 0)$$);
SELECT is(state, 'stopped: the two histories differ') FROM onerepl_status() WHERE link = 'east';

-- the journal keeps what its level says
SET LOCAL onerepl.journal_level = 'warning';
SELECT onerepl.write_journal(0, NULL, 'P1', 'a test of information');
SELECT onerepl.write_journal(1, NULL, 'P1', 'a test of a warning', 'a hint', 7, 9);
SELECT results_eq($$SELECT level, message, hint, first, last FROM onerepl.journal WHERE message LIKE 'a test of%'$$,
                  $$VALUES ('warning', 'a test of a warning', 'a hint', 7::bigint, 9::bigint)$$);
SELECT throws_ok($$SELECT onerepl.write_journal(3, NULL, 'P1', 'x')$$, '22023');

SELECT * FROM finish();
ROLLBACK;
