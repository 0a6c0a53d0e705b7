// Ranges of log numbers (P1) and ordered sets of them.
#pragma once

#include "core/types.h"

#include <map>

namespace onerepl {

/// The numbers first, first + 1, ..., last. Empty when last < first.
struct Range {
    Number first = 1;
    Number last = 0;

    bool empty() const { return last < first; }
    Number size() const { return empty() ? 0 : last - first + 1; }
    bool contains(Number n) const { return first <= n && n <= last; }
    auto operator<=>(const Range&) const = default;
};

/// What both ranges hold.
Range intersection(Range a, Range b);

/// "17" or "17..23", for journal entries.
std::string to_string(Range range);

/// A set of numbers, kept as disjoint ranges that do not touch each other, in order.
class RangeSet {
  public:
    RangeSet() = default;
    explicit RangeSet(const std::vector<Range>& ranges);

    void add(Range range);
    void remove(Range range);
    bool contains(Number n) const;
    bool empty() const { return ranges_.empty(); }
    /// How many numbers the set holds.
    Number size() const;
    /// The last number that is reached from `n` without leaving the set; n - 1 if `n` is not in it.
    Number contiguous_to(Number n) const;
    /// The numbers of `range` that the set does not hold.
    std::vector<Range> missing(Range range) const;
    std::vector<Range> ranges() const;
    /// Undefined when empty.
    Number first() const { return ranges_.begin()->first; }
    Number last() const { return ranges_.rbegin()->second; }
    bool operator==(const RangeSet&) const = default;

  private:
    std::map<Number, Number> ranges_;  // first -> last
};

}  // namespace onerepl
