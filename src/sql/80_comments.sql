-- What is called alike everywhere, and what has no comment beside its definition. A test holds that nothing of the extension is without one.

COMMENT ON SCHEMA onerepl IS 'What onerepl keeps and knows. Read the views; call the functions onerepl_* to change anything.';

COMMENT ON TABLE onerepl.change_1 IS 'As onerepl.change_0.';
COMMENT ON TABLE onerepl.change_2 IS 'As onerepl.change_0.';
COMMENT ON TABLE onerepl.change_3 IS 'As onerepl.change_0.';
COMMENT ON TABLE onerepl.pending IS 'Objects that were changed and that not every central has confirmed, for lock_pending (P6).';
COMMENT ON VIEW onerepl.failed_log IS 'For onerepl.log: records that are in state F at this central.';
COMMENT ON VIEW onerepl.written_log IS 'For onerepl.log: records that this central has written.';
COMMENT ON VIEW onerepl.followed_sequence IS 'Sequences whose state travels: those of tracked tables, and those that were added by name.';
COMMENT ON VIEW onerepl.tracked_member IS 'Tracked tables, and the partitions of those that are partitioned.';
COMMENT ON VIEW onerepl.trigger_definition IS 'onerepl''s triggers: how each is made, and what pg_trigger.tgtype must say of it.';

COMMENT ON EVENT TRIGGER "!onerepl_drop" IS 'Tells what happened to tracked tables that were dropped.';
COMMENT ON EVENT TRIGGER "!onerepl_reach" IS 'Holds what a told statement has done to the link''s reach (P18).';
COMMENT ON EVENT TRIGGER "!onerepl_reach_drop" IS 'Holds what a told statement has dropped to the link''s reach (P18).';
COMMENT ON EVENT TRIGGER "!onerepl_schema" IS 'Records what a statement did to the shape of tracked tables (P21), and tracks new ones.';
COMMENT ON EVENT TRIGGER "!onerepl_schema_partition" IS 'Adjusts triggers and records of partitions that come and go.';
COMMENT ON EVENT TRIGGER onerepl_guard IS 'Guards new partitions of guarded tables (P8).';
COMMENT ON EVENT TRIGGER onerepl_rewrite IS 'Notes that ALTER TABLE gave the rows of a tracked table new values.';

COMMENT ON SEQUENCE onerepl.description_id_seq IS 'Of onerepl.description.id.';
COMMENT ON SEQUENCE onerepl.filter_id_seq IS 'Of onerepl.filter.id.';
COMMENT ON SEQUENCE onerepl.journal_entry_id_seq IS 'Of onerepl.journal_entry.id.';
COMMENT ON SEQUENCE onerepl.link_id_seq IS 'Of onerepl.link.id.';
COMMENT ON SEQUENCE onerepl.pending_number_seq IS 'Of onerepl.pending.number.';
COMMENT ON SEQUENCE onerepl.refresh_id_seq IS 'Of onerepl.refresh.id.';

DO $$
DECLARE
    one record;
