// The launcher. It is connected to no database, so that it never stands in the way of DROP DATABASE. Whether
// a database has the extension and what it needs is found out by its sender, which ends at once if there is
// nothing for it to do.
#include "worker/launcher.h"

#include "pg/clock.h"
#include "pg/settings.h"
#include "pg/transaction.h"
#include "shared/memory.h"
#include "worker/worker.h"

extern "C" {
#include "access/heapam.h"
#include "access/table.h"
#include "access/tableam.h"
#include "catalog/pg_database.h"
#include "miscadmin.h"
#include "postmaster/bgworker.h"
}

#include <algorithm>
#include <map>
#include <string>
#include <vector>

extern "C" PGDLLEXPORT void onerepl_launcher_main(Datum);

namespace onerepl::launcher {

namespace {

constexpr Time check_again = 10 * second;
constexpr Time start_interval = 1 * second;  // least time between two starts of the same worker

/// All databases by name. By a plain scan: without a database of its own, a process can be sure of the shared
/// catalogs' tables only, not of their indexes.
std::map<std::string, Oid> all_databases() {
    std::map<std::string, Oid> databases;
    Relation relation = nullptr;
    TableScanDesc scan = nullptr;
    pg::call([&] {
        relation = table_open(DatabaseRelationId, AccessShareLock);
        scan = table_beginscan_catalog(relation, 0, nullptr);
    });
    while (HeapTuple tuple = pg::call([&] { return heap_getnext(scan, ForwardScanDirection); })) {
        const auto* database = reinterpret_cast<Form_pg_database>(GETSTRUCT(tuple));
        databases[NameStr(database->datname)] = database->oid;
    }
    pg::call([&] {
        table_endscan(scan);
        table_close(relation, AccessShareLock);
    });
    return databases;
}

struct WantedDatabase {
    Oid oid;
    std::string name;
};

std::vector<WantedDatabase> wanted_databases() {
    std::vector<WantedDatabase> wanted;
    pg::in_transaction([&] {
        const std::map<std::string, Oid> existing = all_databases();
        for (const std::string& name : worker::listed_databases())
            if (const auto found = existing.find(name); found != existing.end())
                wanted.push_back({found->second, name});
    });
    return wanted;
}

class Starter {
  public:
    /// Starts what is needed and does not run. Gives the time until the next look.
    Time turn(const std::vector<WantedDatabase>& databases) {
        next_check_ = check_again;
        std::vector<Oid> kept;
        kept.reserve(databases.size());
        for (const WantedDatabase& database : databases) kept.push_back(database.oid);
        shared::keep_only(kept);
        for (const WantedDatabase& database : databases) turn(database);
        return next_check_;
    }

  private:
    void turn(const WantedDatabase& database) {
        const shared::DatabaseView view = shared::view_database(database.oid);
        if (view.suspended) return;
        // A sender that ended for want of work is tried again after a while: the extension may have been
        // created.
        if (!view.sender_runs)
            start(database, "sender", -1, view.sender_needed ? start_interval : check_again);
        for (int i = 0; i < view.receivers_wanted; i++)
            if (!view.receiver_runs[i]) start(database, "receiver", i, start_interval);
    }

    void start(const WantedDatabase& database, const char* kind, int index, Time interval) {
        Time& last = started_[{database.oid, index}];
        const Time wait = last == 0 ? 0 : last + interval - pg::now();
        next_check_ = std::min(next_check_, std::max(wait, start_interval));
        if (wait > 0) return;
        last = pg::now();
        launch(database, kind, index);
    }

    void launch(const WantedDatabase& database, const char* kind, int index) {
        BackgroundWorker entry;
        memset(&entry, 0, sizeof entry);
        entry.bgw_flags = BGWORKER_SHMEM_ACCESS | BGWORKER_BACKEND_DATABASE_CONNECTION;
        entry.bgw_start_time = BgWorkerStart_RecoveryFinished;
        entry.bgw_restart_time = BGW_NEVER_RESTART;
        entry.bgw_main_arg = ObjectIdGetDatum(database.oid);
        entry.bgw_notify_pid = MyProcPid;
        snprintf(entry.bgw_name, BGW_MAXLEN, "onerepl %s of database %u", kind, database.oid);
        snprintf(entry.bgw_type, BGW_MAXLEN, "onerepl %s", kind);
        snprintf(entry.bgw_library_name, BGW_MAXLEN, "onerepl");
        snprintf(entry.bgw_function_name, BGW_MAXLEN, "onerepl_%s_main", kind);
        worker::Assignment given = {index, {}};
        strlcpy(given.database, database.name.c_str(), sizeof given.database);
        memcpy(entry.bgw_extra, &given, sizeof given);
        const bool registered = pg::call([&] { return RegisterDynamicBackgroundWorker(&entry, nullptr); });
        report_shortage(!registered);
    }

    void report_shortage(bool shortage) {
        if (shortage && !shortage_)
            pg::call([] {
                ereport(LOG, (errmsg("onerepl: no place for another background worker"),
                              errhint("Raise max_worker_processes.")));
            });
        shortage_ = shortage;
        shared::set_shortage(shortage);
    }

    std::map<std::pair<Oid, int>, Time> started_;
    Time next_check_ = check_again;
    bool shortage_ = false;
};

void run() {
    worker::start();
    shared::register_launcher();
    worker::Waiter waiter(PGINVALID_SOCKET);
    Starter starter;
    for (;;) {
        Time next_check = check_again;
        worker::attempt([&] { next_check = starter.turn(wanted_databases()); });
        waiter.wait(next_check);
    }
}

}  // namespace

void install() {
    // pg_upgrade copies the cluster while its servers run: nothing may be numbered or written meanwhile. (In
    // single-user mode nobody starts background workers.)
    if (IsBinaryUpgrade) return;
    BackgroundWorker entry;
    memset(&entry, 0, sizeof entry);
    entry.bgw_flags = BGWORKER_SHMEM_ACCESS | BGWORKER_BACKEND_DATABASE_CONNECTION;
    entry.bgw_start_time = BgWorkerStart_RecoveryFinished;
    entry.bgw_restart_time = 1;
    snprintf(entry.bgw_name, BGW_MAXLEN, "onerepl launcher");
    snprintf(entry.bgw_type, BGW_MAXLEN, "onerepl launcher");
    snprintf(entry.bgw_library_name, BGW_MAXLEN, "onerepl");
    snprintf(entry.bgw_function_name, BGW_MAXLEN, "onerepl_launcher_main");
    RegisterBackgroundWorker(&entry);
}

}  // namespace onerepl::launcher

void onerepl_launcher_main(Datum) {
    onerepl::pg::entry([] { onerepl::launcher::run(); });
}
