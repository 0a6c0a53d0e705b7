#include "pg/pg.h"

#include "worker/periodic.h"

#include "pg/settings.h"
#include "pg/spi.h"
#include "pg/transaction.h"

namespace onerepl::worker {

bool Periodic::due(Time now) {
    if (ran_ && now - last_ < interval_) return false;
    ran_ = true;
    last_ = now;
    return true;
}

void self_check() {
    pg::in_transaction([] { pg::execute("SELECT onerepl.self_check()"); });
}

// In portions, so that no transaction gets long.
void purge_journal() {
    pg::in_transaction([] {
        pg::execute(
            "DELETE FROM onerepl.journal_entry WHERE at < clock_timestamp() - make_interval(secs => $1)"
            " AND id IN (SELECT id FROM onerepl.journal_entry ORDER BY id LIMIT 10000)",
            {static_cast<double>(settings::journal_retention)});
    });
}

}  // namespace onerepl::worker
