// "Incoming row wins": what is in its way goes. Plain (table.h).
#pragma once

#include "apply/rows/table.h"

namespace onerepl::apply {

/// Deletes all rows but `self` (may be null) that clash with the row in `slot` in any unique index or
/// exclusion constraint that is checked at once; or only in `only_index`, whatever it is. 23505 if one is
/// another remote's (xact.branch_column). Changes table->best, not table->found.
void remove_conflicts(ApplyTransaction& xact, Table* table, TupleTableSlot* slot, const ItemPointerData* self,
                      Oid only_index);

}  // namespace onerepl::apply
