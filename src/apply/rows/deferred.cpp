// Deferrable unique and exclusion constraints. PostgreSQL checks them by triggers that are silent under
// session_replication_role = replica; so apply checks them, when the transaction's rows are all there (P13).
#include "apply/rows/deferred.h"

#include "apply/rows/apply_transaction.h"
#include "apply/rows/conflict.h"
#include "apply/rows/table.h"
#include "apply/rows/write.h"

extern "C" {
#include "catalog/index.h"
#include "storage/bufmgr.h"
#include "utils/snapmgr.h"
}

namespace onerepl::apply {

namespace {

void add_check(ApplyTransaction& xact, const DeferredCheck& check) {
    if (xact.check_count == xact.check_capacity) {
        const std::size_t capacity = xact.check_capacity == 0 ? 256 : xact.check_capacity * 2;
        const Size size = capacity * sizeof(DeferredCheck);
        xact.checks =
            static_cast<DeferredCheck*>(xact.checks == nullptr ? MemoryContextAllocHuge(xact.memory, size)
                                                               : repalloc_huge(xact.checks, size));
        xact.check_capacity = capacity;
    }
    xact.checks[xact.check_count++] = check;
}

void add_checks(ApplyTransaction& xact, Table* table, Oid index, ItemPointer tid, Number n) {
    DeferredCheck check;
    check.table = table->oid;
    check.index = index;
    check.tid = *tid;
    check.incoming_wins = xact.incoming_wins;
    check.branch_column =
        xact.branch_column == nullptr ? nullptr : MemoryContextStrdup(xact.memory, xact.branch_column);
    check.n = n;
    add_check(xact, check);
}

/// Fetches the living version of the row that was at `tid`, following updates that kept its index entries.
/// False: it is gone, and whatever replaced it has a check of its own.
bool fetch_living(Table* table, ItemPointerData tid) {
    // A TRUNCATE later in the transaction may have taken the block away.
    if (ItemPointerGetBlockNumber(&tid) >= RelationGetNumberOfBlocks(table->relation)) return false;
    bool again = false;
    bool all_dead = false;
    IndexFetchTableData* fetch = table_index_fetch_begin(table->relation);
    const bool found = table_index_fetch_tuple(fetch, &tid, SnapshotSelf, table->found, &again, &all_dead);
    table_index_fetch_end(fetch);
    return found;
}

int index_number(const Table* table, Oid index) {
    for (int i = 0; i < table->result->ri_NumIndices; i++)
        if (RelationGetRelid(table->result->ri_IndexRelationDescs[i]) == index) return i;
    elog(ERROR, "index %u of table %u is gone", index, table->oid);
    return -1;
}

/// As PostgreSQL's own deferred check: the tid of the index entry, the values of the living version.
void check_index(Table* table, int number, ItemPointerData tid) {
    Relation index = table->result->ri_IndexRelationDescs[number];
    IndexInfo* info = table->result->ri_IndexRelationInfo[number];
    Datum values[INDEX_MAX_KEYS];
    bool nulls[INDEX_MAX_KEYS];
    GetPerTupleExprContext(table->estate)->ecxt_scantuple = table->found;
    FormIndexDatum(info, table->found, table->estate, values, nulls);
    if (info->ii_ExclusionOps == nullptr)
        index_insert(index, values, nulls, &tid, table->relation, UNIQUE_CHECK_EXISTING, false, info);
    else
        check_exclusion_constraint(table->relation, index, info, &tid, values, nulls, table->estate, false);
}

}  // namespace

void defer_check(ApplyTransaction& xact, Table* table, List* indexes, ItemPointer tid, Number n) {
    ListCell* cell;
    foreach (cell, indexes) add_checks(xact, table, lfirst_oid(cell), tid, n);
}

void defer_all_checks(ApplyTransaction& xact, Table* table, ItemPointer tid, Number n) {
    for (int i = 0; i < table->result->ri_NumIndices; i++) {
        Relation index = table->result->ri_IndexRelationDescs[i];
        const IndexInfo* info = table->result->ri_IndexRelationInfo[i];
        if (info->ii_ReadyForInserts && !index->rd_index->indimmediate &&
            (info->ii_Unique || info->ii_ExclusionOps != nullptr))
            add_checks(xact, table, RelationGetRelid(index), tid, n);
    }
}

void run_check(ApplyTransaction& xact, std::size_t i) {
    const DeferredCheck check = xact.checks[i];
    xact.n = check.n;
    xact.branch_column = check.branch_column;
    Table* table = open_table(xact, check.table);
    const pg::Rights rights = become_owner(table);
    MemoryContext before = MemoryContextSwitchTo(GetPerTupleMemoryContext(table->estate));
    if (fetch_living(table, check.tid)) {
        if (check.incoming_wins) {
            const ItemPointerData self = table->found->tts_tid;
            ExecCopySlot(table->fresh, table->found);
            remove_conflicts(xact, table, table->fresh, &self, check.index);
        } else {
            check_index(table, index_number(table, check.index), check.tid);
        }
    }
    MemoryContextSwitchTo(before);
    ResetPerTupleExprContext(table->estate);
    pg::return_from(rights);
}

void run_checks(ApplyTransaction& xact) {
    flush_all(xact);
    count_command(xact);
    for (std::size_t i = 0; i < xact.check_count; i++) run_check(xact, i);
    xact.check_count = 0;
}

}  // namespace onerepl::apply
