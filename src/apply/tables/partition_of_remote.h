// What a TRUNCATE of one of the remote's partitions means here: the partition was truncated, detached or
// dropped there.
#pragma once

#include "pg/pg.h"

#include <optional>
#include <string>
#include <vector>

namespace onerepl::apply {

/// A partition of the remote's table, in our encoding.
struct PartitionOfRemote {
    std::string schema;
    std::string name;
    std::string condition;  // what its rows fulfil; empty: nothing
};

/// Our partition of `root` that holds the same rows: of the same name and condition.
std::optional<Oid> same_partition(Oid root, const PartitionOfRemote& partition);

/// Deletes the rows that the remote's partition held from `parts` of the table. Only conditions that are made
/// of comparisons with constants are used here; 0A000 for others, with the statement for the administrator.
/// In a transaction with SPI connected; no table is open.
void delete_rows_of(Oid root, const std::vector<Oid>& parts, const PartitionOfRemote& partition);

}  // namespace onerepl::apply
