// Which tables have a row filter on a link: their changes are captured with the whole rows.
#pragma once

#include "pg/pg.h"

namespace onerepl::capture {

/// Plain; may ereport.
bool has_row_filter(Oid relation);

}  // namespace onerepl::capture
