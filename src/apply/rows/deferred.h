// Deferrable constraints, checked when the transaction ends. Plain (table.h).
#pragma once

#include "apply/rows/table.h"

namespace onerepl::apply {

void defer_check(ApplyTransaction& xact, Table* table, List* indexes, ItemPointer tid, Number n);
/// Notes every deferrable index of the table.
void defer_all_checks(ApplyTransaction& xact, Table* table, ItemPointer tid, Number n);
/// Makes the check number `i`; a violation is an error. Everything must be flushed.
void run_check(ApplyTransaction& xact, std::size_t i);
/// Flushes, makes all checks and forgets them. An error leaves xact.n at the record that violates.
void run_checks(ApplyTransaction& xact);

}  // namespace onerepl::apply
