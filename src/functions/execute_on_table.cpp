// A statement about a table whose partitions PostgreSQL looks at meanwhile. It simplifies the expressions of
// partition keys when it first needs them, and so calls functions of the tables' owners with whatever rights
// it has: so they are made ready before, with the owners' rights (P19), and the tables kept open, which keeps
// them so.
#include "functions/arguments.h"
#include "pg/error_boundary.h"
#include "pg/rights.h"
#include "pg/spi.h"

extern "C" {
#include "access/table.h"
#include "catalog/partition.h"
#include "catalog/pg_inherits.h"
#include "utils/lsyscache.h"
#include "utils/partcache.h"
#include "utils/rel.h"

PG_FUNCTION_INFO_V1(onerepl_execute_on_table);
}

namespace onerepl {

namespace {

/// Plain.
List* open_partitioned(List* opened, Oid relation, LOCKMODE lock) {
    if (get_rel_relkind(relation) != RELKIND_PARTITIONED_TABLE) return opened;
    Relation table = table_open(relation, lock);
    const pg::Rights rights = pg::become(table->rd_rel->relowner);
    RelationGetPartitionKey(table);
    pg::return_from(rights);
    return lappend(opened, table);
}

/// Plain. As CREATE TRIGGER will lock them.
List* open_all_partitioned(Oid relation) {
    List* opened = NIL;
    ListCell* cell;
    if (get_rel_relispartition(relation))
        foreach (cell, get_partition_ancestors(relation))
            opened = open_partitioned(opened, lfirst_oid(cell), AccessShareLock);
    foreach (cell, find_all_inheritors(relation, ShareRowExclusiveLock, nullptr))
        opened = open_partitioned(opened, lfirst_oid(cell), NoLock);
    return opened;
}

}  // namespace

}  // namespace onerepl

PGDLLEXPORT Datum onerepl_execute_on_table(PG_FUNCTION_ARGS) {
    using namespace onerepl;
    pg::entry([&] {
        const std::string statement = text_argument(fcinfo, 1);
        List* const opened = pg::call([&] { return open_all_partitioned(PG_GETARG_OID(0)); });
        pg::SpiConnection spi;
        pg::call([&] { SPI_execute(statement.c_str(), false, 0); });
        spi.finish();
        pg::call([&] {
            ListCell* cell;
            foreach (cell, opened) table_close(static_cast<Relation>(lfirst(cell)), NoLock);
        });
    });
    PG_RETURN_VOID();
}
