// Demand of workers, and what capture has to know after a start of the server.
#include "pg/pg.h"

#include "sender/demand.h"

#include "pg/journal_buffer.h"
#include "pg/settings.h"
#include "pg/spi.h"
#include "pg/transaction.h"
#include "shared/memory.h"
#include "worker/worker.h"

#include <string>

namespace onerepl::sender {

namespace {

struct Demand {
    bool sender = false;
    int receivers = 0;
};

Demand read_demand() {
    Demand demand;
    pg::query(
        "SELECT EXISTS (SELECT FROM onerepl.link WHERE role = 'remote') OR EXISTS (SELECT FROM "
        "onerepl.tracked),"
        "       EXISTS (SELECT FROM onerepl.link WHERE role = 'central')",
        {}, [&](const pg::Row& row) {
            demand.sender = row.boolean(0);
            demand.receivers = row.boolean(1) && *settings::listen ? settings::receivers : 0;
        });
    return demand;
}

/// Two databases that share an address would take each other's requests. The one that came first keeps it.
void report_taken_address() {
    pg::JournalBuffer journal;
    journal.write({Level::critical,
                   "P11",
                   "another database of this server listens at " + std::string(settings::listen) + " already",
                   "Give each database an address of its own: ALTER DATABASE ... SET onerepl.listen = '...'.",
                   {}});
    journal.flush();
}

}  // namespace

bool find_demand() {
    Demand demand;
    pg::in_transaction([&] {
        if (!worker::extension_exists()) return;
        demand = read_demand();
        pg::query("SELECT active, capture_stopped FROM onerepl.log_state", {}, [](const pg::Row& row) {
            shared::set_active_log_table(row.int4(0));
            shared::set_capture_stopped(row.boolean(1));
        });
        if (demand.receivers == 0) return;
        const shared::Claim claim = shared::claim_address(settings::listen);
        if (claim == shared::Claim::granted) return;
        demand.receivers = 0;
        if (claim == shared::Claim::refused) report_taken_address();
    });
    shared::set_demand(demand.sender, demand.receivers);
    return demand.sender;
}

}  // namespace onerepl::sender
