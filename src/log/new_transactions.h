// The captured transactions that one snapshot sees and another did not, in the order of their places.
#pragma once

#include "pg/pg.h"

extern "C" {
#include "utils/portal.h"
}

#include "log/batch.h"

namespace onerepl::log {

/// Which transactions are looked for: xids from `first` below `end`, and `others`.
struct NewXids {
    std::uint64_t first = 0;
    std::uint64_t end = 0;
    std::vector<std::uint64_t> others;
};

/// Hands them out in batches of at most batch_transaction_limit: bounded memory however many there are. A few
/// are found by the log tables' indexes and sorted here; many by a query, whose sort may go to disk. In a
/// transaction with SPI connected; they are what the active snapshot sees.
class NewTransactions {
  public:
    explicit NewTransactions(const NewXids& xids);

    /// Replaces `batch`; empty at the end. The numbers begin after `last`.
    void next(Number last, std::vector<NumberedTransaction>& batch);
    void close();

  private:
    struct Found {
        std::uint64_t commit_lsn = 0;
        NumberedTransaction transaction;
    };
    void find(const NewXids& xids);

    std::vector<Found> found_;
    Portal portal_ = nullptr;  // null: all is in `found_`
};

}  // namespace onerepl::log
