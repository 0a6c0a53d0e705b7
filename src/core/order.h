// P4: the order in which the records of one transaction took effect, when statements were nested and log
// order is not it. Plain C++: records are abstract, so that it is tested without a server. See order.cpp for
// how.
#pragma once

#include "core/types.h"

namespace onerepl {

/// A row's physical place (block << 16 | offset); 0: none. One place is used once in a transaction per
/// relation unless the relation was truncated between.
using TupleVersion = std::uint64_t;

/// One record as ordering sees it, in log order. 32 bytes.
struct OrderRecord {
    std::uint32_t relation = 0;    // any number that names the table
    std::uint32_t command = 0;     // command id of the statement that made the change
    TupleVersion old_version = 0;  // update, delete: what the change consumed
    TupleVersion new_version = 0;  // insert, update: what it made
    bool barrier = false;          // nothing passes it: TRUNCATE, a new table description
};

/// A unique value that a record gives up or takes: an update that changes the key does both.
struct UniqueValue {
    std::uint32_t record = 0;  // index in log order
    bool taken = false;        // false: given up
    std::uint64_t hash =
        0;  // of relation, unique constraint and value; a clash of hashes costs order, not truth
};

struct OrderResult {
    /// Indexes in log order, in the order in which the records are to be sent.
    std::vector<std::uint32_t> order;
    /// A clash of unique values remains that no order of these records avoids (see order.cpp).
    bool clash = false;
};

/// `values` ordered by record. Throws std::bad_alloc only.
OrderResult order_records(std::span<const OrderRecord> records, std::span<const UniqueValue> values);

}  // namespace onerepl
