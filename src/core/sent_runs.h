// Which records of a link are in state S, and since when each waits (P16).
#pragma once

#include "core/ranges.h"

#include <limits>
#include <optional>

namespace onerepl {

/// Disjoint runs of records in S. Neighbours that need not be told apart any more are merged, so that a
/// backlog of hours stays small in memory.
class SentRuns {
  public:
    struct Run {
        Range numbers;
        Time since = 0;               // last sending, or last request naming it
        std::uint32_t tries = 0;      // requests since the last sending, for the back-off
        std::uint64_t departure = 0;  // of the last body that held it
    };

    /// `reply_timeout`: Tr.
    void set_reply_timeout(Time reply_timeout) { reply_timeout_ = reply_timeout; }
    /// Bodies up to this departure have come to their end: no answer to one of them can still ask for
    /// something.
    void settle(std::uint64_t departure) { settled_ = departure; }

    /// The numbers of `range` that are not in S yet become S.
    void add(Range range, Time since, std::uint64_t departure);
    /// Those of `range` that are in S were sent again.
    void sent_again(Range range, Time now, std::uint64_t departure);
    /// Those of `range` that are in S were named in a confirmation request.
    void asked_for(Range range, Time now);
    /// Forgets all up to n; what is first now is asked for without further back-off.
    void drop_to(Number n);

    bool empty() const { return runs_.empty(); }
    bool contains(Number n) const { return find(n).has_value(); }
    std::optional<Run> find(Number n) const;
    /// The first run that ends at n or later.
    std::optional<Run> at_or_after(Number n) const;
    /// Last number reached from n without leaving S; n - 1 if n is not in S.
    Number contiguous_to(Number n) const;

    /// When a run is to be asked for: Tr after `since`, doubled with every try, at most eightfold.
    Time due(const Run& run) const;
    /// Runs that are due.
    std::vector<Run> overdue(Time now) const;
    /// When the first run gets due; nullopt: none is waiting.
    std::optional<Time> first_due() const;

  private:
    using Runs = std::map<Number, Run>;  // by first number
    Runs::const_iterator position_of(Number n) const;
    /// Makes n the first number of a run if it lies inside one.
    void split_before(Number n);
    template <class Change>
    void change(Range range, Change change_run);
    bool alike(const Run& a, const Run& b) const;
    void merge_before(Number n);

    Runs runs_;
    Time reply_timeout_ = second;
    std::uint64_t settled_ = 0;
};

}  // namespace onerepl
