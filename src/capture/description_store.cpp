// Finding and making rows of onerepl.description, without SPI.
#include "capture/description_store.h"

#include "store/log_tables.h"
#include "store/own_table.h"

extern "C" {
#include "access/htup_details.h"
#include "commands/sequence.h"
#include "utils/fmgroids.h"
#include "utils/timestamp.h"
}

namespace onerepl::capture {

namespace {

enum { description_relation = 2 };

}  // namespace

FoundDescription newest_description(Oid relation) {
    FoundDescription found;
    ScanKeyData key =
        store::scan_key(description_relation, BTEqualStrategyNumber, F_OIDEQ, ObjectIdGetDatum(relation));
    store::OwnScan scan("description", "description_relation", &key, 1);
    if (HeapTuple row = scan.previous()) {
        found.id = static_cast<std::uint64_t>(DatumGetInt64(scan.get(row, "id")));
        found.uncommitted = TransactionIdIsCurrentTransactionId(HeapTupleHeaderGetXmin(row->t_data));
        const bytea* layout = DatumGetByteaPCopy(scan.get(row, "layout"));
        found.layout = VARDATA_ANY(layout);
        found.size = VARSIZE_ANY_EXHDR(layout);
    }
    scan.close();
    return found;
}

std::uint64_t insert_description(Oid relation, const void* layout, std::size_t size) {
    const int64 id = nextval_internal(store::own_relation("description_id_seq"), false);
    bytea* bytes = static_cast<bytea*>(palloc(VARHDRSZ + size));
    SET_VARSIZE(bytes, VARHDRSZ + size);
    memcpy(VARDATA(bytes), layout, size);
    const Datum values[] = {Int64GetDatum(id), ObjectIdGetDatum(relation), PointerGetDatum(bytes),
                            TimestampTzGetDatum(GetCurrentTimestamp())};
    store::insert_row(store::own_relation("description"), values);
    pfree(bytes);
    return static_cast<std::uint64_t>(id);
}

std::uint64_t description_of(Oid relation, const void* layout, std::size_t size) {
    const FoundDescription newest = newest_description(relation);
    const bool fits = newest.id > 0 && newest.size == size && memcmp(newest.layout, layout, size) == 0;
    return fits ? newest.id : insert_description(relation, layout, size);
}

}  // namespace onerepl::capture
