// What the workers of both sides do now and then.
#pragma once

#include "core/types.h"

namespace onerepl::worker {

/// What is due at most once every `interval`, the first time at once.
class Periodic {
  public:
    explicit Periodic(Time interval) : interval_(interval) {}
    bool due(Time now);

  private:
    Time interval_;
    Time last_ = 0;
    bool ran_ = false;
};

/// Looks for what keeps tables from being captured or written, and notes it in onerepl.problems. Outside of a
/// transaction. Throws.
void self_check();

/// Deletes journal entries older than onerepl.journal_retention. Outside of a transaction. Throws.
void purge_journal();

}  // namespace onerepl::worker
