// A new, empty file for a table, its TOAST table and their indexes.
#include "log/truncate.h"

extern "C" {
#include "access/table.h"
#include "catalog/index.h"
#include "commands/tablecmds.h"
#include "pgstat.h"
#include "utils/rel.h"
#include "utils/relcache.h"
}

#include "pg/guard.h"

namespace onerepl::log {

namespace {

void new_file(Relation relation) {
#if PG_VERSION_NUM >= 160000
    RelationSetNewRelfilenumber(relation, relation->rd_rel->relpersistence);
#else
    RelationSetNewRelfilenode(relation, relation->rd_rel->relpersistence);
#endif
}

void rebuild_indexes(Oid relation) {
    ReindexParams parameters;
    memset(&parameters, 0, sizeof parameters);
#if PG_VERSION_NUM >= 170000
    reindex_relation(nullptr, relation, REINDEX_REL_PROCESS_TOAST, &parameters);
#else
    reindex_relation(relation, REINDEX_REL_PROCESS_TOAST, &parameters);
#endif
}

}  // namespace

void truncate_unlogged_by_decoding(Oid table) {
    pg::call([&] {
        Relation relation = table_open(table, AccessExclusiveLock);
        CheckTableNotInUse(relation, "TRUNCATE");
        new_file(relation);
        if (OidIsValid(relation->rd_rel->reltoastrelid)) {
            Relation toast = table_open(relation->rd_rel->reltoastrelid, AccessExclusiveLock);
            new_file(toast);
            table_close(toast, NoLock);
        }
        pgstat_count_truncate(relation);
        table_close(relation, NoLock);
        rebuild_indexes(table);
    });
}

}  // namespace onerepl::log
