// How fast a refresh goes when the administrator has not said it.
#pragma once

#include "core/types.h"

namespace onerepl::refresh {

/// Seconds to leave to others after a chunk that took `worked` microseconds to read: by onerepl.refresh_share
/// while anybody uses this server, else none. In a transaction with SPI connected.
double pause_after(Time worked);

}  // namespace onerepl::refresh
