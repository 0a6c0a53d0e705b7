// The packs of one transaction, in order, from a log table.
#pragma once

#include "pg/pg.h"

extern "C" {
#include "access/genam.h"
#include "utils/rel.h"
}

#include "core/types.h"
#include "log/batch.h"

#include <array>

namespace onerepl::log {

/// The log tables and their indexes, opened when first used, closed together. In a transaction; on an error
/// path the abort closes them.
class LogTables {
  public:
    struct Opened {
        Relation table = nullptr;
        Relation index = nullptr;  // opened when it is needed: most of the tables are empty
    };
    const Opened& open(std::uint32_t table);
    /// No snapshot taken before this call sees a row in it.
    bool is_empty(std::uint32_t table);
    void close();

  private:
    Opened& open_table(std::uint32_t table);

    std::array<Opened, log_table_limit> opened_{};
};

/// A forward scan. `next` moves to the first pack first. Without `close` the abort of the transaction has to
/// end it.
class PackScan {
  public:
    /// The packs of `xid` with seq >= from_seq that the active snapshot sees.
    PackScan(LogTables& tables, std::uint32_t table, std::uint64_t xid, std::int32_t from_seq);

    /// False at the end.
    bool next();
    void close();

    std::int32_t seq() const { return seq_; }
    bool is_last() const { return last_; }
    /// Of the last pack: the records of the whole transaction; else of this one.
    std::uint64_t count() const { return count_; }
    /// The pack's bytes, in CurrentMemoryContext or in the scan's buffer: valid until the next call of
    /// `next`.
    ByteView data() const;

  private:
    Relation table_;
    SysScanDesc scan_;
    std::int32_t seq_ = 0;
    bool last_ = false;
    std::uint64_t count_ = 0;
    Datum data_ = 0;
};

/// The last packs of the transactions with xids from `first` below `end` that the active snapshot sees, in
/// the order of their xids. As PackScan.
class LastPackScan {
  public:
    LastPackScan(LogTables& tables, std::uint32_t table, std::uint64_t first, std::uint64_t end);

    bool next();
    void close();

    /// The transaction at hand; its first number is not set.
    const NumberedTransaction& transaction() const { return transaction_; }
    std::uint64_t commit_lsn() const { return commit_lsn_; }

  private:
    Relation table_;
    SysScanDesc scan_;
    NumberedTransaction transaction_;
    std::uint64_t commit_lsn_ = 0;
};

}  // namespace onerepl::log
