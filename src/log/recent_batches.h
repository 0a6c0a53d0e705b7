// The newest batches, kept by the process that numbers: nearly all that is sent, confirmed or looked up is in
// them. A cache of rows of onerepl.batch, which never change.
#pragma once

#include "core/history.h"
#include "log/batch.h"

#include <deque>

namespace onerepl::log {

class RecentBatches {
  public:
    struct Entry {
        Batch batch;
        Bytes transactions;        // encoded, as in the table
        std::int64_t made_at = 0;  // TimestampTz
    };

    /// A batch that is committed; it follows the one added before.
    void add(Entry entry);
    void clear();
    /// The one that holds `n`; null if it is not kept here.
    const Entry* find(Number n) const;
    /// From `entry` on, in order: null after the newest.
    const Entry* next(const Entry* entry) const;

  private:
    std::deque<Entry> entries_;
    std::size_t bytes_ = 0;
};

/// Those of this process. Empty in all processes but the sender.
RecentBatches& recent_batches();

}  // namespace onerepl::log
