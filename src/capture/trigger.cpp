// The trigger functions: one row change, or one TRUNCATE, into the log of the running transaction.
#include "capture/captured_table.h"
#include "capture/lock_pending.h"
#include "capture/row_image.h"
#include "capture/tracked.h"
#include "capture/transaction_log.h"
#include "pg/settings.h"

extern "C" {
#include "commands/trigger.h"
#include "nodes/parsenodes.h"
#include "nodes/plannodes.h"
#include "tcop/pquery.h"
#include "utils/rel.h"
#include "utils/combocid.h"
}

namespace onerepl::capture {

namespace {

enum { operation_insert = 0, operation_update = 1, operation_delete = 2 };

RowVersions versions(const TriggerData& trigger) {
    RowVersions row{trigger.tg_relation, nullptr, nullptr};
    if (TRIGGER_FIRED_BY_INSERT(trigger.tg_event)) {
        row.new_row = trigger.tg_trigtuple;
    } else {
        row.old_row = trigger.tg_trigtuple;
        if (TRIGGER_FIRED_BY_UPDATE(trigger.tg_event)) row.new_row = trigger.tg_newtuple;
    }
    return row;
}

/// The command that made the change, though others may have touched the row since.
CommandId command_of(const TriggerData& trigger) {
    const HeapTuple made =
        TRIGGER_FIRED_BY_UPDATE(trigger.tg_event) ? trigger.tg_newtuple : trigger.tg_trigtuple;
    return TRIGGER_FIRED_BY_DELETE(trigger.tg_event) ? HeapTupleHeaderGetCmax(made->t_data)
                                                     : HeapTupleHeaderGetCmin(made->t_data);
}

bool has_large_values(const RowVersions& row) {
    return (row.new_row && HeapTupleHasExternal(row.new_row)) ||
           (row.old_row && HeapTupleHasExternal(row.old_row));
}

/// True: the change is to be recorded without its values. 54000 if the administrator wants that.
bool is_too_large(const CapturedTable& table, const RowVersions& row) {
    constexpr std::uint64_t megabyte = 1024 * 1024;
    const std::uint64_t size = large_values_size(table, row);
    if (size <= static_cast<std::uint64_t>(settings::max_row_size) * megabyte) return false;
    if (settings::row_limit_policy == settings::refuse_row)
        ereport(ERROR,
                (errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
                 errmsg("row of table \"%s\" is too large to be replicated",
                        RelationGetRelationName(row.relation)),
                 errdetail("Its large values have %llu MB, onerepl.max_row_size is %d MB.",
                           static_cast<unsigned long long>(size / megabyte), settings::max_row_size),
                 errhint("Write smaller values, or ask the administrator for another onerepl.max_row_size."),
                 errtable(row.relation)));
    return true;
}

/// What a trigger records travels, and is written at the centrals with rights that the table's owner here
/// need not have. So one that somebody else made with our function does nothing (P19).
void check_made_by_us(const TriggerData& trigger, bool is_tracked, const char* name) {
    if (is_tracked && strcmp(trigger.tg_trigger->tgname, name) == 0) return;
    ereport(ERROR,
            (errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
             errmsg("trigger \"%s\" of table \"%s\" was not made by onerepl_add_table()",
                    trigger.tg_trigger->tgname, RelationGetRelationName(trigger.tg_relation)),
             errhint("Drop it. A table is tracked by onerepl_add_table()."), errtable(trigger.tg_relation)));
}

CapturedTable& table_of(const TriggerData& trigger, const char* name) {
    CapturedTable& table = captured_table(trigger.tg_relation);
    check_made_by_us(trigger, table.tracked, name);
    return table;
}

void capture_row(const TriggerData& trigger) {
    // A foreign partition: its rows are in another database; the self-check tells.
    if (trigger.tg_relation->rd_rel->relkind == RELKIND_FOREIGN_TABLE) return;
    CapturedTable& table = table_of(trigger, "!onerepl_capture");
    const RowVersions row = versions(trigger);
    log::RowChange change;
    change.operation = !row.old_row ? operation_insert : row.new_row ? operation_update : operation_delete;
    change.description = table.description;
    change.command = command_of(trigger);
    change.rewritten = table.rewritten;
    if (row.old_row) change.old_id = &row.old_row->t_self;
    if (row.new_row) change.new_id = &row.new_row->t_self;
    if (has_large_values(row) && is_too_large(table, row)) {
        set_key_images(table, row, change);
    } else {
        if (row.old_row) set_old_image(table, row, change);
        if (row.new_row) set_new_image(table, row, change);
    }
    if (table.lock_pending) check_lock_rule(table, row);
    record_change(change);
    table.rewritten = false;
}

/// The TRUNCATE statement that is being executed, if it was sent as such; a trigger is not told its options.
const TruncateStmt* running_truncate() {
    if (!ActivePortal || list_length(ActivePortal->stmts) != 1) return nullptr;
    const auto* planned = static_cast<const PlannedStmt*>(linitial(ActivePortal->stmts));
    const Node* statement = planned->utilityStmt;
    return statement && IsA(statement, TruncateStmt) ? reinterpret_cast<const TruncateStmt*>(statement)
                                                     : nullptr;
}

void capture_truncate(const TriggerData& trigger) {
    const CapturedTable& table = table_of(trigger, "!onerepl_truncate");
    // A partitioned table that is a partition: its own partitions have records of their own.
    if (OidIsValid(table.root) && trigger.tg_relation->rd_rel->relkind == RELKIND_PARTITIONED_TABLE) return;
    if (table.lock_pending) check_lock_rule_for_truncate(table, trigger.tg_relation);
    const TruncateStmt* statement = running_truncate();
    record_truncate(table.description, statement && statement->behavior == DROP_CASCADE,
                    statement && statement->restart_seqs);
}

void check_call(FunctionCallInfo fcinfo, bool for_row) {
    const auto* trigger = reinterpret_cast<const TriggerData*>(fcinfo->context);
    if (CALLED_AS_TRIGGER(fcinfo) && TRIGGER_FIRED_AFTER(trigger->tg_event) &&
        (TRIGGER_FIRED_FOR_ROW(trigger->tg_event) != 0) == for_row)
        return;
    ereport(ERROR, (errcode(ERRCODE_E_R_I_E_TRIGGER_PROTOCOL_VIOLATED),
                    errmsg("function \"%s\" was not called as an AFTER trigger %s",
                           for_row ? "onerepl_capture" : "onerepl_capture_truncate",
                           for_row ? "for each row" : "on TRUNCATE"),
                    errhint("Triggers of onerepl are made by onerepl_add_table().")));
}

}  // namespace

}  // namespace onerepl::capture

