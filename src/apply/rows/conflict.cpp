// The incoming row wins: what stands in its way in unique indexes and exclusion constraints is deleted (P13).
#include "apply/rows/conflict.h"

#include "apply/rows/apply_transaction.h"
#include "apply/rows/search.h"
#include "apply/rows/table.h"
#include "apply/rows/write.h"

extern "C" {
#include "catalog/index.h"
#include "access/stratnum.h"
#include "storage/lmgr.h"
#include "utils/datum.h"
#include "utils/lsyscache.h"
}

namespace onerepl::apply {

namespace {

/// One constraint and the values that the incoming row brings to it.
struct Clash {
    Relation index;
    IndexInfo* info;
    const ItemPointerData* self;
    Datum values[INDEX_MAX_KEYS];
    bool nulls[INDEX_MAX_KEYS];
    ScanKeyData keys[INDEX_MAX_KEYS];
};

bool is_constraint(const IndexInfo* info) {
    return info->ii_Unique || info->ii_ExclusionOps != nullptr;
}

/// Whether the row is in the index at all.
bool is_indexed(Table* table, TupleTableSlot* slot, IndexInfo* info) {
    ExprContext* context = GetPerTupleExprContext(table->estate);
    context->ecxt_scantuple = slot;
    if (info->ii_Predicate == NIL) return true;
    ExprState* predicate = info->ii_PredicateState;
    if (predicate == nullptr) {
        MemoryContext before = MemoryContextSwitchTo(table->memory);
        predicate = ExecPrepareQual(info->ii_Predicate, table->estate);
        info->ii_PredicateState = predicate;
        MemoryContextSwitchTo(before);
    }
    return ExecQual(predicate, context);
}

RegProcedure equality_of(Relation index, int i) {
    const Oid type = index->rd_opcintype[i];
    const Oid equality = get_opfamily_member(index->rd_opfamily[i], type, type, BTEqualStrategyNumber);
    const RegProcedure procedure = get_opcode(equality);
    if (!RegProcedureIsValid(procedure))
        elog(ERROR, "no equality operator for index \"%s\"", RelationGetRelationName(index));
    return procedure;
}

/// False: nulls keep the row from clashing with anything.
bool make_keys(Clash& clash) {
    for (int i = 0; i < clash.info->ii_NumIndexKeyAttrs; i++) {
        if (clash.nulls[i] && !clash.info->ii_NullsNotDistinct) return false;
        const bool exclusion = clash.info->ii_ExclusionOps != nullptr;
        const StrategyNumber strategy = exclusion ? clash.info->ii_ExclusionStrats[i]
                                                  : static_cast<StrategyNumber>(BTEqualStrategyNumber);
        const RegProcedure procedure =
            exclusion ? clash.info->ii_ExclusionProcs[i] : equality_of(clash.index, i);
        ScanKeyEntryInitialize(&clash.keys[i], clash.nulls[i] ? SK_ISNULL | SK_SEARCHNULL : 0,
                               static_cast<AttrNumber>(i + 1), strategy, InvalidOid,
                               clash.index->rd_indcollation[i], procedure, clash.values[i]);
    }
    return true;
}

/// The index was not sure: asks the operators themselves.
bool really_clashes(Table* table, Clash& clash, TupleTableSlot* slot) {
    Datum values[INDEX_MAX_KEYS];
    bool nulls[INDEX_MAX_KEYS];
    GetPerTupleExprContext(table->estate)->ecxt_scantuple = slot;
    FormIndexDatum(clash.info, slot, table->estate, values, nulls);
    for (int i = 0; i < clash.info->ii_NumIndexKeyAttrs; i++) {
        if (nulls[i]) return false;
        if (!DatumGetBool(OidFunctionCall2Coll(clash.keys[i].sk_func.fn_oid, clash.index->rd_indcollation[i],
                                               values[i], clash.values[i])))
            return false;
    }
    return true;
}

/// Leaves a clashing row in table->best.
bool find_clash(Table* table, Clash& clash) {
    const int count = clash.info->ii_NumIndexKeyAttrs;
    IndexScanDesc scan = compat::begin_index_scan(table->relation, clash.index, &table->dirty, count);
restart:
    bool found = false;
    index_rescan(scan, clash.keys, count, nullptr, 0);
    while (!found && index_getnext_slot(scan, ForwardScanDirection, table->best)) {
        if (clash.self != nullptr &&
            ItemPointerEquals(&table->best->tts_tid, const_cast<ItemPointer>(clash.self)))
            continue;
        const TransactionId writer =
            TransactionIdIsValid(table->dirty.xmin) ? table->dirty.xmin : table->dirty.xmax;
        if (TransactionIdIsValid(writer)) {
            XactLockTableWait(writer, nullptr, nullptr, XLTW_None);
            goto restart;
        }
        found = !scan->xs_recheck || really_clashes(table, clash, table->best);
    }
    if (found) ExecMaterializeSlot(table->best);
    index_endscan(scan);
    return found;
}

[[noreturn]] void report_other_branch(const Table* table, const Clash& clash, const char* column) {
    const char* index = RelationGetRelationName(clash.index);
    ereport(ERROR, (errcode(ERRCODE_UNIQUE_VIOLATION),
                    errmsg("a row of another remote has a value of unique index \"%s\"", index),
                    errdetail("Several remotes share table \"%s\"; column \"%s\" tells their rows apart.",
                              RelationGetRelationName(table->relation), column),
                    errhint("Make the column part of the unique index, or change one of the rows."),
                    errtableconstraint(table->relation, index)));
    pg_unreachable();
}

/// Throws unless the row in table->best is of the same remote as the incoming one.
void check_branch(const ApplyTransaction& xact, Table* table, const Clash& clash, TupleTableSlot* incoming) {
    if (xact.branch_column == nullptr) return;
    const AttrNumber number = get_attnum(table->oid, xact.branch_column);
    if (number == InvalidAttrNumber) return;
    const Form_pg_attribute attribute = TupleDescAttr(RelationGetDescr(table->relation), number - 1);
    bool is_null, other_is_null;
    const Datum branch = slot_getattr(incoming, number, &is_null);
    const Datum other = slot_getattr(table->best, number, &other_is_null);
    const bool same = is_null || other_is_null
                          ? is_null == other_is_null
                          : datum_image_eq(branch, other, attribute->attbyval, attribute->attlen);
    if (!same) report_other_branch(table, clash, xact.branch_column);
}

/// P22: what clashes becomes less with each round, or a trigger brings it back.
class Progress {
  public:
    explicit Progress(ApplyTransaction& xact) {
        count_command(xact);
        begun_ = GetCurrentCommandId(false);
    }
    /// Triggers may change rows that are still to go, but no more of them than have gone.
    bool is_made_by(TupleTableSlot* next) {
        if (age_of(next) > begun_)
            new_rows_++;
        else
            old_rows_++;
        return new_rows_ <= old_rows_;
    }

