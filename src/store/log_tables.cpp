// Rows of onerepl's own tables, written with heap_insert and index_insert.
#include "store/log_tables.h"

extern "C" {
#include "access/genam.h"
#include "access/heapam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "catalog/index.h"
#include "catalog/namespace.h"
#include "nodes/execnodes.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
}

namespace onerepl::store {

namespace {

/// More columns than any of the tables that are written here has.
constexpr int most_columns = 8;

void insert_into_index(Oid index, Relation table, HeapTuple tuple, const Datum* values) {
    Relation opened = index_open(index, RowExclusiveLock);
    const Form_pg_index form = opened->rd_index;
    // As the executor: one that CREATE INDEX CONCURRENTLY or REINDEX CONCURRENTLY has just begun takes no
    // entries yet, and has no pages for them.
    if (!form->indisready) return index_close(opened, RowExclusiveLock);
    Datum keys[INDEX_MAX_KEYS];
    bool nulls[INDEX_MAX_KEYS] = {};
    for (int i = 0; i < form->indnatts; i++) {
        Assert(form->indkey.values[i] > 0);
        keys[i] = values[form->indkey.values[i] - 1];
    }
    IndexInfo* info = BuildIndexInfo(opened);
    // What is there twice (by a second sender, say) is an error, not two entries.
    const IndexUniqueCheck check = form->indisunique ? UNIQUE_CHECK_YES : UNIQUE_CHECK_NO;
    index_insert(opened, keys, nulls, &tuple->t_self, table, check, false, info);
    pfree(info);
    index_close(opened, RowExclusiveLock);
}

}  // namespace

Oid own_relation(const char* name) {
    const Oid schema = get_namespace_oid("onerepl", false);
    const Oid relation = get_relname_relid(name, schema);
    if (!OidIsValid(relation))
        ereport(ERROR,
                (errcode(ERRCODE_UNDEFINED_TABLE), errmsg("relation \"onerepl.%s\" does not exist", name)));
    return relation;
}

void insert_row(Oid table, const Datum* values, const bool* nulls) {
    Relation opened = table_open(table, RowExclusiveLock);
    TupleDesc descriptor = RelationGetDescr(opened);
    if (descriptor->natts > most_columns)
        elog(ERROR, "onerepl table \"%s\" has %d columns", RelationGetRelationName(opened),
             descriptor->natts);
    const bool no_nulls[most_columns] = {};
    HeapTuple tuple =
        heap_form_tuple(descriptor, const_cast<Datum*>(values), const_cast<bool*>(nulls ? nulls : no_nulls));
    heap_insert(opened, tuple, GetCurrentCommandId(true), HEAP_INSERT_NO_LOGICAL, nullptr);
    List* indexes = RelationGetIndexList(opened);
    ListCell* cell;
    foreach (cell, indexes) insert_into_index(lfirst_oid(cell), opened, tuple, values);
    list_free(indexes);
    heap_freetuple(tuple);
    table_close(opened, NoLock);
}

void insert_pack(int log_table, const PackRow& row) {
    char name[NAMEDATALEN];
    snprintf(name, sizeof name, "change_%d", log_table);
    const Datum values[] = {
        UInt64GetDatum(U64FromFullTransactionId(row.xid)),
        Int32GetDatum(row.seq),
        BoolGetDatum(row.last),
        Int32GetDatum(row.flags),
        UInt64GetDatum(row.commit_lsn),
        UInt64GetDatum(row.count),
        PointerGetDatum(row.data),
    };
    insert_row(own_relation(name), values);
}

}  // namespace onerepl::store
