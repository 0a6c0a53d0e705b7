// Transactions and subtransactions of a worker.
#pragma once

#include "pg/error_boundary.h"

#include <cstdint>
#include <functional>

namespace onerepl::pg {

/// Runs `work` in a transaction of its own with an active snapshot and SPI connected, and commits. On an
/// exception the transaction is aborted and the exception goes on. `one_snapshot` = true: REPEATABLE
/// READ, so that every query of `work` sees the same snapshot. `before_snapshot` runs before it is taken, for
/// locks that must be older. For background workers only.
void in_transaction(const std::function<void()>& work, bool one_snapshot = false,
                    const std::function<void()>& before_snapshot = {});

/// Runs `work` in a subtransaction; on an exception it is rolled back and the exception goes on. SPI stays
/// usable.
void in_subtransaction(const std::function<void()>& work);

/// The same, but rolled back in the end also when `work` succeeds.
void in_aborted_subtransaction(const std::function<void()>& work);

/// Runs `work` when the current in_transaction has committed, and never if it fails: memory learns nothing
/// that the database does not have (P20). `work` must not fail.
void on_commit(std::function<void()> work);

/// The current transaction's commit does not wait for the disk.
void commit_without_wait();

/// Waits until all that this process has committed is on disk (and at the synchronous standbys, if there are
/// any). Outside of a transaction. Ends in a PANIC if the disk fails, like any commit.
void wait_for_commits() noexcept;

/// Where the last commit of this process ends in the WAL; 0: there was none.
std::uint64_t last_commit();
/// As wait_for_commits, for what was committed up to `end`.
void wait_for_commit(std::uint64_t end) noexcept;

}  // namespace onerepl::pg
