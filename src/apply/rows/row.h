// Applying one row record to its target. Plain (table.h).
#pragma once

#include "apply/rows/target.h"

namespace onerepl::apply {

/// Writes an insert, update or delete. batch.n and batch.overwrite are set; the target is matched. An
/// error carries a context line that names number, table and column.
void write_row(Batch& batch, Target& target, const Record& record);

/// Writes an update that has waited; batch.n is its number.
void write_pending_update(Batch& batch, Target& target, Table* table, const PendingUpdate& update);

}  // namespace onerepl::apply
