// Rows of partitioned tables. Plain (table.h).
#pragma once

#include "apply/rows/table.h"

namespace onerepl::apply {

/// The partition of `root` that takes the row in `slot` (root's layout), and with has_foreign has it in
/// `fresh`. 23514 if there is none.
Table* route_row(ApplyTransaction& xact, Table* root, TupleTableSlot* slot);
/// Whether the columns alone say which partition takes a row. False if its partitions are partitioned
/// themselves, unless it has foreign ones.
bool is_routed_by(ApplyTransaction& xact, Table* root, int count, const AttrNumber* columns);
/// Puts a row of the root into the partition's `fresh` slot, in its layout.
void to_partition(Table* partition, TupleTableSlot* slot);
/// The root's layout of the row in partition->found, in root's `found`.
void to_root(Table* partition, Table* root);
/// The columns of `root` that decide which partition takes a row; for tables with has_foreign.
const Bitmapset* routing_columns(ApplyTransaction& xact, Table* root);
/// Finds a row of a partitioned table as `find_row`; gives the partition whose `found` it is, or null.
/// Partitions on servers that have the record already are not looked at.
Table* find_partitioned(ApplyTransaction& xact, Table* root, int count, const AttrNumber* columns,
                        const Datum* values, const bool* nulls, bool by_image, Table* likely);
/// The same in one partition.
bool find_in_partition(ApplyTransaction& xact, Table* partition, int count, const AttrNumber* columns,
                       const Datum* values, const bool* nulls, bool by_image);
/// Whether the row that was not found may be on a server that has the record already.
bool may_be_left_out(ApplyTransaction& xact, Table* root, int count, const AttrNumber* columns,
                     Table* likely);

}  // namespace onerepl::apply
