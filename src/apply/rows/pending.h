// Updates by the key that wait, to be written in the order of their keys. Plain (table.h).
#pragma once

#include "apply/rows/table.h"

namespace onerepl::apply {

/// Whether updates of `target` that do not change the key may wait: then nothing tells in which order they
/// are written.
bool may_wait(ApplyTransaction& xact, Table* table, RelationMap& target);
/// Adds a copy of an update. Whatever touches the table next flushes it, but for inserts and further updates
/// like it.
void add_pending(ApplyTransaction& xact, Table* table, const PendingUpdate& update);
/// Writes them; for `flush`.
void write_pending(ApplyTransaction& xact, Table* table);

}  // namespace onerepl::apply
