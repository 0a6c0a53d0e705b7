// Emptying a log table.
#pragma once

#include "pg/pg.h"

namespace onerepl::log {

/// TRUNCATE of a table that the transaction has locked ACCESS EXCLUSIVE, but unseen by logical decoding: a
/// subscriber of a FOR ALL TABLES publication never got the rows and shall not hear of this either. Throws
/// pg::Error.
void truncate_unlogged_by_decoding(Oid table);

}  // namespace onerepl::log
