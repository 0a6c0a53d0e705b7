// Waiting for those who write tracked tables.
#include "pg/error_boundary.h"
#include "pg/spi.h"

extern "C" {
#include "storage/lmgr.h"
#include "storage/lock.h"

PG_FUNCTION_INFO_V1(onerepl_wait_for_writers);
}

#include <vector>

namespace onerepl {

namespace {

std::vector<Oid> tracked_members() {
    std::vector<Oid> members;
    pg::query("SELECT relation FROM onerepl.tracked_member", {},
              [&](const pg::Row& row) { members.push_back(row.oid(0)); });
    return members;
}

/// As CREATE INDEX CONCURRENTLY waits: for each that holds the lock of a writer now, and for nobody who comes
/// later.
void wait_for_writers(const std::vector<Oid>& relations) {
    pg::call([&] {
        List* tags = NIL;
        for (const Oid relation : relations) {
            auto* tag = static_cast<LOCKTAG*>(palloc(sizeof(LOCKTAG)));
            SET_LOCKTAG_RELATION(*tag, MyDatabaseId, relation);
            tags = lappend(tags, tag);
        }
        WaitForLockersMultiple(tags, ShareLock, false);
    });
}

}  // namespace

}  // namespace onerepl

PGDLLEXPORT Datum onerepl_wait_for_writers(PG_FUNCTION_ARGS) {
    onerepl::pg::entry([&] {
        onerepl::pg::SpiConnection spi;
        onerepl::wait_for_writers(onerepl::tracked_members());
        spi.finish();
    });
    PG_RETURN_VOID();
}
