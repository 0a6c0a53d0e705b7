// The lock rule of the state table (P6) for tables that ask for it.
#pragma once

#include "pg/pg.h"

namespace onerepl::capture {

/// Whether onerepl.tracked asks for the rule for this table. Whoever changes that invalidates the table's
/// relcache entry. May ereport.
bool is_lock_pending(Oid relation);

}  // namespace onerepl::capture
