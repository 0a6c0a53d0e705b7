// Updates that wait until there are many: then they are written in the order of their keys, for which every
// page of index and table is fetched once. Plain SQL would say the same in one UPDATE ... FROM.
#include "apply/rows/pending.h"

#include "apply/rows/row.h"
#include "apply/rows/search.h"
#include "apply/rows/write.h"

extern "C" {
#include "utils/datum.h"
#include "utils/sortsupport.h"
}

#include <algorithm>
#include <utility>

namespace onerepl::apply {

namespace {

constexpr int most_pending = 50000;
constexpr Size most_bytes = 8 << 20;
constexpr Size most_bytes_of_all = 16 << 20;

bool is_of_key(const RelationMap& target, AttrNumber column) {
    return std::find(target.key_attributes, target.key_attributes + target.key_count, column) !=
           target.key_attributes + target.key_count;
}

/// No trigger sees the order; a row has its key alone at any time; and no value can be taken for a moment by
/// one row after another: what is unique is of the key, which does not change.
bool order_is_hidden(const Table* table, const RelationMap& target) {
    if (table->is_partitioned || table->has_triggers || table->has_deferrable) return false;
    bool key_is_unique = false;
    for (int i = 0; i < table->result->ri_NumIndices; i++) {
        const Form_pg_index index = table->result->ri_IndexRelationDescs[i]->rd_index;
        const IndexInfo* info = table->result->ri_IndexRelationInfo[i];
        if (index->indisexclusion) return false;
        if (!index->indisunique) continue;
        if (info->ii_Predicate != NIL) return false;
        for (int column = 0; column < info->ii_NumIndexKeyAttrs; column++)
            if (!is_of_key(target, info->ii_IndexAttrNumbers[column])) return false;
        key_is_unique = true;
    }
    return key_is_unique;
}

void grow(PendingUpdates& updates) {
    const int capacity = updates.capacity == 0 ? 64 : updates.capacity * 2;
    const Size size = sizeof(PendingUpdate) * static_cast<Size>(capacity);
    updates.all = static_cast<PendingUpdate*>(
        updates.all == nullptr ? MemoryContextAlloc(updates.memory, size) : repalloc(updates.all, size));
    updates.capacity = capacity;
}

/// Values are converted in a record's memory, where functions of types may leave much.
PendingUpdate copy(const Table* table, const PendingUpdate& update, Size* bytes) {
    const PendingUpdates& updates = table->updates;
    TupleDesc description = RelationGetDescr(table->relation);
    const int columns = description->natts;
    const int keys = updates.target->key_count;
    const Size size = sizeof(Datum) * (columns + keys) + sizeof(bool) * (2 * columns + keys);
    MemoryContext before = MemoryContextSwitchTo(updates.memory);
    PendingUpdate to;
    to.n = update.n;
    to.values = static_cast<Datum*>(palloc(size));
    to.key = to.values + columns;
    to.nulls = reinterpret_cast<bool*>(to.key + keys);
    to.given = to.nulls + columns;
    to.key_nulls = to.given + columns;
    memcpy(to.nulls, update.nulls, sizeof(bool) * columns);
    memcpy(to.given, update.given, sizeof(bool) * columns);
    memcpy(to.key_nulls, update.key_nulls, sizeof(bool) * keys);
    *bytes += size;
    for (int i = 0; i < columns; i++) {
        if (to.nulls[i]) continue;
        const Form_pg_attribute attribute = TupleDescAttr(description, i);
        to.values[i] = datumCopy(update.values[i], attribute->attbyval, attribute->attlen);
        if (!attribute->attbyval)
            *bytes += datumGetSize(to.values[i], attribute->attbyval, attribute->attlen);
    }
    // An update that leaves the key alone has it among its values.
    for (int k = 0; k < keys; k++) to.key[k] = to.values[updates.target->key_attributes[k] - 1];
    MemoryContextSwitchTo(before);
    return to;
}

/// How two updates are ordered: by the first column of the index, then as they came.
struct Order {
    SortSupportData by_value;
    int key_column;  // of PendingUpdate::key
};

int compare(const void* a, const void* b, void* argument) {
    const auto* one = static_cast<const PendingUpdate*>(a);
    const auto* other = static_cast<const PendingUpdate*>(b);
    auto* order = static_cast<Order*>(argument);
    const int k = order->key_column;
    const int result = ApplySortComparator(one->key[k], one->key_nulls[k], other->key[k], other->key_nulls[k],
                                           &order->by_value);
    if (result != 0) return result;
    return one->n < other->n ? -1 : 1;
}

/// Which of the key's columns the index begins with; -1: none of them.
int first_column(Relation index, const RelationMap& target) {
    for (int k = 0; k < target.key_count; k++)
        if (target.key_attributes[k] == index->rd_index->indkey.values[0]) return k;
    return -1;
}

void sort(Table* table) {
    const PendingUpdates& updates = table->updates;
    Relation index = index_for(table, updates.target->key_count, updates.target->key_attributes);
    if (index == nullptr) return;
    Order order;
    order.key_column = first_column(index, *updates.target);
    if (order.key_column < 0) return;
    memset(&order.by_value, 0, sizeof order.by_value);
    order.by_value.ssup_cxt = updates.memory;
    order.by_value.ssup_collation = index->rd_indcollation[0];
    order.by_value.ssup_attno = 1;
    PrepareSortSupportFromIndexRel(index, BTLessStrategyNumber, &order.by_value);
    qsort_arg(updates.all, static_cast<size_t>(updates.count), sizeof(PendingUpdate), compare, &order);
}

}  // namespace

bool may_wait(ApplyTransaction& xact, Table* table, RelationMap& target) {
    PendingUpdates& updates = table->updates;
    if (updates.target == &target) return updates.may_wait;
    flush(xact, table);
    updates.target = &target;
    updates.may_wait = target.has_key() && order_is_hidden(table, target);
    return updates.may_wait;
}

void add_pending(ApplyTransaction& xact, Table* table, const PendingUpdate& update) {
    PendingUpdates& updates = table->updates;
    if (updates.count == most_pending || updates.bytes >= most_bytes) flush(xact, table);
    if (xact.buffered_bytes >= most_bytes_of_all) flush_all(xact);
    if (updates.memory == nullptr)
        updates.memory =
            AllocSetContextCreate(table->memory, "onerepl pending updates", ALLOCSET_DEFAULT_SIZES);
    if (updates.count == updates.capacity) grow(updates);
    if (updates.count == 0) updates.oldest = update.n;
    Size bytes = sizeof(PendingUpdate);
    updates.all[updates.count++] = copy(table, update, &bytes);
    updates.bytes += bytes;
    xact.buffered_bytes += bytes;
}

void write_pending(ApplyTransaction& xact, Table* table) {
    PendingUpdates& updates = table->updates;
    const ApplyTransaction now = xact;
    xact.incoming_wins = xact.missing_is_left_to_copy = xact.copying = false;
    ErrorContextCallback* const surrounding = error_context_stack;
    error_context_stack = nullptr;  // they are not part of the record at hand
    updates.writing = AllocSetContextCreate(table->memory, "onerepl pending update", ALLOCSET_DEFAULT_SIZES);
    MemoryContextSwitchTo(table->memory);
    if (updates.fresh == nullptr) updates.fresh = table_slot_create(table->relation, nullptr);
    std::swap(table->fresh, updates.fresh);
    sort(table);
    for (int i = 0; i < updates.count; i++) {
        CHECK_FOR_INTERRUPTS();
        MemoryContextReset(updates.writing);
        MemoryContextSwitchTo(updates.writing);
        xact.n = updates.all[i].n;
        write_pending_update(xact, *updates.target, table, updates.all[i]);
    }
    std::swap(table->fresh, updates.fresh);
    MemoryContextSwitchTo(table->memory);
    MemoryContextDelete(updates.writing);
    updates.writing = nullptr;
    MemoryContextReset(updates.memory);
    updates.all = nullptr;
    updates.capacity = 0;
    xact.buffered_bytes -= updates.bytes;
    updates.bytes = 0;
    updates.count = 0;
    error_context_stack = surrounding;
    xact.n = now.n;
    xact.incoming_wins = now.incoming_wins;
    xact.missing_is_left_to_copy = now.missing_is_left_to_copy;
    xact.copying = now.copying;
}

}  // namespace onerepl::apply
