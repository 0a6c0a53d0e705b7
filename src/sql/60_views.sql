-- Views for the administrator. onerepl.log is in 58_log.sql.

CREATE VIEW onerepl.journal AS
    SELECT j.id, j.at, CASE j.level WHEN 0 THEN 'information' WHEN 1 THEN 'warning' ELSE 'critical' END AS level,
           l.name AS link, j.rule, j.message, j.hint, j.first, j.last
    FROM onerepl.journal_entry AS j LEFT JOIN onerepl.link AS l ON l.id = j.link;
COMMENT ON VIEW onerepl.journal IS 'What onerepl has to tell: information, warnings, critical errors. Kept for onerepl.journal_retention.';
COMMENT ON COLUMN onerepl.journal.id IS 'Larger for what was written later.';
COMMENT ON COLUMN onerepl.journal.at IS 'When it was written.';
COMMENT ON COLUMN onerepl.journal.level IS 'information, warning or critical.';
COMMENT ON COLUMN onerepl.journal.link IS 'Name of the link; null: it is about none.';
COMMENT ON COLUMN onerepl.journal.rule IS 'The rule that speaks (docs/protocol/rules.md).';
COMMENT ON COLUMN onerepl.journal.message IS 'What happened.';
COMMENT ON COLUMN onerepl.journal.hint IS 'What to do; null: nothing.';
COMMENT ON COLUMN onerepl.journal.first IS 'The first number that it is about; null: it is about none.';
COMMENT ON COLUMN onerepl.journal.last IS 'The last number that it is about.';

CREATE VIEW onerepl.queue AS
    SELECT l.name AS link, w.first, w.last, w.part, w.parts, w.last_end, w.size, w.received_at
    FROM onerepl.waiting AS w JOIN onerepl.link AS l ON l.id = w.link;
COMMENT ON VIEW onerepl.queue IS
'What a central has received and cannot write yet: out of order, an unfinished transaction, or after a failure.';
COMMENT ON COLUMN onerepl.queue.link IS 'Name of the link.';
COMMENT ON COLUMN onerepl.queue.first IS 'The first number.';
COMMENT ON COLUMN onerepl.queue.last IS 'The last number.';

CREATE VIEW onerepl.failed AS
    SELECT l.name AS link, f.n, f.transaction_first, f.transaction_last, f.relation, f.operation, f.key, f.row, f.sqlstate, f.message,
           f.detail, f.hint, f.constraint_name, f.at_commit, f.failed_at, f.resolution, f.resolved_by,
           CASE WHEN f.operation IN ('insert', 'update') AND f.sqlstate = '23505' THEN f.operation || '_exists'
                WHEN f.operation IN ('update', 'delete') AND f.sqlstate = 'P0002' THEN f.operation || '_missing' END AS conflict
    FROM onerepl.failure AS f JOIN onerepl.link AS l ON l.id = f.link;
COMMENT ON VIEW onerepl.failed IS
'Records in state F: received, but they cannot be written.
They hold up their transaction and what follows. Resolve them with onerepl_resolve() or onerepl_resolve_all().';
COMMENT ON COLUMN onerepl.failed.link IS 'Name of the link.';
COMMENT ON COLUMN onerepl.failed.n IS 'The record''s number; with at_commit the last one of its transaction, whichever record is to blame.';
COMMENT ON COLUMN onerepl.failed.message IS 'The error''s message.';
COMMENT ON COLUMN onerepl.failed.hint IS 'The error''s hint.';
COMMENT ON COLUMN onerepl.failed.at_commit IS 'Only the transaction''s COMMIT has shown it.';
COMMENT ON COLUMN onerepl.failed.resolved_by IS 'Who has decided; null: nobody yet.';
COMMENT ON COLUMN onerepl.failed.conflict IS
'PostgreSQL''s name of the conflict: insert_exists, update_exists, update_missing, delete_missing; null: it is none.';

CREATE VIEW onerepl.problems AS
    SELECT coalesce(c.name, p.relation::regclass::text) AS relation, p.kind, p.message, p.hint, p.since
    FROM onerepl.problem AS p LEFT JOIN onerepl.checked AS c ON c.relation = p.relation;
COMMENT ON VIEW onerepl.problems IS 'What the self-check found wrong with tracked or guarded tables and is not cured yet.';
COMMENT ON COLUMN onerepl.problems.relation IS 'The table, as it is called here.';
COMMENT ON COLUMN onerepl.problems.message IS 'What is wrong.';
COMMENT ON COLUMN onerepl.problems.hint IS 'The cure.';
