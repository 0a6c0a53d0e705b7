// The tables that a B transaction has open: opening and closing.
#include "apply/rows/apply_transaction.h"

#include "apply/rows/foreign.h"
#include "apply/rows/foreign_row.h"
#include "apply/rows/guard_triggers.h"
#include "apply/rows/search.h"
#include "apply/rows/table.h"
#include "apply/rows/write.h"

extern "C" {
#include "catalog/pg_class.h"
#include "catalog/pg_trigger.h"
#include "commands/trigger.h"
#include "utils/lsyscache.h"
}

namespace onerepl::apply {

namespace {

// Fires after each row, for a chain of centrals. It looks at nothing but its row.
constexpr const char* capture_trigger = "!onerepl_capture";

struct Entry {
    Oid oid;
    Table* table;
};

void make_table_index(ApplyTransaction& xact) {
    HASHCTL control;
    memset(&control, 0, sizeof control);
    control.keysize = sizeof(Oid);
    control.entrysize = sizeof(Entry);
    control.hcxt = xact.tables_memory;
    xact.tables = hash_create("onerepl open tables", 64, &control, HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
}

bool fires_on_replica(const Trigger& trigger) {
    return trigger.tgenabled == TRIGGER_FIRES_ALWAYS || trigger.tgenabled == TRIGGER_FIRES_ON_REPLICA;
}

/// How many row triggers fire, but for the guard's, which lets apply through anyway, and one by this name
/// (null: for none).
int count_row_triggers(Relation relation, const char* except) {
    int count = 0;
    for (int i = 0; relation->trigdesc != nullptr && i < relation->trigdesc->numtriggers; i++) {
        const Trigger& trigger = relation->trigdesc->triggers[i];
        if (!TRIGGER_FOR_ROW(trigger.tgtype) || !fires_on_replica(trigger)) continue;
        if (strcmp(trigger.tgname, guard_row_trigger) == 0) continue;
        if (except == nullptr || strcmp(trigger.tgname, except) != 0) count++;
    }
    return count;
}

bool indexes_run_user_code(const ResultRelInfo* result) {
    for (int i = 0; i < result->ri_NumIndices; i++) {
        const IndexInfo* info = result->ri_IndexRelationInfo[i];
        if (info->ii_Expressions != NIL || info->ii_Predicate != NIL) return true;
        Relation index = result->ri_IndexRelationDescs[i];
        for (int column = 0; column < info->ii_NumIndexKeyAttrs; column++)
            if (index->rd_opfamily[column] >= FirstNormalObjectId) return true;
    }
    return false;
}

bool columns_run_user_code(Relation relation) {
    TupleDesc description = RelationGetDescr(relation);
    const TupleConstr* constraints = description->constr;
    if (constraints != nullptr && (constraints->num_check > 0 || constraints->has_generated_stored))
        return true;
    for (int i = 0; i < description->natts; i++)
        if (TupleDescAttr(description, i)->atttypid >= FirstNormalObjectId) return true;
    return relation->rd_rel->relispartition;
}

bool has_deferrable_index(const ResultRelInfo* result) {
    for (int i = 0; i < result->ri_NumIndices; i++)
        if (!result->ri_IndexRelationDescs[i]->rd_index->indimmediate) return true;
    return false;
}

/// What a trigger's function keeps from row to row (its settings, a cache) lives as long as the table is
/// open. The executor would look the function up in the memory of the row at hand.
void prepare_triggers(const ResultRelInfo* result, MemoryContext memory) {
    for (int i = 0; i < result->ri_TrigDesc->numtriggers; i++)
        fmgr_info_cxt(result->ri_TrigDesc->triggers[i].tgfoid, &result->ri_TrigFunctions[i], memory);
}

void open_result(Table* table) {
    table->result = makeNode(ResultRelInfo);
    table->estate = CreateExecutorState();
    if (table->has_triggers) {
        compat::set_range_table(table->estate, table->relation);
        InitResultRelInfo(table->result, table->relation, 1, nullptr, 0);
        table->estate->es_opened_result_relations =
            lappend(table->estate->es_opened_result_relations, table->result);
        compat::init_recheck(&table->recheck, table->estate);
        prepare_triggers(table->result, table->estate->es_query_cxt);
    } else {
        InitResultRelInfo(table->result, table->relation, 0, nullptr, 0);
        table->result->ri_TrigDesc = nullptr;
    }
    if (!table->is_partitioned) ExecOpenIndices(table->result, false);
}

void open_slots(Table* table) {
    table->found = table_slot_create(table->relation, nullptr);
    table->best = table_slot_create(table->relation, nullptr);
    table->fresh = table_slot_create(table->relation, nullptr);
    const int columns = RelationGetNumberOfAttributes(table->relation);
    table->defaults = static_cast<ExprState**>(palloc0(sizeof(ExprState*) * (columns + 1)));
    table->default_prepared = static_cast<bool*>(palloc0(sizeof(bool) * (columns + 1)));
}

bool is_foreign_partition(Relation relation) {
    return relation->rd_rel->relkind == RELKIND_FOREIGN_TABLE && relation->rd_rel->relispartition;
}

Table* make_table(ApplyTransaction& xact, Oid oid) {
    if (xact.tables_memory == nullptr) elog(ERROR, "no xact");
    Relation relation = table_open(oid, RowExclusiveLock);
    const bool is_foreign = is_foreign_partition(relation);
    if (!is_foreign) check_is_table(relation);
    MemoryContext memory = AllocSetContextCreate(xact.tables_memory, "onerepl table", ALLOCSET_SMALL_SIZES);
    MemoryContext before = MemoryContextSwitchTo(memory);
    Table* table = static_cast<Table*>(palloc0(sizeof(Table)));
    table->relation = relation;
    table->oid = oid;
    table->owner = relation->rd_rel->relowner;
    table->restriction = pg::restriction_of(table->owner);
    // To open an index is to simplify its expressions: functions of the owner are called (P19).
    const pg::Rights rights = pg::become(table->owner);
    table->memory = memory;
    table->is_partitioned = relation->rd_rel->relkind == RELKIND_PARTITIONED_TABLE;
    table->has_foreign = table->is_partitioned && has_foreign_partitions(oid);
    table->is_foreign = is_foreign;
    // Those of a foreign table fire where its rows are written by SQL.
    table->has_triggers = !is_foreign && count_row_triggers(relation, nullptr) > 0;
    table->buffers_inserts = count_row_triggers(relation, capture_trigger) == 0;
    InitDirtySnapshot(table->dirty);
    ItemPointerSetInvalid(&table->latest);
    open_result(table);
    table->has_deferrable = has_deferrable_index(table->result);
    table->runs_user_code =
        table->has_triggers || columns_run_user_code(relation) || indexes_run_user_code(table->result);
    open_slots(table);
    pg::return_from(rights);
    MemoryContextSwitchTo(before);
    return table;
}

void close_table(Table* table) {
    end_search(table);
    close_foreign(table);
    if (table->route != nullptr) ExecCleanupTupleRouting(table->route_state, table->route);
    if (table->has_triggers) {
        EvalPlanQualEnd(&table->recheck);
        ExecCloseResultRelations(table->estate);
    } else if (!table->is_partitioned) {
        ExecCloseIndices(table->result);
    }
    for (int i = 0; i < table->buffered_slots; i++) ExecDropSingleTupleTableSlot(table->buffered[i]);
    ExecDropSingleTupleTableSlot(table->found);
    ExecDropSingleTupleTableSlot(table->best);
    ExecDropSingleTupleTableSlot(table->fresh);
    if (table->updates.fresh != nullptr) ExecDropSingleTupleTableSlot(table->updates.fresh);
    ExecResetTupleTable(table->estate->es_tupleTable, false);
    FreeExecutorState(table->estate);
    table_close(table->relation, NoLock);
}

}  // namespace

void check_is_table(Relation relation) {
    const char kind = relation->rd_rel->relkind;
    if (kind == RELKIND_RELATION || kind == RELKIND_PARTITIONED_TABLE) return;
    ereport(ERROR, (errcode(ERRCODE_WRONG_OBJECT_TYPE),
                    errmsg("cannot write to \"%s\": it is not a table", RelationGetRelationName(relation)),
                    errtable(relation)));
}

void begin_apply(ApplyTransaction& xact, int link) {
    const std::uint64_t generation = xact.generation;
    xact = ApplyTransaction{};
    xact.generation = generation + 1;
    xact.link = link;
    xact.user = GetUserId();
    xact.memory = AllocSetContextCreate(TopTransactionContext, "onerepl apply", ALLOCSET_DEFAULT_SIZES);
    xact.tables_memory = AllocSetContextCreate(xact.memory, "onerepl tables", ALLOCSET_DEFAULT_SIZES);
    xact.record_memory = AllocSetContextCreate(xact.memory, "onerepl record", ALLOCSET_DEFAULT_SIZES);
}

void forget_apply(ApplyTransaction& xact) {
    const std::uint64_t generation = xact.generation;
    xact = ApplyTransaction{};
    xact.generation = generation + 1;
}

void forget_tables(ApplyTransaction& xact) {
    MemoryContextReset(xact.tables_memory);
    MemoryContextReset(xact.record_memory);
    xact.tables = nullptr;
    xact.first = nullptr;
    xact.open_count = 0;
    xact.buffered_bytes = 0;
    xact.generation++;
}

Table* open_table(ApplyTransaction& xact, Oid relation) {
    if (xact.tables == nullptr) make_table_index(xact);
    Entry* entry = static_cast<Entry*>(hash_search(xact.tables, &relation, HASH_FIND, nullptr));
    if (entry != nullptr) return entry->table;
    Table* table = make_table(xact, relation);
    entry = static_cast<Entry*>(hash_search(xact.tables, &relation, HASH_ENTER, nullptr));
    entry->table = table;
    table->next = xact.first;
    xact.first = table;
    xact.open_count++;
    return table;
}

pg::Rights become_owner(const Table* table) {
    return pg::become(table->owner, table->restriction, table->runs_user_code);
}

void close_tables(ApplyTransaction& xact) {
    if (xact.first == nullptr) return;
    flush_all(xact);
    for (Table* table = xact.first; table != nullptr; table = table->next) close_table(table);
    forget_tables(xact);
}

void count_command(ApplyTransaction& xact) {
    if (!xact.uncounted) return;
    CommandCounterIncrement();
    xact.uncounted = false;
}

}  // namespace onerepl::apply
