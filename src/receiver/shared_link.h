// What all receivers of a server share of a link, in shared memory, so plain bytes.
#pragma once

#include "core/central.h"
#include "core/speakers.h"
#include "pg/clock.h"

extern "C" {
#include "miscadmin.h"
#include "storage/procarray.h"
}

namespace onerepl::receiver {

/// Numbers that a receiver writes just now, or wrote last. It answers nobody meanwhile.
struct Writing {
    int process;  // 0: none yet
    Number first, last;
    Time since;
    Time until;  // 0: it still does, if it lives
};

/// All but `turns` belongs to one start (P20). For whoever holds the link's lock; `trouble` is read by the
/// status, too, so that it shows what cannot be written to any table.
struct SharedLink {
    Nonce challenge;  // of that start
    CentralWaits waits;
    std::uint64_t turns;  // of all receivers
    bool put_off_stored;  // onerepl.contact has what follows
    char put_off[6];      // SQLSTATE of the transient error that keeps writing off; empty: none
    /// Why the last body could not be taken; empty: it was.
    char trouble[256];
    Writing writing;
    Speakers speakers;
    char spoken_from[64];  // the address of the current one
};

/// A process that was ended in the middle leaves its mark.
inline bool is_writing(const Writing& writing) {
    return writing.process != 0 && writing.until == 0 && BackendPidGetProc(writing.process) != nullptr;
}

/// Marks the numbers that are written as long as it lives.
class WritingMark {
  public:
    WritingMark(SharedLink& link, Range numbers) : writing_(link.writing) {
        writing_ = {MyProcPid, numbers.first, numbers.last, pg::now(), 0};
    }
    ~WritingMark() { writing_.until = pg::now(); }
    WritingMark(const WritingMark&) = delete;
    WritingMark& operator=(const WritingMark&) = delete;

  private:
    Writing& writing_;
};

}  // namespace onerepl::receiver
