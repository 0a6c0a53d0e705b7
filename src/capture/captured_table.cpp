// The cache of captured tables: filled from the catalogue and onerepl.description, invalidated by
// PostgreSQL's messages.
#include "capture/captured_table.h"

#include "capture/description_store.h"
#include "capture/row_filters.h"
#include "capture/tracked.h"
#include "capture/transaction_log.h"
#include "log/layout.h"
#include "pg/compat.h"
#include "pg/error_boundary.h"
#include "store/log_tables.h"

extern "C" {
#include "utils/hsearch.h"
#include "utils/inval.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"
}

#include <cstring>

namespace onerepl::capture {

namespace {

HTAB* tables = nullptr;
/// The table of the last call: a statement captures many rows of one table.
CapturedTable* last_used = nullptr;
bool any_uncommitted = false;
bool any_partition = false;
/// A partition whose root is not known yet: any table may be it.
CapturedTable* without_root = nullptr;

template <class Each>
void for_each_table(Each each) {
    if (!tables) return;
    HASH_SEQ_STATUS scan;
    hash_seq_init(&scan, tables);
    while (auto* table = static_cast<CapturedTable*>(hash_seq_search(&scan))) each(*table);
}

// ------------------------------------------------------------------------------------------------------
// invalidation

void relation_changed(Datum, Oid relation) {
    if (!OidIsValid(relation)) {
        for_each_table([](CapturedTable& table) { table.valid = false; });
    } else if (auto* table =
                   static_cast<CapturedTable*>(hash_search(tables, &relation, HASH_FIND, nullptr))) {
        table->valid = false;
    }
    if (without_root != nullptr) without_root->valid = false;
    if (!any_partition || !OidIsValid(relation)) return;
    for_each_table([relation](CapturedTable& table) {
        if (table.root == relation) table.valid = false;
    });
}

void type_changed(Datum, int, uint32 hash) {
    for_each_table([hash](CapturedTable& table) {
        // Its types are being read: each may be one of them.
        if (table.types == nullptr) table.valid = false;
        for (int i = 0; table.types != nullptr && i < table.type_count; i++)
            if (hash == 0 || table.types[i] == hash) table.valid = false;
    });
}

void schema_changed(Datum, int, uint32) {
    relation_changed(0, InvalidOid);
}

void create_cache() {
    HASHCTL control;
    std::memset(&control, 0, sizeof control);
    control.keysize = sizeof(Oid);
    control.entrysize = sizeof(CapturedTable);
    tables = hash_create("onerepl captured tables", 64, &control, HASH_ELEM | HASH_BLOBS);
    CacheRegisterRelcacheCallback(relation_changed, 0);
    CacheRegisterSyscacheCallback(TYPEOID, type_changed, 0);
    CacheRegisterSyscacheCallback(NAMESPACEOID, schema_changed, 0);
}

CapturedTable* find_or_create(Oid relation) {
    if (!tables) create_cache();
    bool found;
    auto* table = static_cast<CapturedTable*>(hash_search(tables, &relation, HASH_ENTER, &found));
    if (!found) {
        std::memset(table, 0, sizeof *table);
        table->relation = relation;
    }
    return table;
}

// ------------------------------------------------------------------------------------------------------
// building

template <class Item>
Item* allocate(MemoryContext context, std::size_t count) {
    return static_cast<Item*>(MemoryContextAllocZero(context, sizeof(Item) * (count + 1)));
}

MemoryContext create_memory() {
    return AllocSetContextCreate(TopTransactionContext, "onerepl captured table", ALLOCSET_SMALL_SIZES);
}

/// Plain: fills the ways of one attribute.
void fill_way(ColumnWay& way, const log::LayoutColumn& column, Form_pg_attribute attribute,
              MemoryContext memory) {
    way.dropped = column.dropped;
    way.rendered = column.rendered && !column.dropped;
    if (way.rendered) fill_text_form(way.text, attribute->atttypid, memory);
}

void add(ColumnSet& set, std::size_t index) {
    set.numbers[set.count++] = static_cast<AttrNumber>(index + 1);
}

void fill_sets(CapturedTable& table, const log::Layout& layout, MemoryContext memory) {
    const std::size_t natts = layout.columns.size();
    table.key = {0, allocate<AttrNumber>(memory, natts)};
    table.unique = {0, allocate<AttrNumber>(memory, natts)};
    for (std::size_t i = 0; i < natts; i++) {
        if (layout.columns[i].key_position > 0) add(table.key, i);
        if (layout.columns[i].unique) add(table.unique, i);
    }
}

/// Types that are not built in may be renamed, or change in how they are rendered.
void fill_types(CapturedTable& table, Relation relation, MemoryContext memory) {
    TupleDesc descriptor = RelationGetDescr(relation);
    table.types = allocate<uint32>(memory, static_cast<std::size_t>(descriptor->natts));
    table.type_count = 0;
    for (int i = 0; i < descriptor->natts; i++) {
        const Oid type = TupleDescAttr(descriptor, i)->atttypid;
        if (type >= FirstGenbkiObjectId)
            table.types[table.type_count++] = GetSysCacheHashValue1(TYPEOID, ObjectIdGetDatum(type));
    }
}

void fill_columns(CapturedTable& table, const log::Layout& layout, Relation relation, MemoryContext memory) {
    const std::size_t natts = layout.columns.size();
    table.ways = allocate<ColumnWay>(memory, natts);
    table.renders = false;
    for (std::size_t i = 0; i < natts; i++) {
        fill_way(table.ways[i], layout.columns[i],
                 TupleDescAttr(RelationGetDescr(relation), static_cast<int>(i)), memory);
        table.renders |= table.ways[i].rendered;
    }
}

void copy_layout(CapturedTable& table, const Bytes& encoded, MemoryContext memory) {
    table.layout = allocate<char>(memory, encoded.size());
    std::memcpy(table.layout, encoded.data(), encoded.size());
    table.layout_size = encoded.size();
}

/// Replaces all that depends on the layout. An error leaves the entry as it was, and the new memory to the
/// transaction.
void rebuild(CapturedTable& table, const log::Layout& layout, const Bytes& encoded, Relation relation) {
    CapturedTable made = table;
    table.types = nullptr;
    MemoryContext outside = CurrentMemoryContext;
    pg::call([&] {
        made.memory = create_memory();
        fill_columns(made, layout, relation, made.memory);
        fill_sets(made, layout, made.memory);
        fill_types(made, relation, made.memory);
        copy_layout(made, encoded, made.memory);
        MemoryContextSwitchTo(made.memory);
    });
    made.images = layout.tuple_descriptor();
    MemoryContextSwitchTo(outside);
    MemoryContextSetParent(made.memory, CacheMemoryContext);
    if (table.memory) MemoryContextDelete(table.memory);
    made.valid = table.valid;
    table = made;
}

bool same_bytes(const Bytes& encoded, const char* bytes, std::size_t size) {
    return encoded.size() == size && std::memcmp(encoded.data(), bytes, size) == 0;
}

/// Plain: the id of the description with this layout; makes and records one if the newest is another. Asked
/// whenever the entry is checked: only the newest one is safe from the purge (log/replaced_descriptions.h).
void describe(CapturedTable& table, const Bytes& encoded) {
    const FoundDescription found = newest_description(table.relation);
    if (found.id > 0 && same_bytes(encoded, found.layout, found.size)) {
        table.description = found.id;
        table.uncommitted = found.uncommitted;
        any_uncommitted |= table.uncommitted;
    } else {
        // First: an error must not leave the id of a row that is not there (P20).
        table.uncommitted = any_uncommitted = true;
        table.description = insert_description(table.relation, encoded.data(), encoded.size());
        record_description(table.description);
    }
}

void note_file(CapturedTable& table, Relation relation) {
    const Oid file = compat::file_of(relation);
    if (OidIsValid(table.file) && table.file != file) table.rewritten = true;
    table.file = file;
}

void refresh(CapturedTable& table, Relation relation) {
    if (relation->rd_rel->relispartition) without_root = &table;
    const log::Layout layout = log::layout_of(relation);
    table.root = layout.root;
    any_partition |= OidIsValid(table.root);
    without_root = nullptr;
    const Bytes encoded = log::encode_layout(layout);
    const bool known = table.memory && same_bytes(encoded, table.layout, table.layout_size);
    if (!known || table.renders) rebuild(table, layout, encoded, relation);
    pg::call([&] {
        describe(table, encoded);
        const Tracked tracked = how_tracked(relation);
        table.tracked = tracked.tracked;
        table.lock_pending = tracked.lock_pending;
        table.whole_rows =
            has_row_filter(table.relation) || (OidIsValid(table.root) && has_row_filter(table.root));
        note_file(table, relation);
    });
}

}  // namespace

CapturedTable& captured_table(Relation relation) {
    const Oid oid = RelationGetRelid(relation);
    CapturedTable* table = last_used;
    if (!table || table->relation != oid) table = find_or_create(oid);
    last_used = table;
    if (!table->valid) {
        // First, so that a message that comes while the catalogue is read counts; an error must not leave it
        // so.
        table->valid = true;
        pg::entry([&] {
            try {
                refresh(*table, relation);
            } catch (...) {
                table->valid = false;
                without_root = nullptr;
                throw;
            }
        });
    }
    return *table;
}

void forget_uncommitted_tables() {
    if (!any_uncommitted) return;
    for_each_table([](CapturedTable& table) {
        if (!table.uncommitted) return;
        table.uncommitted = false;
        table.valid = false;
    });
    any_uncommitted = false;
}

void keep_uncommitted_tables() {
    if (!any_uncommitted) return;
    for_each_table([](CapturedTable& table) { table.uncommitted = false; });
    any_uncommitted = false;
}

}  // namespace onerepl::capture
