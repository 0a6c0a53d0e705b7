// Scans of onerepl's own tables.
#include "store/own_table.h"

#include "store/log_tables.h"

extern "C" {
#include "access/htup_details.h"
#include "access/table.h"
#include "utils/lsyscache.h"
#include "utils/snapmgr.h"
}

namespace onerepl::store {

OwnScan::OwnScan(const char* table, const char* index, ScanKeyData* keys, int key_count)
    : table_(table_open(own_relation(table), AccessShareLock)),
      index_(index_open(own_relation(index), AccessShareLock)),
      scan_(systable_beginscan_ordered(table_, index_, SnapshotSelf, key_count, keys)) {}

HeapTuple OwnScan::previous() {
    return systable_getnext_ordered(scan_, BackwardScanDirection);
}

AttrNumber OwnScan::column(const char* name) const {
    const AttrNumber number = get_attnum(RelationGetRelid(table_), name);
    if (number == InvalidAttrNumber)
        elog(ERROR, "onerepl.%s has no column \"%s\"", RelationGetRelationName(table_), name);
    return number;
}

Datum OwnScan::get(HeapTuple row, const char* name, bool* is_null) const {
    return heap_getattr(row, column(name), RelationGetDescr(table_), is_null);
}

Datum OwnScan::get(HeapTuple row, const char* name) const {
    bool is_null;
    const Datum value = get(row, name, &is_null);
    if (is_null) elog(ERROR, "null in onerepl.%s", RelationGetRelationName(table_));
    return value;
}

void OwnScan::close() {
    systable_endscan_ordered(scan_);
    index_close(index_, AccessShareLock);
    table_close(table_, AccessShareLock);
}

ScanKeyData scan_key(AttrNumber number, StrategyNumber strategy, RegProcedure function, Datum value) {
    ScanKeyData key;
    ScanKeyInit(&key, number, strategy, function, value);
    return key;
}

}  // namespace onerepl::store
