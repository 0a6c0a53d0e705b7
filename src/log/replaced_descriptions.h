// Table descriptions that a newer one of their table has replaced (P7): they go when no record in the log has
// them, and none can get them any more.
#pragma once

#include "core/types.h"

namespace onerepl::log {

/// One look at them. `confirmed`: by all links. Outside of a transaction, in the process that gives numbers.
/// Nobody waits for it, and it waits for nobody: what a writer may still use is left for the next call.
/// Throws pg::Error.
void purge_replaced_descriptions(Number confirmed);

}  // namespace onerepl::log
