// Finding rows. Plain (table.h).
#pragma once

#include "apply/rows/table.h"

namespace onerepl::apply {

/// The index by which rows with these `columns` are found; null: none.
Relation index_for(Table* table, int count, const AttrNumber* columns);

/// Finds the row whose `columns` equal `values` (nulls equal nulls) and leaves it in table->found.
/// `by_image`: columns make up the whole row; among equal rows one with the same bytes is preferred. What is
/// buffered is flushed before.
bool find_row(ApplyTransaction& xact, Table* table, int count, const AttrNumber* columns, const Datum* values,
              const bool* nulls, bool by_image);
/// 0: written before this transaction; else its command's number and one.
std::uint64_t age_of(TupleTableSlot* slot);
/// Closes the search's index scan.
void end_search(Table* table);

}  // namespace onerepl::apply
