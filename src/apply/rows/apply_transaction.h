// What one B transaction has open: tables are opened and closed here. Plain (table.h).
#pragma once

#include "apply/rows/table.h"

namespace onerepl::apply {

/// In a fresh transaction of the worker's own user: nothing is open.
void begin_apply(ApplyTransaction& xact, int link);
/// After an abort of the transaction: nothing is open any more.
void forget_apply(ApplyTransaction& xact);
/// After the rollback of a subtransaction in which everything open was opened.
void forget_tables(ApplyTransaction& xact);
/// 42809 if it is neither a table nor a partitioned table.
void check_is_table(Relation relation);
/// Opens `relation` for writing. 42809 if it is no table and no foreign partition.
Table* open_table(ApplyTransaction& xact, Oid relation);
/// Takes the rights of the table's owner, for all that may run his code (P19); `pg::return_from` gives them
/// back.
pg::Rights become_owner(const Table* table);
/// Writes what is buffered and closes every table.
void close_tables(ApplyTransaction& xact);
/// Makes what was written visible to the following commands.
void count_command(ApplyTransaction& xact);

}  // namespace onerepl::apply
