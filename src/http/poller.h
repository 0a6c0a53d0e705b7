// One private epoll descriptor for all sockets of a worker, with a timer in it.
// The worker puts `descriptor()` into PostgreSQL's WaitEventSet once, as readable: events cannot be taken
// out of a WaitEventSet again, while sockets come and go. No PostgreSQL header; no thread; no signal handler.
//
// The worker's loop:
//     poller.arm();
//     WaitEventSetWait(set, -1, ...);          // latch, postmaster's death, poller.descriptor()
//     poller.poll();                           // notes what is ready; runs nothing of the caller's
//     server.turn(Poller::now());              // reads, writes, calls the handler
//     for (Completion& done : client.turn(Poller::now())) ...
#pragma once

#include "core/types.h"

#include <vector>

namespace onerepl::http {

/// What a descriptor is watched for, and what it is ready for. An error or a hang-up shows as both.
constexpr unsigned readable = 1;
constexpr unsigned writable = 2;

/// Is told by Poller::poll that a descriptor is ready. It only notes that; the work is done in the owner's
/// turn.
class Watcher {
  public:
    virtual void ready(int descriptor, unsigned events) noexcept = 0;

  protected:
    ~Watcher() = default;
};

class Alarm;

class Poller {
  public:
    /// Throws std::system_error when the system gives no descriptor.
    Poller();
    ~Poller();
    Poller(const Poller&) = delete;
    Poller& operator=(const Poller&) = delete;

    /// Readable while something is ready or an alarm is due. Level-triggered: what was left undone shows
    /// again.
    int descriptor() const { return epoll_; }

    /// The clock of everything in this folder: CLOCK_MONOTONIC, in microseconds (as
    /// std::chrono::steady_clock).
    static Time now();

    /// Starts to watch `descriptor`, or changes what it is watched for (events 0: only errors and hang-ups).
    /// The watcher must outlive the watching. Throws std::system_error.
    void watch(int descriptor, unsigned events, Watcher& watcher);
    /// Stops watching; to be called before the descriptor is closed. Unknown descriptors are ignored.
    void forget(int descriptor) noexcept;

    /// Tells the watchers of all that is ready, waiting at most `timeout` microseconds for the first (0: not
    /// at all; a worker waits in its WaitEventSet instead, programs without one wait here).
    void poll(Time timeout = 0);

    /// Before waiting for `descriptor()`: sets the timer for the alarms as they are now.
    void arm();

  private:
    friend class Alarm;
    void dispatch(int descriptor, unsigned epoll_events);

    int epoll_ = -1;
    int timer_ = -1;
    std::vector<Watcher*> watchers_;  // by descriptor
    std::vector<Alarm*> alarms_;
    Time armed_ = 0;  // what the timer is set to; 0: off
};

/// A moment from which on the poller's descriptor is readable, so that the owner's turn is run. It stays so
/// until the owner sets the alarm anew: an owner whose `when()` is over must do so in its turn.
class Alarm {
  public:
    explicit Alarm(Poller& poller);
    ~Alarm();
    Alarm(const Alarm&) = delete;
    Alarm& operator=(const Alarm&) = delete;

    /// At `when` (Poller::now's clock); in the past: at once. 0 turns it off.
    void set(Time when);
    /// Brings it forward to `when` if it is off or later.
    void set_no_later_than(Time when);
    Time when() const { return when_; }

  private:
    friend class Poller;
    Poller& poller_;
    Time when_ = 0;
};

}  // namespace onerepl::http
