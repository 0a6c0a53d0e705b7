// The first receiver's periodic work: self-check, the journal, what was received and written long ago.
#pragma once

#include "worker/periodic.h"

namespace onerepl::receiver {

class Housekeeping {
  public:
    /// Outside of a transaction. Errors go to the server log; the next turn tries again.
    void turn(Time now);

  private:
    worker::Periodic self_check_{60 * second};
    worker::Periodic purge_{60 * second};
};

}  // namespace onerepl::receiver
