// What a refresh removes: rows in a chunk's range of keys.
#pragma once

#include "apply/rows/relation_map.h"

namespace onerepl::apply {

/// `parts`: where rows are to be removed, the whole table or partitions of it (foreign.h).

/// All rows of the chunk are in the table already, written and visible; no table is open. With SPI connected,
/// with the rights of the table's owner. Throws pg::Error: 0A000 if this table's key has another order than
/// the remote's.
void remove_extra_rows(const RelationMap& target, const Record& record, const std::vector<Oid>& parts);

/// Deletes all rows in the chunk's range of keys, which its rows will replace. False: nothing was done, since
/// the range may mean something else here (strings under another collation). Otherwise as above.
bool clear_range(const RelationMap& target, const Record& record, const std::vector<Oid>& parts);

}  // namespace onerepl::apply
