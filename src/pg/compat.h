// Differences between PostgreSQL 15 and 18, in one place. Inline functions, named for what they do.
#pragma once

#include "pg/pg.h"

extern "C" {
#include "storage/latch.h"
#include "utils/wait_event.h"
}

namespace onerepl::compat {

/// A wait event set that lives as long as the process.
inline WaitEventSet* create_wait_event_set(int events) {
#if PG_VERSION_NUM >= 170000
    return CreateWaitEventSet(nullptr, events);
#else
    return CreateWaitEventSet(TopMemoryContext, events);
#endif
}

}  // namespace onerepl::compat
