// Only one receiver at a time works for a link.
#pragma once

#include "pg/transaction.h"

extern "C" {
#include "storage/lock.h"
}

namespace onerepl::receiver {

/// Tries to take the link's lock for this session, and gives it up when it goes.
class LinkLock {
  public:
    explicit LinkLock(int link) {
        SET_LOCKTAG_ADVISORY(tag_, MyDatabaseId, 0x6f6e6572, static_cast<uint32>(link), 2);
        held_ =
            pg::call([&] { return LockAcquire(&tag_, ExclusiveLock, true, true) != LOCKACQUIRE_NOT_AVAIL; });
    }
    /// What was committed under the lock is on disk before anybody else may speak of it (P5). LockRelease
    /// warns, but does not fail, when the lock is not held.
    ~LinkLock() {
        if (!held_) return;
        pg::wait_for_commits();
        LockRelease(&tag_, ExclusiveLock, true);
    }
    LinkLock(const LinkLock&) = delete;
    LinkLock& operator=(const LinkLock&) = delete;
    bool held() const { return held_; }

  private:
    LOCKTAG tag_;
    bool held_ = false;
};

}  // namespace onerepl::receiver
