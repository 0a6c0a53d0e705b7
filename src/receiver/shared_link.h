// What all receivers of a server share of a link, in shared memory, so plain bytes.
#pragma once

#include "core/central.h"

namespace onerepl::receiver {

/// All but `turns` belongs to one start (P20). For whoever holds the link's lock; `trouble` is read by the
/// status, too, so that it shows what can not be written to any table.
struct SharedLink {
    Nonce challenge;  // of that start
    CentralWaits waits;
    std::uint64_t turns;  // of all receivers
    bool put_off_stored;  // onerepl.contact has what follows
    char put_off[6];      // SQLSTATE of the transient error that keeps writing off; empty: none
    /// Why the last body could not be taken; empty: it was.
    char trouble[256];
};

}  // namespace onerepl::receiver
