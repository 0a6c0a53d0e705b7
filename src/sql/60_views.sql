-- Views for the administrator. onerepl.log is in 58_log.sql.

CREATE VIEW onerepl.journal AS
    SELECT j.id, j.at, CASE j.level WHEN 0 THEN 'information' WHEN 1 THEN 'warning' ELSE 'critical' END AS level,
           l.name AS link, j.rule, j.message, j.hint, j.first, j.last
    FROM onerepl.journal_entry AS j LEFT JOIN onerepl.link AS l ON l.id = j.link;
COMMENT ON VIEW onerepl.journal IS
'What onerepl has to tell: information, warnings, critical errors. rule: the rule of the specification that speaks; first, last: the
numbers that it is about; hint: what to do. Kept for onerepl.journal_retention.';

CREATE VIEW onerepl.queue AS
    SELECT l.name AS link, w.first, w.last, w.part, w.parts, w.last_end, w.size, w.received_at
    FROM onerepl.waiting AS w JOIN onerepl.link AS l ON l.id = w.link;
COMMENT ON VIEW onerepl.queue IS
'What a central has received and cannot write yet: out of order, an unfinished transaction, or after a failure. first, last: the
numbers; part of parts: of one large record; last_end: the largest number in it that ends a transaction, 0: none; size: bytes before
compression.';

CREATE VIEW onerepl.failed AS
    SELECT l.name AS link, f.n, f.transaction_first, f.transaction_last, f.relation, f.operation, f.key, f.row, f.sqlstate, f.message,
           f.detail, f.hint, f.constraint_name, f.at_commit, f.failed_at, f.resolution, f.resolved_by,
           CASE WHEN f.operation IN ('insert', 'update') AND f.sqlstate = '23505' THEN f.operation || '_exists'
                WHEN f.operation IN ('update', 'delete') AND f.sqlstate = 'P0002' THEN f.operation || '_missing' END AS conflict
    FROM onerepl.failure AS f JOIN onerepl.link AS l ON l.id = f.link;
COMMENT ON VIEW onerepl.failed IS
'Records in state F: received, but they cannot be written. They hold up their transaction, transaction_first to transaction_last,
and what follows. Resolve them with onerepl_resolve() or onerepl_resolve_all(). at_commit: only the transaction''s COMMIT has shown it,
and n is its last record, whichever is to blame. resolution, resolved_by: what was decided and by
whom; null: to be decided. conflict: PostgreSQL''s name for it: insert_exists, update_exists, update_missing, delete_missing; null: it is none.';

CREATE VIEW onerepl.problems AS
    SELECT coalesce(c.name, p.relation::regclass::text) AS relation, p.kind, p.message, p.hint, p.since
    FROM onerepl.problem AS p LEFT JOIN onerepl.checked AS c ON c.relation = p.relation;
COMMENT ON VIEW onerepl.problems IS
'What the self-check found wrong with tracked or guarded tables and is not cured yet: message, and in hint the cure.';
