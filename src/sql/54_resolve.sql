-- The central: what to do with records that cannot be written (state F, P13).

CREATE FUNCTION onerepl.journal_resolution(target onerepl.link, how text, records int8, first int8, last int8, condition text)
    RETURNS void
    LANGUAGE sql
    SET search_path = pg_catalog, pg_temp AS $$
    SELECT onerepl.write_journal(
        CASE how WHEN 'retry' THEN 0 WHEN 'overwrite' THEN 1 ELSE 2 END, target.id, 'P13',
        format('%s%s of link "%s" will %s, by %s',
               CASE records WHEN 1 THEN format('record %s', first) ELSE format('%s failed records', records) END,
               condition, target.name,
               CASE how WHEN 'retry' THEN 'be tried again' WHEN 'overwrite' THEN 'overwrite what stands in the way' ELSE 'be skipped' END,
               session_user),
        CASE how WHEN 'skip' THEN 'The tables of the two databases differ from now on unless you make the skipped changes by hand.' END,
        first, last)
$$;
COMMENT ON FUNCTION onerepl.journal_resolution(onerepl.link, text, int8, int8, int8, text) IS
'Tells the journal who resolved failures and how: overwriting is a warning, skipping is critical.';

CREATE FUNCTION onerepl.check_resolution(how text) RETURNS void
    LANGUAGE plpgsql IMMUTABLE
    SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF how IS NULL OR how NOT IN ('retry', 'overwrite', 'skip') THEN
        RAISE EXCEPTION 'unknown way to resolve a failure: "%"', how USING
            ERRCODE = 'invalid_parameter_value',
            HINT = 'Use retry, overwrite or skip.';
    END IF;
END $$;
COMMENT ON FUNCTION onerepl.check_resolution(text) IS 'Errors: 22023 unless it is retry, overwrite or skip.';

CREATE FUNCTION onerepl_resolve(link text, n int8, how text) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
    target onerepl.link := onerepl.get_link(onerepl_resolve.link, 'central');
    resolved onerepl.failure;
BEGIN
    PERFORM onerepl.check_resolution(onerepl_resolve.how);
    UPDATE onerepl.failure AS f SET resolution = onerepl_resolve.how, resolved_by = session_user
        WHERE f.link = target.id AND f.n = onerepl_resolve.n
        RETURNING * INTO resolved;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'record % of link "%" is no failure', onerepl_resolve.n, target.name USING
            ERRCODE = 'no_data_found',
            HINT = 'The view onerepl.failed lists the failures.';
    END IF;
    IF resolved.at_commit AND resolved.resolution = 'overwrite' THEN
        RAISE EXCEPTION 'no row can be overwritten: the failure shows only when the transaction commits' USING
            ERRCODE = 'invalid_parameter_value',
            HINT = format('Remove the cause and use retry, or use skip, which leaves out the whole transaction, records %s to %s.',
                          resolved.transaction_first, resolved.transaction_last);
    END IF;
    IF resolved.at_commit AND resolved.resolution = 'skip' THEN
        PERFORM onerepl.journal_resolution(target, 'skip', resolved.transaction_last - resolved.transaction_first + 1,
                                           resolved.transaction_first, resolved.transaction_last, ', a whole transaction,');
    ELSE
        PERFORM onerepl.journal_resolution(target, onerepl_resolve.how, 1, onerepl_resolve.n, onerepl_resolve.n, '');
    END IF;
    PERFORM onerepl.wake_at_commit(false, true);
END $$;
COMMENT ON FUNCTION onerepl_resolve(text, int8, text) IS
'Resolves a failure on the central: says what is to be done with a record that could not be written.
The record''s whole transaction is then tried again.
A failure that only COMMIT shows (onerepl.failed.at_commit) is not one record''s: ''skip'' leaves out the whole transaction.
The journal tells of overwriting as a warning and of skipping as critical, both with your name.
  link: name of the link.
  n: number of the record, as onerepl.failed shows it.
  how: ''retry'': you have removed the cause; ''overwrite'': the incoming row replaces the rows that stand in its way, an update of a
    missing row becomes an insert, a delete of one becomes nothing; ''skip'': the record counts as written, and nothing of it is.
Errors: 42704 when there is no such link; P0002 when the record is no failure; 22023 when how is another, or is ''overwrite'' for a
    failure at COMMIT; 55000 when this database is the remote of the link.
See: docs/failed-records.md, onerepl_resolve_all, P13';

CREATE FUNCTION onerepl_resolve_all(link text, how text, sqlstate text DEFAULT NULL, relation text DEFAULT NULL,
                                    constraint_name text DEFAULT NULL) RETURNS int8
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
    target onerepl.link := onerepl.get_link(onerepl_resolve_all.link, 'central');
    resolved record;
BEGIN
    PERFORM onerepl.check_resolution(onerepl_resolve_all.how);
    WITH changed AS (
        UPDATE onerepl.failure AS f SET resolution = onerepl_resolve_all.how, resolved_by = session_user
            WHERE f.link = target.id AND coalesce(f.resolution, 'retry') = 'retry'
              AND NOT (f.at_commit AND onerepl_resolve_all.how = 'overwrite')
              AND (onerepl_resolve_all.sqlstate IS NULL OR f.sqlstate = onerepl_resolve_all.sqlstate)
              AND (onerepl_resolve_all.relation IS NULL OR f.relation = onerepl_resolve_all.relation)
              AND (onerepl_resolve_all.constraint_name IS NULL OR f.constraint_name = onerepl_resolve_all.constraint_name)
            RETURNING f.n
    )
    SELECT count(*) AS records, min(n) AS first, max(n) AS last INTO resolved FROM changed;
    IF resolved.records > 0 THEN
        PERFORM onerepl.journal_resolution(target, onerepl_resolve_all.how, resolved.records, resolved.first, resolved.last,
            concat(' with SQLSTATE ' || onerepl_resolve_all.sqlstate, ' of table ' || onerepl_resolve_all.relation,
                   ' against constraint ' || onerepl_resolve_all.constraint_name));
        PERFORM onerepl.wake_at_commit(false, true);
    END IF;
    RETURN resolved.records;
END $$;
COMMENT ON FUNCTION onerepl_resolve_all(text, text, text, text, text) IS
'Resolves all failures of a link that match and are not decided yet, as onerepl_resolve does with one.
Only the failures known now: a transaction that fails later, or otherwise, asks again.
A failure that only COMMIT shows (onerepl.failed.at_commit) is left as it is by ''overwrite''.
  link: name of the link.
  how: ''retry'', ''overwrite'' or ''skip'', as in onerepl_resolve.
  sqlstate: only failures with this SQLSTATE; null (default): any.
  relation: only failures of this table, as onerepl.failed shows it; null (default): any.
  constraint_name: only failures against this constraint; null (default): any.
Returns: how many failures were resolved.
Errors: 42704 when there is no such link; 22023 when how is another; 55000 when this database is the remote of the link.
See: docs/failed-records.md, onerepl_resolve, P13';
