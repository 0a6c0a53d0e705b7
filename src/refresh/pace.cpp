// The default throttle. Only reading costs the remote; what the central does with a chunk is paced by the
// number of chunks that may be on their way.
#include "refresh/pace.h"

#include "pg/settings.h"
#include "pg/spi.h"

namespace onerepl::refresh {

namespace {

/// Somebody is at work on this server, or was a moment ago.
bool is_in_use() {
    return pg::query_int8(
               "SELECT 1::int8 FROM pg_catalog.pg_stat_activity WHERE backend_type = 'client backend'"
               " AND (state = 'active' OR state_change > pg_catalog.clock_timestamp() - interval '0.1 s')"
               " LIMIT 1")
        .has_value();
}

}  // namespace

double pause_after(Time worked) {
    if (settings::refresh_share >= 100 || !is_in_use()) return 0;
    return static_cast<double>(worked) / second * (100.0 / settings::refresh_share - 1);
}

}  // namespace onerepl::refresh
