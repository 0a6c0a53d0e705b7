// What all background workers share: start and end, waiting, and running a turn that may fail.
#pragma once

#include "core/types.h"
#include "pg/error_boundary.h"

extern "C" {
#include "postmaster/bgworker.h"
#include "storage/latch.h"
}

#include <functional>
#include <string>
#include <vector>

namespace onerepl::worker {

/// What the launcher tells a worker, in bgw_extra.
struct Assignment {
    int index;                   // of the receiver, from 0; -1: a sender
    char database[NAMEDATALEN];  // its name; nobody renames it while a worker is connected
};
static_assert(sizeof(Assignment) <= BGW_EXTRALEN);

/// Connects the worker to no database, or to `database` as the bootstrap superuser, installs signal handlers
/// (SIGTERM ends it at the next check for interrupts, SIGHUP reloads the settings) and names it in
/// pg_stat_activity.
void start();
Assignment start(Oid database);

/// Waits until the latch is set (somebody called a wake function), `socket` (or PGINVALID_SOCKET) is
/// readable, or `timeout` (microseconds; negative: none) has passed. Handles interrupts, reload and the
/// postmaster's death. No transaction may be open.
class Waiter {
  public:
    explicit Waiter(pgsocket socket);
    void wait(Time timeout);
    /// True if the last wait was ended by the latch.
    bool woken() const { return woken_; }

  private:
    WaitEventSet* events_;
    bool woken_ = false;
};

/// What made a turn fail.
struct Fault {
    std::string what;
    bool transient = false;  // it may pass by itself
    std::string sqlstate = "XX000";
};

/// Runs `turn`. On an error the transaction is aborted, the error goes to the server log, and false comes
/// back; the caller waits a little before the next turn (P22). `fault`: becomes what the error says.
bool attempt(const std::function<void()>& turn, Fault* fault = nullptr);

/// The names in onerepl.databases.
std::vector<std::string> listed_databases();

/// True if the extension is installed in this database. In a transaction.
bool extension_exists();

/// Ends the worker without an error; the launcher looks again later.
[[noreturn]] void finish();

}  // namespace onerepl::worker
