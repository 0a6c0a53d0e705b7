// The read-only guard (P8), as those who meet it on a table know it.
#pragma once

namespace onerepl::apply {

/// Names of the guard's triggers. The first one is on each guarded table; the second one, for its rows, is on
/// those that have rows here: it sees what comes to them by another table's name, or by a subscription, which
/// fires no statement's trigger.
constexpr const char* guard_trigger = "!onerepl_guard";
constexpr const char* guard_row_trigger = "!onerepl_guard_row";

}  // namespace onerepl::apply
