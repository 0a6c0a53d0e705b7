// lock_pending (P6).
#include "capture/lock_pending.h"

#include "capture/log_tables.h"

extern "C" {
#include "access/genam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "utils/fmgroids.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"
}

namespace onerepl::capture {

bool is_lock_pending(Oid relation) {
    enum Column { column_relation = 1, column_lock_pending = 2 };
    Relation table = table_open(own_relation("tracked"), AccessShareLock);
    ScanKeyData key;
    ScanKeyInit(&key, column_relation, BTEqualStrategyNumber, F_OIDEQ, ObjectIdGetDatum(relation));
    // SnapshotSelf as in description.cpp; the table has a handful of rows.
    SysScanDesc scan = systable_beginscan(table, own_relation("tracked_pkey"), true, SnapshotSelf, 1, &key);
    HeapTuple tuple = systable_getnext(scan);
    bool asked = false;
    if (HeapTupleIsValid(tuple)) {
        bool is_null;
        asked = DatumGetBool(heap_getattr(tuple, column_lock_pending, RelationGetDescr(table), &is_null));
    }
    systable_endscan(scan);
    table_close(table, AccessShareLock);
    return asked;
}

}  // namespace onerepl::capture
