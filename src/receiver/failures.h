// Records in state F and what the administrator decided about them: table onerepl.failure (P13). All in a
// transaction.
#pragma once

#include "apply/applier.h"

#include <optional>

namespace onerepl::receiver {

struct KnownFailures {
    /// There are some, decided or not.
    bool any = false;
    /// The smallest number without a decision: the link waits for it.
    std::optional<Number> undecided;
    /// Overwrite and skip, as apply wants them.
    apply::Resolutions resolutions;
};
KnownFailures load_failures(int link);

/// The transaction failed again or for the first time. What was decided with overwrite or skip stays decided.
void store_failures(int link, const apply::Outcome& outcome);

/// Everything up to `written` is resolved: written or skipped.
void finish_failures(int link, Number written);

/// One sentence about the first failure, for the journal: without values, since monitoring roles read it.
std::string describe(const apply::Outcome& outcome);

}  // namespace onerepl::receiver
