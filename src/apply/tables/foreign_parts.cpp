#include "apply/tables/foreign_parts.h"

#include "apply/rows/foreign.h"
#include "pg/error_boundary.h"

extern "C" {
#include "catalog/pg_class.h"
#include "catalog/pg_inherits.h"
#include "utils/lsyscache.h"
}

namespace onerepl::apply {

std::vector<Oid> parts_of(ApplyTransaction& xact, Oid relation) {
    std::vector<Oid> parts;
    ListCell* cell;
    foreach (cell, pg::call([&] { return parts_to_write(xact, relation); }))
        parts.push_back(lfirst_oid(cell));
    return parts;
}

bool is_ahead(ApplyTransaction& xact, Oid relation) {
    return pg::call([&] {
        bool ahead = false;
        if (!has_foreign_partitions(relation)) return ahead;
        ListCell* cell;
        foreach (cell, find_all_inheritors(relation, RowExclusiveLock, nullptr)) {
            const Oid part = lfirst_oid(cell);
            if (get_rel_relkind(part) == RELKIND_FOREIGN_TABLE && is_of_postgres(part))
                ahead |= has_record(xact, place_of(xact, part));
        }
        return ahead;
    });
}

}  // namespace onerepl::apply
