// Shared memory: a slot for each database, found by its oid, and memory for links. Nothing in here throws or
// holds C++ objects: it is called from transaction callbacks.
#include "shared/memory.h"

extern "C" {
#include "storage/ipc.h"
#include "storage/latch.h"
#include "storage/lwlock.h"
#include "storage/shmem.h"
#include "storage/spin.h"
#include "utils/wait_event.h"
#include "utils/timestamp.h"
}

#include <algorithm>
#include <csignal>

namespace onerepl::shared {

namespace {

struct Worker {
    pid_t pid;
    Latch* latch;
};

struct Database {
    Oid oid;
    Worker sender;
    Worker receivers[max_receivers];
    bool sender_not_needed;
    bool sender_rests;
    std::uint32_t sender_generation;
    std::uint32_t receiver_generation;
    int receivers_wanted;
    char address[128];     // where the receivers listen
    bool address_refused;  // it is another database's, and that was told
    int active_log_table;  // one more than the number, so that zero is "not known"
    bool capture_stopped;
    TimestampTz suspended_until;
    bool abandoned;  // the slot is given up when the last worker is gone
    char listen_error[listen_error_size];
};

struct LinkKey {
    Oid database;
    int link;
};

struct LinkMemory {
    alignas(8) unsigned char bytes[link_memory_size];
};

struct State {
    slock_t mutex;
    Latch* launcher;
    bool shortage;  // of background workers
    Database databases[max_databases];
    LinkKey links[max_links];  // apart, because it is searched for each body
    LinkMemory link_memory[max_links];
};

State* state = nullptr;
shmem_request_hook_type previous_request = nullptr;
shmem_startup_hook_type previous_startup = nullptr;

void request() {
    if (previous_request) previous_request();
    RequestAddinShmemSpace(MAXALIGN(sizeof(State)));
}

void startup() {
    if (previous_startup) previous_startup();
    bool found = false;
    LWLockAcquire(AddinShmemInitLock, LW_EXCLUSIVE);
    state = static_cast<State*>(ShmemInitStruct("onerepl", sizeof(State), &found));
    if (!found) {
        memset(static_cast<void*>(state), 0, sizeof(State));
        SpinLockInit(&state->mutex);
    }
    LWLockRelease(AddinShmemInitLock);
}

/// With the mutex held. A new slot if there is none and `make`; null when all are taken.
Database* find(Oid oid, bool make) {
    Database* unused = nullptr;
    for (Database& database : state->databases) {
        if (database.oid == oid) return &database;
        if (database.oid == InvalidOid && !unused) unused = &database;
    }
    if (!make || !unused) return nullptr;
    memset(static_cast<void*>(unused), 0, sizeof *unused);
    unused->oid = oid;
    return unused;
}

Database* own(bool make = true) {
    return find(MyDatabaseId, make);
}

/// Runs `work` with the slot of the current database under the mutex, if there is one. Work is a few
/// instructions.
template <class Work>
void with_own(Work work, bool make = true) {
    if (!state || !OidIsValid(MyDatabaseId)) return;
    SpinLockAcquire(&state->mutex);
    if (Database* database = own(make)) work(*database);
    SpinLockRelease(&state->mutex);
}

// What is to be woken when the transaction has committed.
bool sender_at_commit = false;
bool invalidate_sender_at_commit = false;
bool invalidate_receiver_at_commit = false;
bool receivers_at_commit = false;
bool launcher_at_commit = false;

void wake(Latch* latch) {
    if (latch) SetLatch(latch);
}

void at_transaction_end(XactEvent event, void*) {
    if (event == XACT_EVENT_COMMIT || event == XACT_EVENT_PREPARE) {
        if (invalidate_sender_at_commit) invalidate_sender();
        if (sender_at_commit) wake_sender();
        if (invalidate_receiver_at_commit) invalidate_receivers();
        if (receivers_at_commit) wake_receivers();
        if (launcher_at_commit) wake_launcher();
    } else if (event != XACT_EVENT_ABORT) {
        return;
    }
    sender_at_commit = receivers_at_commit = launcher_at_commit = false;
    invalidate_sender_at_commit = invalidate_receiver_at_commit = false;
}

bool deferred(bool& flag) {
    if (!IsTransactionState()) return false;
    static bool registered = false;
    if (!registered) RegisterXactCallback(at_transaction_end, nullptr);
    registered = true;
    flag = true;
    return true;
}

bool has_workers(const Database& database) {
    if (database.sender.pid != 0) return true;
    for (const Worker& receiver : database.receivers)
        if (receiver.pid != 0) return true;
    return false;
}

/// The slot holds nothing but hints: a dropped database's must not stay for good. But while a worker has its
/// place in it, it is the worker's.
void abandon(Database& database) {
    database.suspended_until = 0;
    database.abandoned = has_workers(database);
    if (!database.abandoned) database.oid = InvalidOid;
}

Worker* my_place = nullptr;

void give_up_place(int, Datum) {
    SpinLockAcquire(&state->mutex);
    if (my_place) *my_place = Worker{};
    my_place = nullptr;
    if (Database* database = own(false); database && database->abandoned) abandon(*database);
    SpinLockRelease(&state->mutex);
    wake(state->launcher);
}

}  // namespace

void install() {
    previous_request = shmem_request_hook;
    shmem_request_hook = request;
    previous_startup = shmem_startup_hook;
    shmem_startup_hook = startup;
}

bool available() {
    return state != nullptr;
}

void wake_sender() {
    if (!state || deferred(sender_at_commit)) return;
    // The order first: who is woken by a change sees also what else its transaction did.
    if (invalidate_sender_at_commit) {
        invalidate_sender_at_commit = false;
        return invalidate_sender();
    }
    Latch* latch = nullptr;
    with_own(
        [&](Database& database) {
            if (!database.sender_rests) latch = database.sender.latch;
        },
        false);
    wake(latch);
}

void invalidate_sender() {
    if (!state || deferred(invalidate_sender_at_commit)) return;
    Latch* latch = nullptr;
    with_own([&](Database& database) {
        database.sender_generation++;
        latch = database.sender.latch;
    });
    wake(latch);
}

void wake_receivers() {
    if (!state || deferred(receivers_at_commit)) return;
    Latch* latches[max_receivers] = {};
    with_own(
        [&](Database& database) {
            for (int i = 0; i < max_receivers; i++) latches[i] = database.receivers[i].latch;
        },
        false);
    for (Latch* latch : latches) wake(latch);
}

void invalidate_receivers() {
    if (!state || deferred(invalidate_receiver_at_commit)) return;
    with_own([](Database& database) { database.receiver_generation++; });
    wake_receivers();
}

std::uint32_t sender_generation() {
    std::uint32_t generation = 0;
    with_own([&](Database& database) { generation = database.sender_generation; });
    return generation;
}

std::uint32_t receiver_generation() {
    std::uint32_t generation = 0;
    with_own([&](Database& database) { generation = database.receiver_generation; });
    return generation;
}

void set_sender_resting(bool resting) {
    with_own([&](Database& database) { database.sender_rests = resting; });
}

void wake_launcher() {
    if (!state || deferred(launcher_at_commit)) return;
    with_own([](Database& database) { database.sender_not_needed = false; }, false);
    wake(state->launcher);
}

bool register_worker(WorkerKind kind, int index) {
    bool taken = false;
    with_own([&](Database& database) {
        Worker& place = kind == WorkerKind::sender ? database.sender : database.receivers[index];
        if (place.pid != 0 || database.suspended_until > GetCurrentTimestamp()) return;
        place.pid = MyProcPid;
        place.latch = MyLatch;
        if (kind == WorkerKind::sender) database.sender_rests = false;
        my_place = &place;
        taken = true;
    });
    if (taken) before_shmem_exit(give_up_place, 0);
    return taken;
}

void register_launcher() {
    state->launcher = MyLatch;
    on_shmem_exit([](int, Datum) { state->launcher = nullptr; }, 0);
}

namespace {

bool is_address(const Database& database, const char* address) {
    return strncmp(database.address, address, sizeof database.address - 1) == 0;
}

}  // namespace

Claim claim_address(const char* address) {
    Claim claim = Claim::granted;
    with_own([&](Database& mine) {
        const bool known = mine.address_refused && is_address(mine, address);
        mine.address_refused = false;
        for (const Database& other : state->databases)
            if (other.oid != InvalidOid && other.oid != mine.oid && other.receivers_wanted > 0 &&
                is_address(other, address))
                mine.address_refused = true;
        if (mine.address_refused) claim = known ? Claim::known : Claim::refused;
        strlcpy(mine.address, address, sizeof mine.address);
    });
    return claim;
}

void set_demand(bool sender, int receivers) {
    bool changed = false;
    with_own([&](Database& database) {
        changed = database.sender_not_needed == sender || database.receivers_wanted != receivers;
        database.sender_not_needed = !sender;
        database.receivers_wanted = receivers;
    });
    if (changed) wake(state->launcher);
}

void set_shortage(bool shortage) {
    if (state) state->shortage = shortage;
}

void set_listen_error(const char* error) {
    with_own(
        [&](Database& database) { strlcpy(database.listen_error, error, sizeof database.listen_error); });
}

ServiceView view_service() {
    ServiceView view;
    view.shortage = state && state->shortage;
    with_own(
        [&](Database& database) {
            view.sender_runs = database.sender.pid != 0;
            for (const Worker& receiver : database.receivers) view.receiver_runs |= receiver.pid != 0;
            view.address_refused = database.address_refused;
            strlcpy(view.listen_error, database.listen_error, sizeof view.listen_error);
        },
        false);
    return view;
}

int active_log_table() {
    int table = -1;
    with_own([&](Database& database) { table = database.active_log_table - 1; }, false);
    return table;
}

void set_active_log_table(int table) {
    with_own([&](Database& database) { database.active_log_table = table + 1; });
}

bool capture_stopped() {
    bool stopped = false;
    with_own([&](Database& database) { stopped = database.capture_stopped; }, false);
    return stopped;
}

void set_capture_stopped(bool stopped) {
    with_own([&](Database& database) { database.capture_stopped = stopped; });
}

void* link_memory(int link, bool make) {
    if (!state) return nullptr;
    LinkKey* found = nullptr;
    LinkKey* unused = nullptr;
    SpinLockAcquire(&state->mutex);
    for (LinkKey& each : state->links) {
        if (each.database == MyDatabaseId && each.link == link) found = &each;
        if (each.database == InvalidOid && !unused) unused = &each;
        if (found) break;
    }
    if (!found && unused && make) {
        found = unused;
        *found = {MyDatabaseId, link};
        memset(&state->link_memory[found - state->links], 0, sizeof(LinkMemory));
    }
    SpinLockRelease(&state->mutex);
    return found ? &state->link_memory[found - state->links] : nullptr;
}

namespace {

/// Sends SIGTERM to the workers of a suspended database; how many are left.
int terminate_workers(Oid oid) {
    int left = 0;
    SpinLockAcquire(&state->mutex);
    if (Database* database = find(oid, true)) {
        database->suspended_until = GetCurrentTimestamp() + INT64CONST(60) * USECS_PER_SEC;
        auto stop = [&](const Worker& worker) {
            if (worker.pid == 0) return;
            left++;
            kill(worker.pid, SIGTERM);
        };
        stop(database->sender);
        for (const Worker& worker : database->receivers) stop(worker);
    }
    SpinLockRelease(&state->mutex);
    return left;
}

}  // namespace

void suspend_database(Oid oid) {
    if (!state) return;
    for (int tries = 0; terminate_workers(oid) > 0 && tries < 500; tries++) {
        (void)WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH, 20, PG_WAIT_EXTENSION);
        ResetLatch(MyLatch);
        CHECK_FOR_INTERRUPTS();
    }
}

void resume_database(Oid oid) {
    if (!state) return;
    SpinLockAcquire(&state->mutex);
    if (Database* database = find(oid, false)) abandon(*database);
    SpinLockRelease(&state->mutex);
    wake(state->launcher);
}

void keep_only(const std::vector<Oid>& databases) {
    SpinLockAcquire(&state->mutex);
    for (Database& database : state->databases)
        if (std::find(databases.begin(), databases.end(), database.oid) == databases.end())
            database.receivers_wanted = 0;
    SpinLockRelease(&state->mutex);
}

DatabaseView view_database(Oid oid) {
    DatabaseView view;
    SpinLockAcquire(&state->mutex);
    if (const Database* database = find(oid, false)) {
        view.sender_runs = database->sender.pid != 0;
        view.sender_needed = !database->sender_not_needed;
        view.receivers_wanted = database->receivers_wanted;
        for (int i = 0; i < max_receivers; i++) view.receiver_runs[i] = database->receivers[i].pid != 0;
        view.suspended = database->suspended_until > GetCurrentTimestamp();
    }
    SpinLockRelease(&state->mutex);
    return view;
}

}  // namespace onerepl::shared
