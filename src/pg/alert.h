// onerepl.alert_command: a command of the administrator's that is run for each critical journal entry.
#pragma once

#include <string>

namespace onerepl::pg {

struct Alert {
    std::string level;
    std::string link;  // name; empty: the entry is about no link
    std::string message;
    std::string hint;
};

/// Runs the command, if one is set, when the current transaction has committed; not if it aborts. The command
/// is started by /bin/sh in a session of its own and nobody waits for its end; its input and output are
/// /dev/null; it finds the alert in the environment variables ONEREPL_LEVEL, ONEREPL_LINK, ONEREPL_MESSAGE,
/// ONEREPL_HINT. At most 20 a transaction.
void alert_at_commit(Alert alert);

}  // namespace onerepl::pg
