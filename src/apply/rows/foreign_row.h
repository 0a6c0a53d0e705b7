// As find_row, insert_row, update_row and delete_row, for a foreign partition. Plain (table.h).
#pragma once

#include "apply/rows/table.h"

namespace onerepl::apply {

bool find_foreign(ApplyTransaction& xact, Table* table, int count, const AttrNumber* columns,
                  const Datum* values, const bool* nulls, bool by_image);
/// How many rows the last search has found.
std::uint64_t rows_found(const Table* table);
void insert_foreign(ApplyTransaction& xact, Table* table);
void update_foreign(ApplyTransaction& xact, Table* table);
void delete_foreign(ApplyTransaction& xact, Table* table);
void close_foreign(Table* table);

}  // namespace onerepl::apply
