// P4: numbers for what has been committed since the last time. Only the sender numbers.
#pragma once

#include "core/types.h"

namespace onerepl::log {

/// One numbering step, in a transaction of its own (call it outside of one, in a background worker). Gives
/// numbers to the transactions that its snapshot sees and the last step's did not, ordered by (place, xid),
/// and returns M, the largest number, when that is on disk. Without news it writes nothing and costs one
/// indexed query. Memory is bounded however many transactions there are. Throws pg::Error; nothing has
/// changed then.
Number number_changes();

/// M: the largest number, 0 when the log is empty. In a transaction with SPI connected.
Number last_number();

}  // namespace onerepl::log
