// The transactions of a batch of numbers, as onerepl.batch.transactions holds them. No PostgreSQL in it.
//
// Encoding: u8 version (1); u8 bit mask of the log tables that the transactions are in; then for each
// transaction, in order, three varints (LEB128): the difference of its xid to the one before it (zigzag, the
// first to 0), the count of its records, flags * log_table_limit + log table.
#pragma once

#include "core/ranges.h"

#include <optional>
#include <span>

namespace onerepl::log {

/// Log tables are numbered below this.
constexpr std::uint32_t log_table_limit = 8;

/// A batch row holds no more transactions than this.
constexpr std::size_t batch_transaction_limit = 5000;

/// A transaction of A whose records have numbers (P4: they are neighbours).
struct NumberedTransaction {
    std::uint64_t xid = 0;
    Number first = 0;
    std::uint64_t count = 0;  // at least 1
    std::uint32_t flags = 0;  // of its last pack (log/pack.h)
    std::uint32_t table = 0;  // log table that holds its packs

    Number last() const { return first + count - 1; }
    bool operator==(const NumberedTransaction&) const = default;
};

/// `first` of the transactions is not stored: they follow each other without a gap from the batch's first
/// number.
Bytes encode_transactions(std::span<const NumberedTransaction> transactions);

/// nullopt: not an encoding of ours, or a sum of counts that leaves the numbers.
std::optional<std::vector<NumberedTransaction>> decode_transactions(ByteView in, Number batch_first);

/// Index of the transaction that holds `n`; transactions.size() if none does.
std::size_t find_transaction(std::span<const NumberedTransaction> transactions, Number n);

}  // namespace onerepl::log
