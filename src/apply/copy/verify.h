// Comparing a chunk's digest with this table's rows, at the chunk's exact place in the order of changes.
#pragma once

#include "apply/rows/relation_map.h"

namespace onerepl::apply {

/// `record` is a verifying chunk; all rows are written and visible, no table is open. A difference goes to
/// onerepl.difference and to the journal; if the chunk has the digests of A's rows, the keys and columns that
/// differ go there too (onerepl.differing_row). With SPI connected.
void compare_digest(int link, const RelationMap& target, const Record& record, Number n);

/// A table that is to be verified does not exist here: critical in the journal. With SPI connected.
void journal_missing(int link, const RelationMap& target, Number n);

/// A verifying chunk that cannot be compared, since foreign partitions are ahead (foreign.h): the table does
/// not count as equal then. With SPI connected.
void report_not_compared(int link, const RelationMap& target, const Record& record, Number n);

}  // namespace onerepl::apply
