#include "pg/pg.h"

#include "receiver/central_housekeeping.h"

#include "pg/settings.h"
#include "pg/spi.h"
#include "pg/transaction.h"
#include "worker/worker.h"

namespace onerepl::receiver {

namespace {

void purge_received() {
    pg::in_transaction([] {
        pg::execute("DELETE FROM onerepl.received WHERE at < clock_timestamp() - make_interval(secs => $1)",
                    {static_cast<double>(settings::log_retention)});
        pg::execute(
            "DELETE FROM onerepl.apply_progress AS a WHERE at < clock_timestamp() - make_interval(secs => $1)"
            " AND seq < (SELECT max(seq) FROM onerepl.apply_progress AS b WHERE b.link = a.link)",
            {static_cast<double>(settings::log_retention)});
    });
}

}  // namespace

void Housekeeping::turn(Time now) {
    if (self_check_.due(now)) worker::attempt(worker::self_check);
    if (!purge_.due(now)) return;
    worker::attempt(worker::purge_journal);
    worker::attempt(purge_received);
}

}  // namespace onerepl::receiver
