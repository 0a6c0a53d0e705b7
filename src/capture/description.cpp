// Finding and making rows of onerepl.description, without SPI.
#include "capture/description.h"

#include "capture/log_tables.h"

extern "C" {
#include "access/genam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "commands/sequence.h"
#include "utils/fmgroids.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"
#include "utils/timestamp.h"
}

namespace onerepl::capture {

namespace {

enum Column { column_id = 1, column_relation = 2, column_layout = 3 };

Datum get(HeapTuple tuple, Relation table, int column) {
    bool is_null;
    const Datum value = heap_getattr(tuple, column, RelationGetDescr(table), &is_null);
    if (is_null) elog(ERROR, "null in onerepl.description");
    return value;
}

}  // namespace

FoundDescription newest_description(Oid relation) {
    FoundDescription found;
    Relation table = table_open(own_relation("description"), AccessShareLock);
    Relation index = index_open(own_relation("description_relation"), AccessShareLock);
    ScanKeyData key;
    ScanKeyInit(&key, column_relation, BTEqualStrategyNumber, F_OIDEQ, ObjectIdGetDatum(relation));
    // Rows are only ever inserted, so SnapshotSelf is exact: what is committed at this moment, and what this
    // transaction has made, this command included. Not an MVCC snapshot, so it adds no serialization
    // conflicts to the application.
    SysScanDesc scan = systable_beginscan_ordered(table, index, SnapshotSelf, 1, &key);
    HeapTuple tuple = systable_getnext_ordered(scan, BackwardScanDirection);
    if (HeapTupleIsValid(tuple)) {
        found.id = static_cast<std::uint64_t>(DatumGetInt64(get(tuple, table, column_id)));
        found.uncommitted = TransactionIdIsCurrentTransactionId(HeapTupleHeaderGetXmin(tuple->t_data));
        const bytea* layout = DatumGetByteaPCopy(get(tuple, table, column_layout));
        found.layout = VARDATA_ANY(layout);
        found.size = VARSIZE_ANY_EXHDR(layout);
    }
    systable_endscan_ordered(scan);
    index_close(index, AccessShareLock);
    table_close(table, AccessShareLock);
    return found;
}

std::uint64_t insert_description(Oid relation, const void* layout, std::size_t size) {
    const int64 id = nextval_internal(own_relation("description_id_seq"), false);
    bytea* bytes = static_cast<bytea*>(palloc(VARHDRSZ + size));
    SET_VARSIZE(bytes, VARHDRSZ + size);
    memcpy(VARDATA(bytes), layout, size);
    const Datum values[] = {Int64GetDatum(id), ObjectIdGetDatum(relation), PointerGetDatum(bytes),
                            TimestampTzGetDatum(GetCurrentTimestamp())};
    insert_row(own_relation("description"), values);
    pfree(bytes);
    return static_cast<std::uint64_t>(id);
}

}  // namespace onerepl::capture