BEGIN
    FOR one IN
        SELECT c.oid::regclass AS relation, a.attname, t.text
        FROM (VALUES
            ('link', 'The link: its name in views, onerepl.link.id in tables.'),
            ('relation', 'The table, as this database or, where that says so, the remote calls it.'),
            ('at', 'When it was made or happened.'),
            ('first', 'The first number.'),
            ('last', 'The last number; of the log''s tables: whether it is the transaction''s last pack.'),
            ('n', 'The record''s number.'),
            ('id', 'Its identifier.'),
            ('hint', 'What to do about it.'),
            ('message', 'What is wrong, or happened.'),
            ('name', 'Its name.'),
            ('seq', 'Larger for what was written later.'),
            ('operation', 'What the record does: insert, update, delete, truncate, ...'),
            ('xid', 'The transaction.'),
            ('data', 'Packed records: src/log/pack.h.'),
            ('key', 'The row''s key, as text.'),
            ('schema', 'Its schema.'),
            ('state', 'Where it stands.'),
            ('added_at', 'When the administrator added it.'),
            ('key_to', 'The last key of the range; empty or null: to the last row.'),
            ('key_from', 'The key before the range; empty or null: from the first row.'),
            ('made_at', 'When it was made.'),
            ('method', 'empty, repair or verify: what onerepl_refresh or onerepl_verify was asked for.'),
            ('moved_to', 'The key that an update gave the row; null: the same.'),
            ('object_id', 'The row''s key, as text.'),
            ('part', 'Of one large record, from 0.'),
            ('parts', 'Into how many parts the record is cut; 1: whole records.'),
            ('started_at', 'When the copy began.'),
            ('changed_at', 'When it came to its state.'),
            ('chunks', 'How many there were so far.'),
            ('constraint_name', 'The constraint that is violated, if the error names one.'),
            ('created_at', 'When it was made.'),
            ('detail', 'The error''s detail.'),
            ('difference', 'missing (here), surplus (here), or different.'),
            ('differences', 'How many ranges differ.'),
            ('error', 'Why it does not go on; null: it does.'),
            ('failed_at', 'When the central tried to write it last.'),
            ('finished_at', 'When it came to its end.'),
            ('kind', 'What is looked at: a trigger, the key, the shape, ...'),
            ('level', 'How serious it is; of triggers: ROW or STATEMENT.'),
            ('received_at', 'When it came.'),
            ('resolution', 'What the administrator has decided: retry, overwrite, skip; null: nothing yet.'),
            ('resolved_by', 'Who has decided.'),
            ('role', 'What this database is on the link: remote or central.'),
            ('row', 'The record''s row, as text.'),
            ('rows_done', 'Rows that were copied so far.'),
            ('rows_estimate', 'Rows that the table has, about.'),
            ('rows_here', 'Rows of this database in the range.'),
            ('rows_remote', 'Rows of the remote in the range.'),
            ('rows_per_second', 'The speed; of onerepl.refresh: the largest one that is wanted.'),
            ('bytes_per_second', 'The largest speed that is wanted.'),
            ('rule', 'The rule of the protocol (docs/protocol/rules.md).'),
            ('since', 'When it was found.'),
            ('single', 'There is one row.'),
            ('sqlstate', 'The error''s SQLSTATE.'),
            ('start_at', 'Not before this moment.'),
            ('transaction_first', 'The first number of the transaction that waits.'),
            ('transaction_last', 'Its last number.'),
            ('written', 'S: the last number that is written here.'),
            ('at_commit', 'Only the transaction''s COMMIT has shown it.'),
            ('body', 'The chunk''s record.'),
            ('branch', 'The remote''s value in branch_column.'),
            ('by', 'Who blocked it.'),
            ('bytes', 'Bytes that were copied so far.'),
            ('bytes_done', 'Bytes that were copied so far.'),
            ('capture_stopped', 'The log reached onerepl.log_critical_size under the policy stop_capture.'),
            ('checks_with', 'The key that the peer''s bodies are checked with.'),
            ('signs_with', 'The key that own bodies are signed with.'),
            ('chunk_rows', 'Rows of one chunk, at most.'),
            ('columns', 'The columns that differ.'),
            ('complete', 'The whole table was compared.'),
            ('not_compared', 'Chunks that could not be compared.'),
            ('compressed', 'body is zstd.'),
            ('conflict', 'PostgreSQL''s name of the conflict; null: it is none.'),
            ('dropped', 'The table is gone.'),
            ('estimated_end', 'When it will be done at the present speed.'),
            ('events', 'On which events it fires.'),
            ('frames', 'As they came: compressed frames of the wire.'),
            ('function', 'What it executes.'),
            ('identity', 'The history''s identity at that number (P9).'),
            ('identity_before', 'The history''s identity before the first number (P9).'),
            ('start_identity', 'The history''s identity at the start (P9).'),
            ('is_called', 'As of the sequence.'),
            ('last_value', 'As of the sequence.'),
            ('last_contact', 'The last authentic message of the peer.'),
            ('last_end', 'The largest number in it that ends a transaction; 0: none.'),
            ('last_error', 'The error of the last contact; null: it was good.'),
            ('last_error_at', 'When that was.'),
            ('layout', 'How stored bytes are to be read: src/log/layout.h.'),
            ('lid_start', 'LIDStart: the last number before the copy.'),
            ('lid_end', 'LIDEnd: the number of its last chunk.'),
            ('log_table', 'Which of the four it is.'),
            ('made_by', 'Who made it.'),
            ('newest', 'It is the one that counts now.'),
            ('number', 'Larger for what changed later.'),
            ('one_snapshot', 'The table is read as a whole.'),
            ('outcome', 'How it ends when the central has confirmed that.'),
            ('paused', 'onerepl_pause was called.'),
            ('peer_state', 'What the peer said of itself.'),
            ('percent', 'How much is done.'),
            ('random', 'What makes the identity after the batch one of a kind.'),
            ('refresh', 'onerepl.refresh.id at the remote.'),
            ('relkind', 'As in pg_class.'),
            ('relpersistence', 'As in pg_class.'),
            ('remote_schema', 'The schema at the remote.'),
            ('reply_timeout', 'Overrides onerepl.reply_timeout; null: it does not.'),
            ('send_interval', 'Overrides onerepl.send_interval; null: it does not.'),
            ('state_query_interval', 'Overrides onerepl.state_query_interval; null: it does not.'),
            ('requested_by', 'Who asked for it.'),
            ('root', 'The tracked table that it is, or is a partition of.'),
            ('rotated_at', 'When the active log table became that.'),
            ('row_first', 'The first number of the received frames.'),
            ('row_last', 'The last number of the received frames.'),
            ('rows', 'Rows that were copied so far.'),
            ('size', 'Bytes before compression.'),
            ('transactions', 'src/log/batch.h: xid, record count, log table, flags of each.'),
            ('type', 'What pg_trigger.tgtype must be.')
        ) AS t (name, text)
        JOIN pg_attribute AS a ON a.attname = t.name AND a.attnum > 0 AND NOT a.attisdropped
        JOIN pg_class AS c ON c.oid = a.attrelid AND c.relnamespace = 'onerepl'::regnamespace AND c.relkind IN ('r', 'v')
        WHERE col_description(c.oid, a.attnum) IS NULL
    LOOP
        EXECUTE format('COMMENT ON COLUMN %s.%I IS %L', one.relation, one.attname, one.text);
    END LOOP;
END $$;
