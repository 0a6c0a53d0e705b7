// TRUNCATE of several tables in one statement, as the remote did it.
#pragma once

#include "pg/pg.h"

#include <vector>

namespace onerepl::apply {

/// Truncates `relations` together, without CASCADE: what the remote's statement cascaded to has records of
/// its own. Runs with the rights of the tables' owner. In a transaction with SPI connected; no table is open.
void truncate_tables(const std::vector<Oid>& relations, bool restart_identity);

}  // namespace onerepl::apply
