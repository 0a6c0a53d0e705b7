// The executor's functions whose signatures differ between PostgreSQL 15 and 18, as apply uses them.
#pragma once

#include "pg/pg.h"

extern "C" {
#include "access/genam.h"
#include "access/tableam.h"
#include "executor/executor.h"
#include "nodes/execnodes.h"
#include "nodes/makefuncs.h"
#include "utils/rel.h"
#if PG_VERSION_NUM >= 160000
#include "parser/parse_relation.h"
#endif
}

namespace onerepl::compat {

/// What an update of a row did to its need of new index entries.
struct IndexUpdate {
    bool needed = false;
    bool only_summarizing = false;
};

inline TM_Result update_tuple(Relation relation, ItemPointer tid, TupleTableSlot* slot,
                              TM_FailureData* failure, IndexUpdate* update) {
    LockTupleMode mode;
    const CommandId command = GetCurrentCommandId(true);
#if PG_VERSION_NUM >= 160000
    TU_UpdateIndexes indexes;
    TM_Result result = table_tuple_update(relation, tid, slot, command, InvalidSnapshot, InvalidSnapshot,
                                          true, failure, &mode, &indexes);
    update->needed = indexes != TU_None;
    update->only_summarizing = indexes == TU_Summarizing;
#else
    TM_Result result = table_tuple_update(relation, tid, slot, command, InvalidSnapshot, InvalidSnapshot,
                                          true, failure, &mode, &update->needed);
#endif
    return result;
}

/// Gives the indexes with deferrable constraints that may be violated now.
inline List* insert_index_tuples(ResultRelInfo* result, TupleTableSlot* slot, EState* estate,
                                 const IndexUpdate* update) {
#if PG_VERSION_NUM >= 160000
    return ExecInsertIndexTuples(result, slot, estate, update != nullptr, false, nullptr, NIL,
                                 update != nullptr && update->only_summarizing);
#else
    return ExecInsertIndexTuples(result, slot, estate, update != nullptr, false, nullptr, NIL);
#endif
}

inline IndexScanDesc begin_index_scan(Relation heap, Relation index, Snapshot snapshot, int keys) {
#if PG_VERSION_NUM >= 180000
    return index_beginscan(heap, index, snapshot, nullptr, keys, 0);
#else
    return index_beginscan(heap, index, snapshot, keys, 0);
#endif
}

/// Gives `estate` a range table of the one relation that is written. All its columns count as updated, as far
/// as triggers want to know.
inline void set_range_table(EState* estate, Relation relation) {
    RangeTblEntry* entry = makeNode(RangeTblEntry);
    entry->rtekind = RTE_RELATION;
    entry->relid = RelationGetRelid(relation);
    entry->relkind = relation->rd_rel->relkind;
    entry->rellockmode = AccessShareLock;
    Bitmapset* columns = nullptr;
    for (int i = 1; i <= RelationGetNumberOfAttributes(relation); i++)
        columns = bms_add_member(columns, i - FirstLowInvalidHeapAttributeNumber);
#if PG_VERSION_NUM >= 160000
    List* permissions = NIL;
    RTEPermissionInfo* permission = addRTEPermissionInfo(&permissions, entry);
    permission->updatedCols = columns;
#if PG_VERSION_NUM >= 180000
    ExecInitRangeTable(estate, list_make1(entry), permissions, bms_make_singleton(1));
#else
    ExecInitRangeTable(estate, list_make1(entry), permissions);
#endif
#else
    entry->updatedCols = columns;
    entry->extraUpdatedCols = columns;
    ExecInitRangeTable(estate, list_make1(entry));
#endif
}

inline void init_recheck(EPQState* state, EState* estate) {
#if PG_VERSION_NUM >= 160000
    EvalPlanQualInit(state, estate, nullptr, NIL, -1, NIL);
#else
    EvalPlanQualInit(state, estate, nullptr, NIL, -1);
#endif
}

}  // namespace onerepl::compat
