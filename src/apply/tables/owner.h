// SQL on one of B's tables with the rights of its owner, whose code it may run (P19). In a transaction with
// SPI connected.
#pragma once

#include "pg/pg.h"
#include "pg/spi.h"

#include <optional>
#include <string>
#include <vector>

namespace onerepl::apply {

/// "ONLY schema.table", or without ONLY for a partitioned table.
std::string table_expression(Oid relation);

Oid owner_of_table(Oid relation);

/// Runs a query: `pg::query_int8`.
std::optional<std::int64_t> query_as_owner(Oid relation, const std::string& sql,
                                           const std::vector<pg::Param>& parameters = {});

}  // namespace onerepl::apply
