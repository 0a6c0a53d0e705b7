// P4: the order in which the records of one transaction took effect, when statements were nested and log
// order is not it. Plain C++: records are abstract, so that it is tested without a server. order.cpp says how
// and why.
#pragma once

#include "core/types.h"

namespace onerepl {

/// For records of statements that have no command id of their own (TRUNCATE, a description).
constexpr std::uint32_t no_command = UINT32_MAX;

/// One record as ordering sees it, in log order. 20 bytes, because a transaction may have millions.
struct OrderRecord {
    /// Any number that names the table.
    std::uint32_t relation : 31 = 0;
    /// Nothing of the same table passes it (TRUNCATE, a new description, a new file), and row versions on
    /// both sides have nothing to do with each other.
    std::uint32_t barrier : 1 = 0;
    /// Command id of the statement that made the change: the same for all its rows, larger for later and
    /// nested ones.
    std::uint32_t command = no_command;
    /// Row versions (ctid) that the change consumed (update, delete) and made (insert, update). Offset 0:
    /// none.
    std::uint32_t old_block = 0;
    std::uint32_t new_block = 0;
    std::uint16_t old_offset = 0;
    std::uint16_t new_offset = 0;
};
static_assert(sizeof(OrderRecord) == 20);

/// A unique value that a record gives up or takes: an update that changes one does both.
struct UniqueValue {
    /// Of table, unique constraint and value. Equal hashes of different values cost order, not truth.
    std::uint64_t hash = 0;
    std::uint32_t record = 0;  // index in log order
    bool taken = false;        // false: given up
};

struct RecordOrder {
    /// Indexes in log order, in the order in which the records are to be sent.
    std::vector<std::uint32_t> order;
    /// What is known of unique values could not all be kept: a constraint that is checked late, or hashes
    /// that clash.
    bool clash = false;
};

/// The order of `records` (fewer than 2^32 - 1). Needs about 20 bytes a record more, and 50 a unique value.
RecordOrder order_records(std::span<const OrderRecord> records, std::vector<UniqueValue> values);

}  // namespace onerepl
