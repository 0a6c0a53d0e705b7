// A session remembers under which description it writes a table. It looks again when the table's catalog
// entry is told to have changed (capture/captured_table.cpp), and then takes the newest one. So once that was
// told, only those who hold the lock of a writer at that moment may write the old one; when they have ended,
// a numbering step gives the largest number that can have it.
#include "log/replaced_descriptions.h"

#include "log/numbering.h"
#include "log/reader.h"
#include "pg/spi.h"
#include "pg/transaction.h"

extern "C" {
#include "storage/lmgr.h"
#include "storage/lock.h"
#include "utils/inval.h"
#include "utils/syscache.h"
}

#include <algorithm>
#include <map>
#include <optional>
#include <utility>
#include <vector>

namespace onerepl::log {

namespace {

struct Replaced {
    /// Transactions that may still write under it.
    std::vector<VirtualTransactionId> writers;
    /// The largest number that can have it, once nobody can write under it.
    std::optional<Number> last;
};

/// By id. Lost at a restart, then found again.
std::map<std::uint64_t, Replaced> replaced;

/// What a refresh at work has begun under is needed for its end (P21).
std::map<std::uint64_t, Oid> find_replaced() {
    std::map<std::uint64_t, Oid> found;
    pg::query(
        "SELECT d.id, d.relation FROM onerepl.description AS d WHERE"
        " (EXISTS (SELECT FROM onerepl.description AS newer WHERE newer.relation = d.relation AND newer.id > "
        "d.id)"
        "  OR NOT EXISTS (SELECT FROM pg_catalog.pg_class AS c WHERE c.oid = d.relation))"
        " AND NOT EXISTS (SELECT FROM onerepl.refresh AS r WHERE r.relation = d.relation AND r.state IN"
        "  ('waiting', 'running', 'paused', 'sent', 'cancelling'))",
        {}, [&](const pg::Row& row) { found.emplace(row.number(0), row.oid(1)); });
    return found;
}

/// Plain: all sessions look at the table's descriptions again before they write it under a new lock.
void report_sessions(Oid relation) {
    if (SearchSysCacheExists1(RELOID, ObjectIdGetDatum(relation))) CacheInvalidateRelcacheByRelid(relation);
}

std::vector<VirtualTransactionId> writers_of(Oid relation) {
    int count = 0;
    const VirtualTransactionId* const found = pg::call([&] {
        LOCKTAG tag;
        SET_LOCKTAG_RELATION(tag, MyDatabaseId, relation);
        return GetLockConflicts(&tag, ShareLock, &count);
    });
    return {found, found + count};
}

using Tables = std::vector<std::pair<std::uint64_t, Oid>>;

/// Forgets those that are needed again, and gives the new ones, which all sessions are told of.
Tables check() {
    Tables added;
    pg::in_transaction([&] {
        const std::map<std::uint64_t, Oid> found = find_replaced();
        std::erase_if(replaced, [&](const auto& entry) { return !found.contains(entry.first); });
        for (const auto& [id, relation] : found) {
            if (replaced.contains(id)) continue;
            pg::call([relation = relation] { report_sessions(relation); });
            added.emplace_back(id, relation);
        }
    });
    return added;
}

/// True if some description has just become one that nobody can write under.
bool drop_ended_writers() {
    bool any = false;
    pg::in_transaction([&] {
        for (auto& [id, description] : replaced) {
            std::erase_if(description.writers, [](const VirtualTransactionId& writer) {
                return pg::call([&] { return VirtualXactLock(writer, false); });
            });
            any |= description.writers.empty() && !description.last;
        }
    });
    return any;
}

}  // namespace

void purge_replaced_descriptions(Number confirmed) {
    const Tables added = check();
    // Only now, after the commit that tells the sessions.
    pg::in_transaction([&] {
        for (const auto& [id, relation] : added) replaced[id].writers = writers_of(relation);
    });
    if (drop_ended_writers()) {
        const Numbered numbered = number_changes();
        if (!numbered.complete) return;
        for (auto& [id, description] : replaced)
            if (description.writers.empty() && !description.last) description.last = numbered.last;
    }
    pg::in_transaction([&] {
        const Number oldest = std::min(first_number(), confirmed + 1);
        std::erase_if(replaced, [&](const auto& entry) {
            if (!entry.second.last || *entry.second.last >= oldest) return false;
            pg::execute("DELETE FROM onerepl.description WHERE id = $1", {entry.first});
            return true;
        });
    });
}

}  // namespace onerepl::log
