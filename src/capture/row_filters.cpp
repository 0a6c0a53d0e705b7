// Looking into onerepl.filter without SPI.
#include "capture/row_filters.h"

#include "store/own_table.h"

extern "C" {
#include "utils/fmgroids.h"
}

namespace onerepl::capture {

bool has_row_filter(Oid relation) {
    enum { filter_relation = 3 };
    ScanKeyData key =
        store::scan_key(filter_relation, BTEqualStrategyNumber, F_OIDEQ, ObjectIdGetDatum(relation));
    store::OwnScan scan("filter", "filter_relation", &key, 1);
    bool found = false;
    while (HeapTuple row = scan.previous()) {
        bool has_no_rows;
        scan.get(row, "rows", &has_no_rows);
        found |= !has_no_rows && DatumGetBool(scan.get(row, "newest"));
    }
    scan.close();
    return found;
}

}  // namespace onerepl::capture
