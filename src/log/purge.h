// P7: the log's tables in rotation, so that confirmed records go away by TRUNCATE and nobody is waited for.
#pragma once

#include "core/types.h"

namespace onerepl::log {

/// One look at what can be rotated and purged; the sender calls it every few seconds, outside of a
/// transaction. `retention`: confirmed records are kept this long, in seconds. What is locked just now is
/// left for the next time. Throws pg::Error; the next call goes on where this one failed.
void purge_step(int retention);

/// Bytes on disk of the log tables, their TOAST and indexes. In a transaction.
std::int64_t log_size();

/// Of these, what a purge cannot take because it is not confirmed by all links: tables that were left and
/// could not be emptied, and of the one that is written to the part that its numbers are of all in the log.
/// In a transaction, after a purge_step without retention.
std::int64_t unconfirmed_size();

}  // namespace onerepl::log
