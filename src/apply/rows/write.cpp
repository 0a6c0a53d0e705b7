// Writing single rows: past the executor where no trigger fires, through its replication routines where one
// does.
#include "apply/rows/write.h"

#include "apply/rows/apply_transaction.h"
#include "apply/rows/conflict.h"
#include "apply/rows/deferred.h"
#include "apply/rows/foreign.h"
#include "apply/rows/foreign_row.h"
#include "apply/rows/pending.h"
#include "apply/rows/table.h"

extern "C" {
#include "access/heapam.h"
#include "commands/trigger.h"
#include "utils/guc.h"
#include "rewrite/rewriteHandler.h"
#include "optimizer/optimizer.h"
#include "utils/lsyscache.h"
}

namespace onerepl::apply {

namespace {

constexpr int buffered_rows = 1000;
constexpr Size buffered_bytes_of_table = 1 << 20;
constexpr Size buffered_bytes_of_all = 16 << 20;

/// Generated columns, constraints, partition bounds: what has to hold before the row is written.
void complete_row(Table* table) {
    TupleDesc description = RelationGetDescr(table->relation);
    table->fresh->tts_tableOid = table->oid;
    if (description->constr != nullptr) {
        // CMD_INSERT also for updates: it computes every generated column.
        if (description->constr->has_generated_stored)
            ExecComputeStoredGenerated(table->result, table->estate, table->fresh, CMD_INSERT);
        ExecConstraints(table->result, table->fresh, table->estate);
    }
    if (table->relation->rd_rel->relispartition)
        ExecPartitionCheck(table->result, table->fresh, table->estate, true);
}

// ---------------------------------------------------------------- triggers

/// Surrounds one row's work as a query of its own, so that its triggers fire at once and see what was written
/// before.
void begin_query(ApplyTransaction& xact, Table* table) {
    count_command(xact);
    PushActiveSnapshot(GetTransactionSnapshot());
    table->estate->es_output_cid = GetCurrentCommandId(true);
    table->estate->es_snapshot = GetActiveSnapshot();
    AfterTriggerBeginQuery();
}

void end_query(ApplyTransaction& xact, Table* table) {
    AfterTriggerEndQuery(table->estate);
    PopActiveSnapshot();
    xact.uncounted = true;
    ResetPerTupleExprContext(table->estate);
}

void add_index_entries(ApplyTransaction& xact, Table* table, TupleTableSlot* slot,
                       const compat::IndexUpdate* update, Number n) {
    if (table->result->ri_NumIndices == 0) return;
    List* doubtful = compat::insert_index_tuples(table->result, slot, table->estate, update);
    if (doubtful != NIL) defer_check(xact, table, doubtful, &slot->tts_tid, n);
    ResetPerTupleExprContext(table->estate);
}

// ---------------------------------------------------------------- buffered inserts

void make_buffer(Table* table) {
    MemoryContext before = MemoryContextSwitchTo(table->memory);
    table->buffered = static_cast<TupleTableSlot**>(palloc(sizeof(TupleTableSlot*) * buffered_rows));
    table->buffered_numbers = static_cast<Number*>(palloc(sizeof(Number) * buffered_rows));
    MemoryContextSwitchTo(before);
}

/// Takes the fresh slot into the buffer and gives the table another one.
void buffer_row(ApplyTransaction& xact, Table* table) {
    if (table->buffered == nullptr) make_buffer(table);
    const int place = table->buffered_count;
    if (place == table->buffered_slots) {
        MemoryContext before = MemoryContextSwitchTo(table->memory);
        table->buffered[place] = table_slot_create(table->relation, nullptr);
        MemoryContextSwitchTo(before);
        table->buffered_slots++;
    }
    std::swap(table->buffered[place], table->fresh);
    table->buffered_numbers[place] = xact.n;
    table->buffered_count++;
    TupleTableSlot* slot = table->buffered[place];
    ExecMaterializeSlot(slot);
    bool copied;
    const Size size = ExecFetchSlotHeapTuple(slot, false, &copied)->t_len;
    table->buffered_bytes += size;
    xact.buffered_bytes += size;
}

void write_buffered(ApplyTransaction& xact, Table* table) {
    if (table->has_triggers) begin_query(xact, table);
    table_multi_insert(table->relation, table->buffered, table->buffered_count, GetCurrentCommandId(true), 0,
                       nullptr);
    xact.uncounted = true;
    for (int i = 0; i < table->buffered_count; i++) {
        add_index_entries(xact, table, table->buffered[i], nullptr, table->buffered_numbers[i]);
        if (table->has_triggers)
            ExecARInsertTriggers(table->estate, table->result, table->buffered[i], NIL, nullptr);
        ExecClearTuple(table->buffered[i]);
    }
    xact.buffered_bytes -= table->buffered_bytes;
    table->buffered_bytes = 0;
    table->buffered_count = 0;
    if (table->has_triggers) end_query(xact, table);
    ResetPerTupleExprContext(table->estate);
}

void check_identity(Table* table) {
    // Once a transaction, as the executor does with each row: another tool may publish this table.
    if (table->identity_checked) return;
    CheckCmdReplicaIdentity(table->relation, CMD_UPDATE);
    CheckCmdReplicaIdentity(table->relation, CMD_DELETE);
    table->identity_checked = true;
}

// ---------------------------------------------------------------- rows with triggers

bool may_keep(const Table* table, CmdType operation) {
    const TriggerDesc* triggers = table->result->ri_TrigDesc;
    if (triggers == nullptr) return false;
    return operation == CMD_UPDATE ? triggers->trig_update_before_row : triggers->trig_delete_before_row;
}

/// A trigger that gives no row for an answer keeps it; the executor does not say so.
bool is_still_there(const Table* table, ItemPointerData tid) {
    TupleTableSlot* slot = table_slot_create(table->relation, nullptr);
    const bool there = table_tuple_fetch_row_version(table->relation, &tid, SnapshotSelf, slot);
    ExecDropSingleTupleTableSlot(slot);
    return there;
}

/// What error a trigger makes that keeps rows.
void report_trigger(const char* what, Oid table) {
    const char* name = get_rel_name(table);
    ereport(ERROR, (errcode(ERRCODE_TRIGGERED_DATA_CHANGE_VIOLATION),
                    errmsg("a trigger kept the row %s table \"%s\"", what, name),
                    errdetail("It is enabled ALWAYS or REPLICA, so that it fires for what onerepl writes."),
                    errhint("Alter the trigger, or disable it for replication (ALTER TABLE ... ENABLE "
                            "TRIGGER), then retry."),
                    err_generic_string(PG_DIAG_SCHEMA_NAME, get_namespace_name(get_rel_namespace(table))),
                    err_generic_string(PG_DIAG_TABLE_NAME, name)));
}

[[noreturn]] void report_kept_out(Oid table) {
    report_trigger("out that the copy brings to", table);
    pg_unreachable();
}

void insert_with_triggers(ApplyTransaction& xact, Table* table) {
    table->fresh->tts_tableOid = table->oid;
    ExecMaterializeSlot(table->fresh);
    begin_query(xact, table);
    ExecSimpleRelationInsert(table->result, table->estate, table->fresh);
    if (xact.copying && !ItemPointerIsValid(&table->fresh->tts_tid)) report_kept_out(table->oid);
    if (table->has_deferrable && ItemPointerIsValid(&table->fresh->tts_tid))
        defer_all_checks(xact, table, &table->fresh->tts_tid, xact.n);
    end_query(xact, table);
    ExecClearTuple(table->fresh);
}

/// Whether the row was written or locked; false: it has changed since it was found.
bool judge(TM_Result result) {
    if (result == TM_Ok) return true;
    if (result == TM_Updated || result == TM_Deleted) return false;
    elog(ERROR, "unexpected result %d of writing a row", static_cast<int>(result));
    return false;
}

/// Locks the row in table->found. False: it is not what it was.
bool lock_found(Table* table) {
    TM_FailureData failure;
    ItemPointerData tid = table->found->tts_tid;
    return judge(table_tuple_lock(table->relation, &tid, GetLatestSnapshot(), table->found,
                                  GetCurrentCommandId(false), LockTupleExclusive, LockWaitBlock, 0,
                                  &failure));
}

bool update_with_triggers(ApplyTransaction& xact, Table* table) {
    begin_query(xact, table);
    const bool locked = lock_found(table);
    if (locked) {
        table->fresh->tts_tableOid = table->oid;
        ExecMaterializeSlot(table->fresh);
        EvalPlanQualSetSlot(&table->recheck, table->fresh);
        const ItemPointerData tid = table->found->tts_tid;
        ExecSimpleRelationUpdate(table->result, table->estate, &table->recheck, table->found, table->fresh);
        // A copy ends with the remote's rows or with a failure; what a trigger makes of changes is its rule.
        if (xact.copying && may_keep(table, CMD_UPDATE) && is_still_there(table, tid))
            report_kept(table->oid);
        if (table->has_deferrable && ItemPointerIsValid(&table->fresh->tts_tid))
            defer_all_checks(xact, table, &table->fresh->tts_tid, xact.n);
    }
    end_query(xact, table);
    if (locked) ExecClearTuple(table->fresh);
    return locked;
}

Deletion delete_with_triggers(ApplyTransaction& xact, Table* table) {
    begin_query(xact, table);
    Deletion result = lock_found(table) ? Deletion::done : Deletion::changed;
    if (result == Deletion::done) {
        const ItemPointerData tid = table->found->tts_tid;
        EvalPlanQualSetSlot(&table->recheck, table->found);
        ExecSimpleRelationDelete(table->result, table->estate, &table->recheck, table->found);
        if (may_keep(table, CMD_DELETE) && is_still_there(table, tid)) result = Deletion::kept;
    }
    end_query(xact, table);
    return result;
}

/// Triggers may look at other tables, so what is buffered for these is written first.
void show_others(ApplyTransaction& xact, Table* table) {
    if (!table->buffers_inserts) flush_all(xact);
}

}  // namespace

void insert_row(ApplyTransaction& xact, Table* table) {
    if (table->is_foreign) return insert_foreign(xact, table);
    show_others(xact, table);
    if (xact.incoming_wins && !xact.copying) flush(xact, table);
    if (xact.incoming_wins || table->buffers_inserts) complete_row(table);
    if (xact.incoming_wins) remove_conflicts(xact, table, table->fresh, nullptr, InvalidOid);
    if (!table->buffers_inserts) return insert_with_triggers(xact, table);
    buffer_row(xact, table);
    if ((xact.incoming_wins && !xact.copying) || table->buffered_count == buffered_rows ||
        table->buffered_bytes >= buffered_bytes_of_table)
        flush(xact, table);
    else if (xact.buffered_bytes >= buffered_bytes_of_all)
        flush_all(xact);
}

bool update_row(ApplyTransaction& xact, Table* table) {
    if (table->is_foreign) return update_foreign(xact, table), true;
    show_others(xact, table);
    count_command(xact);
    check_identity(table);
    if (xact.incoming_wins || !table->has_triggers) complete_row(table);
    if (xact.incoming_wins) remove_conflicts(xact, table, table->fresh, &table->found->tts_tid, InvalidOid);
    if (table->has_triggers) return update_with_triggers(xact, table);
    TM_FailureData failure;
    compat::IndexUpdate update;
    ItemPointerData tid = table->found->tts_tid;
    if (!judge(compat::update_tuple(table->relation, &tid, table->fresh, &failure, &update))) return false;
    xact.uncounted = true;
    if (update.needed) add_index_entries(xact, table, table->fresh, &update, xact.n);
    table->latest = table->fresh->tts_tid;
    ExecClearTuple(table->fresh);
    ResetPerTupleExprContext(table->estate);
    return true;
}

Deletion delete_row(ApplyTransaction& xact, Table* table) {
    if (table->is_foreign) return delete_foreign(xact, table), Deletion::done;
    show_others(xact, table);
    count_command(xact);
    if (table->has_triggers) return delete_with_triggers(xact, table);
    check_identity(table);
    TM_FailureData failure;
    ItemPointerData tid = table->found->tts_tid;
    if (!judge(table_tuple_delete(table->relation, &tid, GetCurrentCommandId(true), InvalidSnapshot,
                                  InvalidSnapshot, true, &failure, false)))
        return Deletion::changed;
    xact.uncounted = true;
    return Deletion::done;
}

void report_kept(Oid table) {
    report_trigger("that the incoming one replaces in", table);
    pg_unreachable();
}

void flush(ApplyTransaction& xact, Table* table) {
    const bool has_updates = table->updates.count > 0 && table->updates.writing == nullptr;
    if (table->buffered_count == 0 && !has_updates) return;
    const pg::Rights rights = become_owner(table);
    MemoryContext before = MemoryContextSwitchTo(GetPerTupleMemoryContext(table->estate));
    // The updates may be of rows that are buffered. A row that was inserted after an update is none that the
    // update could mean.
    if (table->buffered_count > 0) write_buffered(xact, table);
    if (has_updates) write_pending(xact, table);
    MemoryContextSwitchTo(before);
    pg::return_from(rights);
}

void flush_all(ApplyTransaction& xact) {
    if (xact.buffered_bytes == 0) return;
    for (Table* table = xact.first; table != nullptr; table = table->next) flush(xact, table);
}

Number oldest_buffered(const ApplyTransaction& xact) {
    Number oldest = 0;
    const auto consider = [&](int count, Number n) {
        if (count > 0 && (oldest == 0 || n < oldest)) oldest = n;
    };
    for (Table* table = xact.first; table != nullptr; table = table->next) {
        consider(table->buffered_count, table->buffered_count > 0 ? table->buffered_numbers[0] : 0);
        consider(table->updates.count, table->updates.oldest);
    }
    return oldest;
}

Datum default_of(Table* table, AttrNumber attribute, bool* is_null) {
    const int settings_level = NewGUCNestLevel();
    if (!table->default_prepared[attribute]) {
        MemoryContext before = MemoryContextSwitchTo(table->memory);
        Node* expression = build_column_default(table->relation, attribute);
        if (expression != nullptr)
            table->defaults[attribute] = ExecPrepareExpr(reinterpret_cast<Expr*>(expression), table->estate);
        table->default_prepared[attribute] = true;
        MemoryContextSwitchTo(before);
    }
    *is_null = true;
    ExprState* state = table->defaults[attribute];
    const Datum value =
        state == nullptr ? 0 : ExecEvalExpr(state, GetPerTupleExprContext(table->estate), is_null);
    AtEOXact_GUC(false, settings_level);
    return value;
}

}  // namespace onerepl::apply
