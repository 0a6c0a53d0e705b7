// Applying one row record to its target. Plain (table.h).
#pragma once

#include "apply/rows/relation_map.h"

namespace onerepl::apply {

/// Writes an insert, update or delete. xact.n and xact.incoming_wins are set; the target is matched. An
/// error carries a context line that names number, table and column.
void write_row(ApplyTransaction& xact, RelationMap& target, const Record& record);

/// Writes an update that has waited; xact.n is its number.
void write_pending_update(ApplyTransaction& xact, RelationMap& target, Table* table,
                          const PendingUpdate& update);

}  // namespace onerepl::apply
