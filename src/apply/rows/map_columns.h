// Which of B's columns the described ones are. Plain (table.h).
#pragma once

#include "apply/rows/relation_map.h"

namespace onerepl::apply {

/// Finds B's table and plans the columns. 42P01: B lacks the table; 42703: it lacks a column; 42804: a
/// column is generated on one side only in a way that cannot work; 40001: the name means another table than
/// `reach` has found. Locks the table for writing.
void map_columns(RelationMap& target);

/// The table of the target's name, whether the link may write it or not; InvalidOid when there is
/// none.
Oid find_relation(const RelationMap& target, LOCKMODE lock);

}  // namespace onerepl::apply
