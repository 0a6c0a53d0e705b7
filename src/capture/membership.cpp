// Partitions that come to a tracked table with rows in them, or leave it: no trigger fires for these rows, so
// they are recorded here, in the transaction of the ALTER TABLE or DROP TABLE, which lets nobody else write
// them.
#include "capture/captured_table.h"
#include "capture/description_store.h"
#include "capture/row_image.h"
#include "capture/transaction_log.h"
#include "log/layout.h"
#include "pg/error_boundary.h"

extern "C" {
#include "access/table.h"
#include "access/tableam.h"
#include "executor/tuptable.h"
#include "utils/snapmgr.h"
}

namespace onerepl::capture {

namespace {

void record_row(CapturedTable& table, Relation relation, HeapTuple tuple) {
    log::RowChange change;
    change.operation = 0;  // insert
    change.description = table.description;
    change.command = GetCurrentCommandId(false);
    change.new_id = &tuple->t_self;
    set_new_image(table, {relation, nullptr, tuple}, change);
    record_change(change);
}

/// Records each row as an insert. The snapshot is the newest, whatever the transaction's: the rows that
/// others committed before the partition was locked come too.
void record_rows(Oid oid) {
    Relation relation = table_open(oid, AccessShareLock);
    CapturedTable& table = captured_table(relation);
    Snapshot snapshot = RegisterSnapshot(GetLatestSnapshot());
    TableScanDesc scan = table_beginscan(relation, snapshot, 0, nullptr);
    TupleTableSlot* slot = table_slot_create(relation, nullptr);
    MemoryContext memory = AllocSetContextCreate(CurrentMemoryContext, "onerepl row", ALLOCSET_DEFAULT_SIZES);
    MemoryContext before = MemoryContextSwitchTo(memory);
    while (table_scan_getnextslot(scan, ForwardScanDirection, slot)) {
        CHECK_FOR_INTERRUPTS();
        record_row(table, relation, ExecFetchSlotHeapTuple(slot, false, nullptr));
        MemoryContextReset(memory);
    }
    MemoryContextSwitchTo(before);
    MemoryContextDelete(memory);
    ExecDropSingleTupleTableSlot(slot);
    table_endscan(scan);
    UnregisterSnapshot(snapshot);
    table_close(relation, NoLock);
}

/// Its description is what names its rows when it is gone.
void ensure_description(Oid oid) {
    pg::entry([&] {
        Relation relation = pg::call([&] { return table_open(oid, AccessShareLock); });
        const Bytes encoded = log::encode_layout(log::layout_of(relation));
        pg::call([&] {
            description_of(oid, encoded.data(), encoded.size());
            table_close(relation, NoLock);
        });
    });
}

}  // namespace

}  // namespace onerepl::capture

extern "C" {

PG_FUNCTION_INFO_V1(onerepl_describe_partition);
PGDLLEXPORT Datum onerepl_describe_partition(PG_FUNCTION_ARGS) {
    onerepl::capture::ensure_description(PG_GETARG_OID(0));
    PG_RETURN_VOID();
}

PG_FUNCTION_INFO_V1(onerepl_record_attached);
PGDLLEXPORT Datum onerepl_record_attached(PG_FUNCTION_ARGS) {
    using namespace onerepl::capture;
    if (begin_capture()) record_rows(PG_GETARG_OID(0));
    PG_RETURN_VOID();
}

PG_FUNCTION_INFO_V1(onerepl_record_left);
PGDLLEXPORT Datum onerepl_record_left(PG_FUNCTION_ARGS) {
    using namespace onerepl::capture;
    const FoundDescription last = newest_description(PG_GETARG_OID(0));
    if (last.id > 0 && begin_capture()) record_truncate(last.id, false, false);
    PG_RETURN_VOID();
}

}  // extern "C"
