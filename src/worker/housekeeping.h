// What a worker does now and then: purging, self-check, the log's limits, old journal entries.
#pragma once

#include "pg/journal.h"
#include "core/types.h"

namespace onerepl::worker {

/// Runs `work` at most once every `interval`, the first time at once.
class Periodic {
  public:
    explicit Periodic(Time interval) : interval_(interval) {}
    bool due(Time now);

  private:
    Time interval_;
    Time last_ = 0;
    bool ran_ = false;
};

/// The sender's: rotation and purge of the log, its size against the limits, self-check, journal.
class RemoteHousekeeping {
  public:
    /// Outside of a transaction. Errors go to the server log; the next turn tries again.
    void turn(Time now);

  private:
    void check_log_size();
    void tell_log_size(double megabytes);

    Periodic purge_{5 * second};
    Periodic log_size_{10 * second};
    Periodic self_check_{60 * second};
    Periodic journal_{60 * second};
    int log_level_ = 0;          // 0 fine, 1 above the warning size, 2 above the critical size
    bool was_critical_ = false;  // at the last look
};

/// The first receiver's.
class CentralHousekeeping {
  public:
    void turn(Time now);

  private:
    Periodic self_check_{60 * second};
    Periodic purge_{60 * second};
};

}  // namespace onerepl::worker
