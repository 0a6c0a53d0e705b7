// Start, waiting and end of background workers.
#include "worker/worker.h"

#include "pg/compat.h"
#include "pg/rights.h"
#include "pg/settings.h"
#include "pg/transaction.h"
#include "worker/pinned_settings.h"

#include <malloc.h>

extern "C" {
#include "commands/extension.h"
#include "pgstat.h"
#include "postmaster/bgworker.h"
#include "postmaster/interrupt.h"
#include "storage/ipc.h"
#include "tcop/tcopprot.h"
#include "utils/guc.h"
#include "utils/varlena.h"
}

#include <algorithm>

namespace onerepl::worker {

namespace {

void install_signal_handlers() {
    pqsignal(SIGTERM, die);
    pqsignal(SIGHUP, SignalHandlerForConfigReload);
    BackgroundWorkerUnblockSignals();
}

/// Bodies of a MB or so come and go all the time. malloc would give each back to the system, and have the
/// pages of the next one cleared; larger things still go back at once.
void keep_memory_of_bodies() {
#ifdef __GLIBC__
    mallopt(M_MMAP_THRESHOLD, 16 * 1024 * 1024);
    mallopt(M_TRIM_THRESHOLD, 32 * 1024 * 1024);
#endif
}

Assignment assignment() {
    Assignment given;
    memcpy(&given, MyBgworkerEntry->bgw_extra, sizeof given);
    return given;
}

/// Ends a worker whose database is no longer one of onerepl.databases.
void end_if_unlisted() {
    if (!OidIsValid(MyDatabaseId)) return;
    const std::vector<std::string> listed = listed_databases();
    if (std::find(listed.begin(), listed.end(), assignment().database) == listed.end()) finish();
}

void reload_if_asked() {
    if (!ConfigReloadPending) return;
    ConfigReloadPending = false;
    pg::call([] { ProcessConfigFile(PGC_SIGHUP); });
    end_if_unlisted();
}

}  // namespace

std::vector<std::string> listed_databases() {
    std::vector<std::string> names;
    pg::call([&] {
        char* copy = pstrdup(settings::databases ? settings::databases : "");
        List* list = NIL;
        if (!SplitIdentifierString(copy, ',', &list))
            ereport(LOG, (errmsg("onerepl.databases is not a list of names: \"%s\"", settings::databases)));
        ListCell* cell;
        foreach (cell, list) names.emplace_back(static_cast<const char*>(lfirst(cell)));
    });
    return names;
}

namespace {

void connect(Oid database) {
    keep_memory_of_bodies();
    pg::call([&] {
        install_signal_handlers();
        BackgroundWorkerInitializeConnectionByOid(database, InvalidOid, 0);
        pg::watch_rights();
        pgstat_report_appname(MyBgworkerEntry->bgw_type);
    });
    if (OidIsValid(database)) pin_session();
}

}  // namespace

void start() {
    connect(InvalidOid);
}

Assignment start(Oid database) {
    connect(database);
    end_if_unlisted();  // the launcher may have acted on the old settings
    return assignment();
}

Waiter::Waiter(pgsocket socket) {
    events_ = pg::call([&] {
        WaitEventSet* events = compat::create_wait_event_set(3);
        AddWaitEventToSet(events, WL_LATCH_SET, PGINVALID_SOCKET, MyLatch, nullptr);
        AddWaitEventToSet(events, WL_EXIT_ON_PM_DEATH, PGINVALID_SOCKET, nullptr, nullptr);
        if (socket != PGINVALID_SOCKET)
            AddWaitEventToSet(events, WL_SOCKET_READABLE, socket, nullptr, nullptr);
        return events;
    });
}

void Waiter::wait(Time timeout) {
    const long milliseconds = timeout < 0 ? -1 : static_cast<long>((timeout + millisecond - 1) / millisecond);
    woken_ = false;
    pg::call([&] {
        WaitEvent event;
        pgstat_report_activity(STATE_IDLE, nullptr);
        const int occurred = WaitEventSetWait(events_, milliseconds, &event, 1, PG_WAIT_EXTENSION);
        woken_ = occurred > 0 && (event.events & WL_LATCH_SET) != 0;
        // Otherwise it may have been set since, and that must not get lost.
        if (woken_) ResetLatch(MyLatch);
        CHECK_FOR_INTERRUPTS();
    });
    reload_if_asked();
}

namespace {

void report_and_abort(MemoryContext memory, const char* message, const std::string& detail) {
    pg::call([&] {
        AbortOutOfAnyTransaction();
        MemoryContextSwitchTo(memory);
        ereport(LOG, (errmsg("onerepl: %s", message),
                      detail.empty() ? 0 : errdetail_internal("%s", detail.c_str())));
    });
}

}  // namespace

bool attempt(const std::function<void()>& turn, Fault* fault) {
    const MemoryContext memory = CurrentMemoryContext;
    try {
        turn();
        return true;
    } catch (const pg::Error& error) {
        report_and_abort(memory, error.what(), error.report().detail);
        if (fault != nullptr) *fault = {error.what(), pg::is_transient(error.sqlstate()), error.sqlstate()};
    } catch (const std::exception& error) {
        report_and_abort(memory, error.what(), {});
        if (fault != nullptr) *fault = {error.what()};
    }
    return false;
}

bool extension_exists() {
    return pg::call([] { return OidIsValid(get_extension_oid("onerepl", true)); });
}

void finish() {
    proc_exit(0);
}

}  // namespace onerepl::worker
