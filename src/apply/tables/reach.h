// What a link may write here (P18). Whatever becomes of a record, its table comes from here.
#pragma once

#include "apply/rows/relation_map.h"

namespace onerepl::apply {

/// B's table of a description; InvalidOid: there is none of that name, and the link might write it. Throws
/// pg::Error 42501 if the link may not write it (onerepl.why_out_of_reach), with the statement that allows
/// it. Locks the table for writing, but not before that is decided. In a transaction with SPI connected.
Oid reach(int link, RelationMap& target);

/// Whether `reach` gives a table, for what must not fail.
bool is_in_reach(int link, RelationMap& target);

}  // namespace onerepl::apply
