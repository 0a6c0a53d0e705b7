// Transactions of workers and subtransactions, with abort on an exception.
#include "pg/transaction.h"

extern "C" {
#include "executor/spi.h"
#include "access/xlog.h"
#include "pgstat.h"
#include "replication/syncrep.h"
#include "utils/guc.h"
#include "utils/resowner.h"
#include "utils/snapmgr.h"
}

#include <utility>
#include <vector>

namespace onerepl::pg {

namespace {

/// Leaves no trace of a transaction that failed. Must not itself fail; if PostgreSQL thinks otherwise, the
/// worker ends.
void abort_transaction() {
    call([] {
        HOLD_INTERRUPTS();
        AbortOutOfAnyTransaction();
        RESUME_INTERRUPTS();
    });
}

std::vector<std::function<void()>> at_commit;

enum class End { commit, roll_back };

void subtransaction(const std::function<void()>& work, End end) {
    const MemoryContext memory = CurrentMemoryContext;
    const ResourceOwner owner = CurrentResourceOwner;
    call([&] {
        BeginInternalSubTransaction(nullptr);
        MemoryContextSwitchTo(memory);
    });
    auto roll_back = [&] {
        call([&] {
            RollbackAndReleaseCurrentSubTransaction();
            MemoryContextSwitchTo(memory);
            CurrentResourceOwner = owner;
        });
    };
    try {
        work();
    } catch (...) {
        roll_back();
        throw;
    }
    if (end == End::roll_back) return roll_back();
    call([&] {
        ReleaseCurrentSubTransaction();
        MemoryContextSwitchTo(memory);
        CurrentResourceOwner = owner;
    });
}

}  // namespace

void in_transaction(const std::function<void()>& work, bool one_snapshot,
                    const std::function<void()>& before_snapshot) {
    const MemoryContext memory = CurrentMemoryContext;
    at_commit.clear();
    try {
        call([&] {
            SetCurrentStatementStartTimestamp();
            StartTransactionCommand();
            // Not what default_transaction_isolation and default_transaction_read_only of the database say.
            XactIsoLevel = one_snapshot ? XACT_REPEATABLE_READ : XACT_READ_COMMITTED;
            XactReadOnly = false;
        });
        if (before_snapshot) before_snapshot();
        call([&] {
            SPI_connect();
            PushActiveSnapshot(GetTransactionSnapshot());
        });
        work();
        call([&] {
            SPI_finish();
            PopActiveSnapshot();
            CommitTransactionCommand();
            MemoryContextSwitchTo(memory);
            pgstat_report_stat(false);
        });
    } catch (...) {
        abort_transaction();
        MemoryContextSwitchTo(memory);
        throw;
    }
    for (const auto& each : std::exchange(at_commit, {})) each();
}

void on_commit(std::function<void()> work) {
    at_commit.push_back(std::move(work));
}

void commit_without_wait() {
    call([] {
        set_config_option("synchronous_commit", "off", PGC_SUSET, PGC_S_SESSION, GUC_ACTION_LOCAL, true, 0,
                          false);
    });
}

void wait_for_commits() noexcept {
    wait_for_commit(last_commit());
}

std::uint64_t last_commit() {
    return XactLastCommitEnd;
}

void wait_for_commit(std::uint64_t end) noexcept {
    if (XLogRecPtrIsInvalid(end)) return;
    HOLD_INTERRUPTS();
    XLogFlush(end);
    SyncRepWaitForLSN(end, true);
    RESUME_INTERRUPTS();
}

void in_subtransaction(const std::function<void()>& work) {
    subtransaction(work, End::commit);
}

void in_aborted_subtransaction(const std::function<void()>& work) {
    subtransaction(work, End::roll_back);
}

}  // namespace onerepl::pg
