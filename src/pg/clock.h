// The clock that intervals are measured with.
#pragma once

#include "core/types.h"

#include <chrono>

namespace onerepl::pg {

/// This machine's monotonic clock, in microseconds: the same for all processes of the server.
inline Time now() {
    return std::chrono::duration_cast<std::chrono::microseconds>(
               std::chrono::steady_clock::now().time_since_epoch())
        .count();
}

}  // namespace onerepl::pg
