// Applying one row record to its target.
#pragma once

#include "apply/target.h"

namespace onerepl::apply {

/// Plain: writes an insert, update or delete. batch.n and batch.overwrite are set; the target is matched. An
/// error carries a context line that names number, table and column.
void write_row(Batch& batch, Target& target, const Record& record);

}  // namespace onerepl::apply
