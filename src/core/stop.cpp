// P9: what the administrator is told when a link stops for good.
#include "core/body.h"

namespace onerepl {

const char* describe(Stop stop) {
    switch (stop) {
        case Stop::none:
            return "the link is not stopped";
        case Stop::central_lost_history:
            return "the central has lost changes that it had confirmed";
        case Stop::remote_lost_history:
            return "the remote has lost changes that it had sent";
        case Stop::other_history:
            return "the two histories differ";
        case Stop::wrong_peer:
            return "another database speaks than the one that the link belongs to";
        case Stop::promoted:
            return "the central was promoted";
        case Stop::copies:
            return "two copies of the remote speak in turn";
    }
    return "the link is stopped for an unknown reason";
}

}  // namespace onerepl
