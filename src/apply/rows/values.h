// Values of the wire as B's columns take them. Plain (table.h).
#pragma once

#include "apply/rows/relation_map.h"

namespace onerepl::apply {

/// The value as B's column takes it, in the current memory context.
Datum convert_value(const RelationMap& target, const ColumnPlan& plan, const Value& value, bool* is_null);

}  // namespace onerepl::apply
