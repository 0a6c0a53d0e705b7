// Looking into onerepl.tracked.
#include "capture/tracked.h"

#include "store/own_table.h"

extern "C" {
#include "catalog/partition.h"
#include "utils/fmgroids.h"
}

namespace onerepl::capture {

namespace {

void check(Oid relation, Tracked* found) {
    ScanKeyData key = store::scan_key(1, BTEqualStrategyNumber, F_OIDEQ, ObjectIdGetDatum(relation));
    store::OwnScan scan("tracked", "tracked_pkey", &key, 1);
    HeapTuple row = scan.previous();
    if (row) {
        found->tracked = true;
        found->lock_pending |= DatumGetBool(scan.get(row, "lock_pending"));
    }
    scan.close();
}

}  // namespace

Tracked how_tracked(Relation relation) {
    Tracked found{};
    check(RelationGetRelid(relation), &found);
    if (!relation->rd_rel->relispartition) return found;
    ListCell* cell;
    foreach (cell, get_partition_ancestors(RelationGetRelid(relation))) check(lfirst_oid(cell), &found);
    return found;
}

}  // namespace onerepl::capture