  private:
    CommandId begun_;
    std::uint64_t old_rows_ = 0;
    std::uint64_t new_rows_ = 0;
};

void remove_clashes(ApplyTransaction& xact, Table* table, Clash& clash, TupleTableSlot* incoming) {
    if (!find_clash(table, clash)) return;
    Progress progress(xact);
    do {
        check_branch(xact, table, clash, incoming);
        std::swap(table->found, table->best);
        if (!progress.is_made_by(table->found) || delete_row(xact, table) == Deletion::kept)
            report_kept(table->oid);
        std::swap(table->found, table->best);
        count_command(xact);
    } while (find_clash(table, clash));
}

}  // namespace

void remove_conflicts(ApplyTransaction& xact, Table* table, TupleTableSlot* slot, const ItemPointerData* self,
                      Oid only_index) {
    for (int i = 0; i < table->result->ri_NumIndices; i++) {
        Clash clash;
        clash.index = table->result->ri_IndexRelationDescs[i];
        clash.info = table->result->ri_IndexRelationInfo[i];
        clash.self = self;
        const Form_pg_index form = clash.index->rd_index;
        const bool asked = OidIsValid(only_index) ? form->indexrelid == only_index : form->indimmediate;
        // One that CREATE INDEX CONCURRENTLY or REINDEX CONCURRENTLY has just begun has no pages yet.
        if (!clash.info->ii_ReadyForInserts) continue;
        if (!asked || !is_constraint(clash.info) || !is_indexed(table, slot, clash.info)) continue;
        FormIndexDatum(clash.info, slot, table->estate, clash.values, clash.nulls);
        if (make_keys(clash)) remove_clashes(xact, table, clash, slot);
    }
}

}  // namespace onerepl::apply
