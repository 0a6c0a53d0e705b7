// Rows that go by the table: TRUNCATE of several in one statement, as the remote did it, or DELETE.
#pragma once

#include "pg/pg.h"

#include "pg/spi.h"

#include <vector>

namespace onerepl::apply {

/// Truncates `relations` together, without CASCADE: what the remote's statement cascaded to has records of
/// its own. Runs with the rights of the tables' owner. In a transaction with SPI connected; no table is open.
void truncate_tables(const std::vector<Oid>& relations, bool restart_identity);

/// Deletes the rows of the table `t` that fulfil the condition (SQL; empty: all), because TRUNCATE cannot.
/// The rest as above. 27000 if a trigger keeps any of them.
void delete_rows(Oid relation, const std::string& condition, const std::vector<pg::Param>& parameters = {});

}  // namespace onerepl::apply
