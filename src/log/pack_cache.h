// Packs of a transaction that is read out of log order, taken apart and kept for a while.
#pragma once

#include "log/pack.h"
#include "log/pack_scan.h"

#include <list>

namespace onerepl::log {

class PackCache {
  public:
    /// The records of a pack of the transaction. Valid until the next call. Throws pg::Error if it is not
    /// there.
    const std::vector<PackedRecord>& records(LogTables& tables, const NumberedTransaction& transaction,
                                             std::int32_t seq);
    /// Gives back what is over the limit: a pack with a huge row.
    void trim();

  private:
    struct Entry {
        std::uint64_t xid = 0;
        std::int32_t seq = 0;
        Bytes data;
        std::vector<PackedRecord> records;  // point into data
        std::size_t size() const { return data.size() + records.size() * sizeof(PackedRecord); }
    };

    Entry load(LogTables& tables, const NumberedTransaction& transaction, std::int32_t seq);

    std::list<Entry> entries_;  // most recently used first
    std::size_t size_ = 0;
};

}  // namespace onerepl::log
