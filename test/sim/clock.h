// Simulated time: events in order of their moment, ties in order of their making.
#pragma once

#include "core/types.h"

#include <functional>
#include <queue>

namespace onerepl::sim {

class Clock {
  public:
    Time now() const { return now_; }
    void at(Time moment, std::function<void()> action) {
        events_.push({moment < now_ ? now_ : moment, ++made_, std::move(action)});
    }
    void after(Time delay, std::function<void()> action) { at(now_ + delay, std::move(action)); }
    /// Runs the next event if it is not later than `end`; false if there is none.
    bool step(Time end) {
        if (events_.empty() || events_.top().moment > end) {
            now_ = end;
            return false;
        }
        std::function<void()> action = std::move(const_cast<Event&>(events_.top()).action);
        now_ = events_.top().moment;
        events_.pop();
        action();
        return true;
    }

  private:
    struct Event {
        Time moment;
        std::uint64_t made;
        std::function<void()> action;
        bool operator<(const Event& other) const {
            return std::pair(moment, made) > std::pair(other.moment, other.made);
        }
    };
    std::priority_queue<Event> events_;
    Time now_ = second;  // not zero, which stands for "never" in places
    std::uint64_t made_ = 0;
};

}  // namespace onerepl::sim
