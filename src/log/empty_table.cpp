// A new, empty file for a table, its TOAST table and their indexes.
#include "log/empty_table.h"

extern "C" {
#include "access/table.h"
#include "commands/tablecmds.h"
#include "pgstat.h"
#include "utils/rel.h"
}

#include "pg/compat.h"
#include "pg/error_boundary.h"

namespace onerepl::log {

void truncate_unlogged_by_decoding(Oid table) {
    pg::call([&] {
        Relation relation = table_open(table, AccessExclusiveLock);
        CheckTableNotInUse(relation, "TRUNCATE");
        compat::set_new_file(relation);
        if (OidIsValid(relation->rd_rel->reltoastrelid)) {
            Relation toast = table_open(relation->rd_rel->reltoastrelid, AccessExclusiveLock);
            compat::set_new_file(toast);
            table_close(toast, NoLock);
        }
        pgstat_count_truncate(relation);
        table_close(relation, NoLock);
        compat::reindex(table, REINDEX_REL_PROCESS_TOAST);
    });
}

}  // namespace onerepl::log
