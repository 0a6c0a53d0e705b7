// How many rows a table has, as the planner guesses it: not by its EXPLAIN, which would run code of the
// table's owner (the predicates of indexes) with our rights (P19).
#include "pg/pg.h"

extern "C" {
#include "access/table.h"
#include "catalog/pg_class.h"
#include "catalog/pg_inherits.h"
#include "fmgr.h"
#include "optimizer/plancat.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"

PG_FUNCTION_INFO_V1(onerepl_estimate_rows);
}

namespace onerepl {

namespace {

double rows_of(Oid relation) {
    Relation table = table_open(relation, AccessShareLock);
    BlockNumber pages = 0;
    double rows = 0;
    double visible = 0;
    if (table->rd_rel->relkind == RELKIND_RELATION)
        estimate_rel_size(table, nullptr, &pages, &rows, &visible);
    table_close(table, NoLock);
    return rows;
}

}  // namespace

}  // namespace onerepl

PGDLLEXPORT Datum onerepl_estimate_rows(PG_FUNCTION_ARGS) {
    const Oid relation = PG_GETARG_OID(0);
    double rows = onerepl::rows_of(relation);
    if (get_rel_relkind(relation) == RELKIND_PARTITIONED_TABLE) {
        ListCell* cell;
        foreach (cell, find_all_inheritors(relation, AccessShareLock, nullptr))
            if (lfirst_oid(cell) != relation) rows += onerepl::rows_of(lfirst_oid(cell));
    }
    PG_RETURN_INT64(static_cast<int64>(rows));
}
