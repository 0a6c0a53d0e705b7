// The condition that the rows of a partition fulfil, as text that can be compared between databases.
#pragma once

#include "pg/pg.h"

namespace onerepl::pg {

/// SQL over the columns' names, palloc'd; "" if the rows need not fulfil any. The same for partitions of the
/// same bounds in any database. May ereport.
const char* partition_condition(Oid relation);

}  // namespace onerepl::pg