extern "C" {

PG_FUNCTION_INFO_V1(onerepl_capture);
PGDLLEXPORT Datum onerepl_capture(PG_FUNCTION_ARGS) {
    using namespace onerepl::capture;
    check_call(fcinfo, true);
    if (begin_capture()) capture_row(*reinterpret_cast<const TriggerData*>(fcinfo->context));
    return PointerGetDatum(nullptr);
}

PG_FUNCTION_INFO_V1(onerepl_capture_truncate);
PGDLLEXPORT Datum onerepl_capture_truncate(PG_FUNCTION_ARGS) {
    using namespace onerepl::capture;
    check_call(fcinfo, false);
    if (begin_capture()) capture_truncate(*reinterpret_cast<const TriggerData*>(fcinfo->context));
    return PointerGetDatum(nullptr);
}

PG_FUNCTION_INFO_V1(onerepl_lock_pending);
PGDLLEXPORT Datum onerepl_lock_pending(PG_FUNCTION_ARGS) {
    using namespace onerepl::capture;
    if (!CALLED_AS_TRIGGER(fcinfo))
        ereport(ERROR, (errcode(ERRCODE_E_R_I_E_TRIGGER_PROTOCOL_VIOLATED),
                        errmsg("function \"onerepl_lock_pending\" was not called as a trigger")));
    const auto& trigger = *reinterpret_cast<const TriggerData*>(fcinfo->context);
    check_made_by_us(trigger, how_tracked(trigger.tg_relation).lock_pending, "!onerepl_lock");
    if (begin_capture()) take_turn();
    return PointerGetDatum(nullptr);
}

}  // extern "C"
