// Whether all links have confirmed a transaction's records.
#pragma once

#include "pg/pg.h"

extern "C" {
#include "access/transam.h"
}

namespace onerepl::capture {

/// True if every link to a central has confirmed all records of `xid`, as far as is committed at this moment;
/// also if there is no link. May ereport.
bool is_confirmed_by_all(FullTransactionId xid);

}  // namespace onerepl::capture
