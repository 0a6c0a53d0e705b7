// The sender's periodic work: rotation and purge of the log, its size against the limits, self-check,
// journal.
#pragma once

#include "worker/periodic.h"

namespace onerepl::sender {

class Housekeeping {
  public:
    /// Outside of a transaction. Errors go to the server log; the next turn tries again.
    void turn(Time now);

  private:
    void check_log_size();
    void report_log_size(double megabytes);

    worker::Periodic purge_{5 * second};
    worker::Periodic log_size_{10 * second};
    worker::Periodic self_check_{60 * second};
    worker::Periodic journal_{60 * second};
    int log_level_ = 0;          // 0 fine, 1 above the warning size, 2 above the critical size
    bool was_critical_ = false;  // at the last look
};

}  // namespace onerepl::sender
