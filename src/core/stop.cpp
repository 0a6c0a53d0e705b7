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
            return "the remote has lost changes that the central has written";
        case Stop::other_history:
            return "the remote's history is not the one that the central has written";
        case Stop::wrong_peer:
            return "another database speaks than the one that the link belongs to";
        case Stop::promoted:
            return "the central was promoted and goes its own way";
        case Stop::copies:
            return "two copies of the remote speak in turn";
    }
    return "the link is stopped for an unknown reason";
}

const char* cure_of(Stop stop) {
    switch (stop) {
        case Stop::none:
            return "";
        case Stop::central_lost_history:
            return "The central was restored from a backup or has lost its last commits. Start the link anew "
                   "with a refresh, or at a read point that you answer for.";
        case Stop::remote_lost_history:
        case Stop::other_history:
            return "The remote was restored from a backup, promoted without its last changes, or cloned: "
                   "find and stop the other copy first, if there is one. "
                   "Start the link anew with a refresh, or at a read point that you answer for.";
        case Stop::wrong_peer:
            return "Look at the url and secret of the link at both ends and correct them with "
                   "onerepl_change_link: "
                   "then it goes on where it stood. If the other database was replaced on purpose, start the "
                   "link anew with a refresh.";
        case Stop::copies:
            return "Find and stop the other copy first. Then start the link anew at the read point that the "
                   "central's status names if "
                   "the copy has changed nothing, else with a refresh.";
        case Stop::promoted:
            return "Nothing of the remote comes there any more: do not write in both. To replicate again, "
                   "start the "
                   "link anew with a refresh.";
    }
    return "";
}

}  // namespace onerepl
