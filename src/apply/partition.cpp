// Partitioned tables: which partition takes a row, and where a row is found.
#include "apply/table.h"

extern "C" {
#include "access/attmap.h"
#include "catalog/pg_inherits.h"
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
}

Table* open_partition(Batch& batch, Table* root, Oid oid) {
    Table* partition = open_table(batch, oid);
    if (partition->root == root->oid) return partition;
    MemoryContext before = MemoryContextSwitchTo(partition->memory);
    TupleDesc ours = RelationGetDescr(partition->relation);
    TupleDesc roots = RelationGetDescr(root->relation);
    partition->from_root = convert_tuples_by_name(roots, ours);
    partition->to_root = convert_tuples_by_name(ours, roots);
    partition->root = root->oid;
    MemoryContextSwitchTo(before);
    return partition;
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

bool is_routed_by(Table* root, int count, const AttrNumber* columns) {
    if (has_deep_partitions(root)) return false;
    PartitionKey key = RelationGetPartitionKey(root->relation);
    for (int i = 0; i < key->partnatts; i++)
        if (key->partattrs[i] == 0 || !contains(count, columns, key->partattrs[i])) return false;
    return true;
}

Table* route_row(Batch& batch, Table* root, TupleTableSlot* slot) {
    prepare_routing(root);
    MemoryContext before = MemoryContextSwitchTo(root->memory);
    ResultRelInfo* partition =
        ExecFindPartition(root->route_state, root->result, root->route, slot, root->estate);
    const Oid oid = RelationGetRelid(partition->ri_RelationDesc);
    MemoryContextSwitchTo(before);
    ResetPerTupleExprContext(root->estate);
    return open_partition(batch, root, oid);
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

Table* find_partitioned(Batch& batch, Table* root, int count, const AttrNumber* columns, const Datum* values,
                        const bool* nulls, bool by_image, Table* likely) {
    if (likely != nullptr &&
        find_row(batch, likely, count, own_columns(likely, count, columns), values, nulls, by_image))
        return likely;
    ListCell* cell;
    List* all = find_all_inheritors(root->oid, RowExclusiveLock, nullptr);
    foreach (cell, all) {
        if (get_rel_relkind(lfirst_oid(cell)) != RELKIND_RELATION) continue;
        Table* partition = open_partition(batch, root, lfirst_oid(cell));
        if (partition != likely && find_row(batch, partition, count, own_columns(partition, count, columns),
                                            values, nulls, by_image))
            return partition;
    }
    return nullptr;
}

}  // namespace onerepl::apply
