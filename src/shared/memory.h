// What the processes of one server share about each database: who is to be woken, and which log table is
// written to. Hints only: everything that matters is in tables (nothing here survives a restart).
#pragma once

#include "pg/pg.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace onerepl::shared {

constexpr int max_databases = 128;
constexpr int max_receivers = 16;
constexpr int max_links = 512;
constexpr std::size_t link_memory_size = 2048;

enum class WorkerKind : std::uint8_t { sender, receiver };

/// Requests shared memory; from _PG_init when preloaded.
void install();
/// False when the library was not in shared_preload_libraries.
bool available();

/// Wake the sender, the receivers of the current database, or the launcher. Inside a transaction: when it has
/// committed. Safe in a transaction callback: they never fail and never wait.
void wake_sender();
void wake_receivers();
void wake_launcher();

/// Like waking, when an administrator (or another process of onerepl) has changed something that the sender,
/// or the receivers, keep in memory: links, blocked records, refreshes, failures, the queue.
void invalidate_sender();
void invalidate_receivers();
/// Another number than last time: look into the tables again.
std::uint32_t sender_generation();
std::uint32_t receiver_generation();

/// The sender says that it looks at the log by itself before long (true) or when it is woken (false):
/// commits do not wake a resting one.
void set_sender_resting(bool resting);

/// A worker takes its place. False: another process has it; then the caller ends. index: of the receiver,
/// from 0. The place is given up when the process ends.
bool register_worker(WorkerKind kind, int index);
/// The launcher makes itself known to wake_launcher.
void register_launcher();

/// What a sender found in its database when it started, for the launcher: how many receivers to run, and
/// whether a sender is needed.
void set_demand(bool sender, int receivers);
/// This database's receivers are to listen at `address`.
enum class Claim : std::uint8_t {
    granted,
    refused,  // those of another database do
    known,    // as refused, and as the last time this database asked
};
Claim claim_address(const char* address);

/// The launcher found no place for a worker that is needed, or found one again.
void set_shortage(bool shortage);
/// Why a receiver of this database cannot open its port; empty: it can.
void set_listen_error(const char* error);
constexpr std::size_t listen_error_size = 256;

/// What keeps the current database's workers from working, as far as the processes have told.
struct ServiceView {
    bool sender_runs = false;
    bool receiver_runs = false;
    bool shortage = false;
    bool address_refused = false;
    char listen_error[listen_error_size] = {};
};
ServiceView view_service();

/// The log table that capture writes to, and whether capture is stopped at the log's limit.
/// -1: not known since the server's start (the sender has not yet read onerepl.log_state).
int active_log_table();
void set_active_log_table(int table);
bool capture_stopped();
void set_capture_stopped(bool stopped);

/// Memory of a link of the current database that its receivers share, link_memory_size bytes, zero at first.
/// Whoever holds the link's lock may use it. Null when max_links are in use, or it is not there and not to be
/// made.
void* link_memory(int link, bool make = true);

/// DROP DATABASE and its like: the workers of `database` end and are not started again before
/// resume_database, or before a minute has passed. Waits until they are gone, at most 10 s. May ereport.
void suspend_database(Oid database);
/// Workers that have outlived that wait keep their places until they end: there is never a second one.
void resume_database(Oid database);

/// For the launcher: a database as it stands.
struct DatabaseView {
    bool sender_runs = false;
    bool sender_needed = true;
    int receivers_wanted = 0;
    bool receiver_runs[max_receivers] = {};
    bool suspended = false;
};
DatabaseView view_database(Oid database);
/// No receivers are wanted for other databases than these: the addresses of those that left
/// onerepl.databases are free. For the launcher.
void keep_only(const std::vector<Oid>& databases);

}  // namespace onerepl::shared
