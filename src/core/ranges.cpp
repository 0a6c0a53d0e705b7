// Ranges of log numbers and ordered sets of them (P1).
#include "core/ranges.h"

#include <algorithm>
#include <iterator>

namespace onerepl {

Range intersection(Range a, Range b) {
    if (a.empty() || b.empty()) return {};
    const Range both{std::max(a.first, b.first), std::min(a.last, b.last)};
    return both.empty() ? Range{} : both;
}

std::string to_string(Range range) {
    if (range.empty()) return "none";
    if (range.first == range.last) return std::to_string(range.first);
    return std::to_string(range.first) + ".." + std::to_string(range.last);
}

RangeSet::RangeSet(const std::vector<Range>& ranges) {
    for (Range range : ranges) add(range);
}

void RangeSet::add(Range range) {
    if (range.empty()) return;
    // Every range that overlaps or touches the new one becomes part of it. The differences are taken where
    // they cannot wrap around.
    auto next = ranges_.upper_bound(range.first);
    if (next != ranges_.begin()) {
        auto before = std::prev(next);
        if (before->second >= range.first || range.first - before->second == 1) next = before;
    }
    while (next != ranges_.end() && (next->first <= range.last || next->first - range.last == 1)) {
        range.first = std::min(range.first, next->first);
        range.last = std::max(range.last, next->second);
        next = ranges_.erase(next);
    }
    ranges_.emplace_hint(next, range.first, range.last);
}

void RangeSet::remove(Range range) {
    if (range.empty()) return;
    auto next = ranges_.upper_bound(range.first);
    if (next != ranges_.begin() && std::prev(next)->second >= range.first) --next;
    while (next != ranges_.end() && next->first <= range.last) {
        const Range old{next->first, next->second};
        next = ranges_.erase(next);
        if (old.first < range.first) ranges_.emplace_hint(next, old.first, range.first - 1);
        if (old.last > range.last) ranges_.emplace_hint(next, range.last + 1, old.last);
    }
}

bool RangeSet::contains(Number n) const {
    const auto next = ranges_.upper_bound(n);
    return next != ranges_.begin() && std::prev(next)->second >= n;
}

Number RangeSet::size() const {
    Number size = 0;
    for (const auto& [first, last] : ranges_) size += last - first + 1;
    return size;
}

Number RangeSet::contiguous_to(Number n) const {
    const auto next = ranges_.upper_bound(n);
    if (next == ranges_.begin() || std::prev(next)->second < n) return n - 1;
    return std::prev(next)->second;
}

std::vector<Range> RangeSet::missing(Range range) const {
    std::vector<Range> gaps;
    if (range.empty()) return gaps;
    auto next = ranges_.upper_bound(range.first);
    if (next != ranges_.begin()) --next;
    for (; next != ranges_.end() && next->first <= range.last; ++next) {
        if (next->second < range.first) continue;
        if (next->first > range.first) gaps.push_back({range.first, next->first - 1});
        if (next->second >= range.last) return gaps;
        range.first = next->second + 1;
    }
    gaps.push_back(range);
    return gaps;
}

std::vector<Range> RangeSet::ranges() const {
    std::vector<Range> all;
    all.reserve(ranges_.size());
    for (const auto& [first, last] : ranges_) all.push_back({first, last});
    return all;
}

}  // namespace onerepl
