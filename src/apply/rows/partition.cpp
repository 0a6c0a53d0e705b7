// Partitioned tables: which partition takes a row, and where a row is found.
#include "apply/rows/partition.h"

#include "apply/rows/apply_transaction.h"
#include "apply/rows/foreign.h"
#include "apply/rows/search.h"
#include "apply/rows/table.h"

extern "C" {
#include "access/attmap.h"
#include "access/sysattr.h"
#include "catalog/pg_inherits.h"
#include "optimizer/optimizer.h"
#include "partitioning/partdesc.h"
#include "utils/partcache.h"
#include "utils/lsyscache.h"
}

namespace onerepl::apply {

namespace {

void prepare_routing(Table* root) {
    if (root->route != nullptr) return;
    MemoryContext before = MemoryContextSwitchTo(root->memory);
    root->route_state = makeNode(ModifyTableState);
    root->route_state->ps.state = root->estate;
    root->route_state->operation = CMD_INSERT;
    root->route_state->resultRelInfo = root->result;
    root->route = ExecSetupPartitionTupleRouting(root->estate, root->relation);
    MemoryContextSwitchTo(before);
    // The executor's routing would open it as for a statement of its own.
    if (has_foreign_partitions(root->oid))
        ereport(ERROR, (errcode(ERRCODE_T_R_SERIALIZATION_FAILURE),
                        errmsg("a partition was attached to table \"%s\" meanwhile",
                               RelationGetRelationName(root->relation))));
}

Table* open_partition(ApplyTransaction& xact, Table* root, Oid oid) {
    Table* partition = open_table(xact, oid);
    if (partition->root == root->oid) return partition;
    if (partition->is_foreign) {
        partition->is_unwritable = !is_of_postgres(oid);
        if (!partition->is_unwritable) check_foreign_partition(partition->relation, root->owner);
    }
    MemoryContext before = MemoryContextSwitchTo(partition->memory);
    TupleDesc ours = RelationGetDescr(partition->relation);
    TupleDesc roots = RelationGetDescr(root->relation);
    partition->from_root = convert_tuples_by_name(roots, ours);
    partition->to_root = convert_tuples_by_name(ours, roots);
    partition->root = root->oid;
    MemoryContextSwitchTo(before);
    return partition;
}

/// Opens all partitions: which one takes a row is found out by asking each.
void open_leaves(ApplyTransaction& xact, Table* root) {
    if (root->leaves != nullptr) return;
    List* all = find_all_inheritors(root->oid, RowExclusiveLock, nullptr);
    Table** leaves =
        static_cast<Table**>(MemoryContextAllocZero(root->memory, sizeof(void*) * (list_length(all) + 1)));
    ListCell* cell;
    for (const bool foreign : {false, true})  // what is near is looked at first
        foreach (cell, all) {
            const char kind = get_rel_relkind(lfirst_oid(cell));
            if (kind != (foreign ? RELKIND_FOREIGN_TABLE : RELKIND_RELATION)) continue;
            leaves[root->leaf_count++] = open_partition(xact, root, lfirst_oid(cell));
        }
    root->leaves = leaves;
}

[[noreturn]] void report_no_partition(const Table* root) {
    ereport(ERROR,
            (errcode(ERRCODE_CHECK_VIOLATION),
             errmsg("no partition of relation \"%s\" found for row", RelationGetRelationName(root->relation)),
             errtable(root->relation)));
    pg_unreachable();
}

/// The executor's own routing would prepare foreign partitions for a statement that there is none of.
Table* route_by_conditions(ApplyTransaction& xact, Table* root, TupleTableSlot* slot) {
    open_leaves(xact, root);
    for (int i = 0; i < root->leaf_count; i++) {
        Table* partition = root->leaves[i];
        to_partition(partition, slot);
        partition->fresh->tts_tableOid = partition->oid;
        const bool fits = ExecPartitionCheck(partition->result, partition->fresh, partition->estate, false);
        ResetPerTupleExprContext(partition->estate);
        if (!fits) continue;
        if (partition->is_unwritable) check_foreign_partition(partition->relation, root->owner);
        return partition;
    }
    report_no_partition(root);
}

/// Adds the columns that decide whether `partition` takes a row, as the root numbers them.
void add_routing_columns(Table* root, const Table* partition) {
    Bitmapset* columns = nullptr;
    pull_varattnos(reinterpret_cast<Node*>(RelationGetPartitionQual(partition->relation)), 1, &columns);
    const int count = RelationGetNumberOfAttributes(root->relation);
    for (int i = 0; i < count; i++) {
        const AttrNumber own = partition->to_root == nullptr ? static_cast<AttrNumber>(i + 1)
                                                             : partition->to_root->attrMap->attnums[i];
        if (own != 0 && bms_is_member(own - FirstLowInvalidHeapAttributeNumber, columns))
            root->routing_columns = bms_add_member(root->routing_columns, i + 1);
    }
}

bool has_deep_partitions(Table* root) {
    if (root->depth_known) return root->is_deep;
    root->depth_known = true;
    PartitionDesc partitions = RelationGetPartitionDesc(root->relation, true);
    for (int i = 0; i < partitions->nparts; i++) root->is_deep |= !partitions->is_leaf[i];
    return root->is_deep;
}

bool contains(int count, const AttrNumber* columns, AttrNumber column) {
    for (int i = 0; i < count; i++)
        if (columns[i] == column) return true;
    return false;
}

/// The partition's numbers of the root's columns.
const AttrNumber* own_columns(const Table* partition, int count, const AttrNumber* columns) {
    if (partition->to_root == nullptr) return columns;
    AttrNumber* own = static_cast<AttrNumber*>(palloc(sizeof(AttrNumber) * (count + 1)));
    for (int i = 0; i < count; i++) own[i] = partition->to_root->attrMap->attnums[columns[i] - 1];
    return own;
}

}  // namespace

const Bitmapset* routing_columns(ApplyTransaction& xact, Table* root) {
    open_leaves(xact, root);
    if (root->routing_columns != nullptr) return root->routing_columns;
    MemoryContext before = MemoryContextSwitchTo(root->memory);
    for (int i = 0; i < root->leaf_count; i++) add_routing_columns(root, root->leaves[i]);
    MemoryContextSwitchTo(before);
    return root->routing_columns;
}

bool is_routed_by(ApplyTransaction& xact, Table* root, int count, const AttrNumber* columns) {
    if (root->has_foreign) {
        int column = -1;
        while ((column = bms_next_member(routing_columns(xact, root), column)) >= 0)
            if (!contains(count, columns, static_cast<AttrNumber>(column))) return false;
        return true;
    }
    if (has_deep_partitions(root)) return false;
    PartitionKey key = RelationGetPartitionKey(root->relation);
    for (int i = 0; i < key->partnatts; i++)
        if (key->partattrs[i] == 0 || !contains(count, columns, key->partattrs[i])) return false;
    return true;
}

Table* route_row(ApplyTransaction& xact, Table* root, TupleTableSlot* slot) {
    if (root->has_foreign) return route_by_conditions(xact, root, slot);
    prepare_routing(root);
    MemoryContext before = MemoryContextSwitchTo(root->memory);
    ResultRelInfo* partition =
        ExecFindPartition(root->route_state, root->result, root->route, slot, root->estate);
    const Oid oid = RelationGetRelid(partition->ri_RelationDesc);
    MemoryContextSwitchTo(before);
    ResetPerTupleExprContext(root->estate);
    return open_partition(xact, root, oid);
}

void to_partition(Table* partition, TupleTableSlot* slot) {
    if (partition->from_root != nullptr) {
        execute_attr_map_slot(partition->from_root->attrMap, slot, partition->fresh);
        return;
    }
    slot_getallattrs(slot);
    ExecClearTuple(partition->fresh);
    const int columns = slot->tts_tupleDescriptor->natts;
    memcpy(partition->fresh->tts_values, slot->tts_values, sizeof(Datum) * columns);
    memcpy(partition->fresh->tts_isnull, slot->tts_isnull, sizeof(bool) * columns);
    ExecStoreVirtualTuple(partition->fresh);
}

void to_root(Table* partition, Table* root) {
    if (partition->to_root != nullptr) {
        execute_attr_map_slot(partition->to_root->attrMap, partition->found, root->found);
        return;
    }
    slot_getallattrs(partition->found);
    ExecClearTuple(root->found);
    const int columns = root->found->tts_tupleDescriptor->natts;
    memcpy(root->found->tts_values, partition->found->tts_values, sizeof(Datum) * columns);
    memcpy(root->found->tts_isnull, partition->found->tts_isnull, sizeof(bool) * columns);
    ExecStoreVirtualTuple(root->found);
}

bool find_in_partition(ApplyTransaction& xact, Table* partition, int count, const AttrNumber* columns,
                       const Datum* values, const bool* nulls, bool by_image) {
    return find_row(xact, partition, count, own_columns(partition, count, columns), values, nulls, by_image);
}

bool may_be_left_out(ApplyTransaction& xact, Table* root, int count, const AttrNumber* columns,
                     Table* likely) {
    if (!root->has_foreign) return false;
    if (likely != nullptr && is_routed_by(xact, root, count, columns)) return is_left_out(xact, likely);
    open_leaves(xact, root);
    for (int i = 0; i < root->leaf_count; i++)
        if (!root->leaves[i]->is_unwritable && is_left_out(xact, root->leaves[i])) return true;
    return false;
}

namespace {

/// As find_partitioned, where some partitions are foreign and `likely` was looked at.
Table* find_in_leaves(ApplyTransaction& xact, Table* root, int count, const AttrNumber* columns,
                      const Datum* values, const bool* nulls, bool by_image, const Table* likely) {
    if (likely != nullptr && is_routed_by(xact, root, count, columns)) return nullptr;
    open_leaves(xact, root);
    for (int i = 0; i < root->leaf_count; i++) {
        Table* partition = root->leaves[i];
        if (partition == likely || partition->is_unwritable || is_left_out(xact, partition)) continue;
        if (find_in_partition(xact, partition, count, columns, values, nulls, by_image)) return partition;
    }
    return nullptr;
}

}  // namespace

Table* find_partitioned(ApplyTransaction& xact, Table* root, int count, const AttrNumber* columns,
                        const Datum* values, const bool* nulls, bool by_image, Table* likely) {
    if (likely != nullptr && !is_left_out(xact, likely) &&
        find_in_partition(xact, likely, count, columns, values, nulls, by_image))
        return likely;
    if (root->has_foreign) return find_in_leaves(xact, root, count, columns, values, nulls, by_image, likely);
    ListCell* cell;
    List* all = find_all_inheritors(root->oid, RowExclusiveLock, nullptr);
    foreach (cell, all) {
        if (get_rel_relkind(lfirst_oid(cell)) != RELKIND_RELATION) continue;
        Table* partition = open_partition(xact, root, lfirst_oid(cell));
        if (partition != likely &&
            find_in_partition(xact, partition, count, columns, values, nulls, by_image))
            return partition;
    }
    return nullptr;
}

}  // namespace onerepl::apply
