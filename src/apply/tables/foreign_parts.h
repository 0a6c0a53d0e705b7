// What of a table is on which server, for C++.
#pragma once

#include "apply/rows/foreign.h"

#include <vector>

namespace onerepl::apply {

/// `parts_to_write`. Throws pg::Error.
std::vector<Oid> parts_of(ApplyTransaction& xact, Oid relation);

/// Whether a server that has partitions of `relation` has the record at hand already. Throws pg::Error.
bool is_ahead(ApplyTransaction& xact, Oid relation);

}  // namespace onerepl::apply
