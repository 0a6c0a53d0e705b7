// Runs of records in state S: split when some of them are treated apart, merged when nothing tells them
// apart.
#include "core/sent_runs.h"

#include <algorithm>

namespace onerepl {

namespace {
constexpr std::uint32_t most_doublings = 3;
// Waits of merged runs differ by less than a sixteenth of Tr.
constexpr Time slots_in_reply_timeout = 16;
}  // namespace

SentRuns::Runs::const_iterator SentRuns::position_of(Number n) const {
    auto run = runs_.upper_bound(n);
    if (run != runs_.begin() && std::prev(run)->second.numbers.last >= n) --run;
    return run;
}

std::optional<SentRuns::Run> SentRuns::find(Number n) const {
    auto run = position_of(n);
    if (run == runs_.end() || !run->second.numbers.contains(n)) return std::nullopt;
    return run->second;
}

std::optional<SentRuns::Run> SentRuns::at_or_after(Number n) const {
    auto run = position_of(n);
    if (run == runs_.end()) return std::nullopt;
    return run->second;
}

Number SentRuns::contiguous_to(Number n) const {
    for (auto run = position_of(n); run != runs_.end() && run->second.numbers.contains(n); ++run)
        n = run->second.numbers.last + 1;
    return n - 1;
}

void SentRuns::split_before(Number n) {
    auto found = position_of(n);
    if (found == runs_.end() || !found->second.numbers.contains(n) || found->first == n) return;
    Run upper = found->second;
    upper.numbers.first = n;
    runs_.at(found->first).numbers.last = n - 1;
    runs_.emplace(n, upper);
}

bool SentRuns::alike(const Run& a, const Run& b) const {
    const Time slot = std::max<Time>(1, reply_timeout_ / slots_in_reply_timeout);
    return a.numbers.last + 1 == b.numbers.first && a.tries == b.tries && a.since / slot == b.since / slot &&
           std::max(a.departure, b.departure) <= settled_;
}

void SentRuns::merge_before(Number n) {
    auto upper = runs_.lower_bound(n);
    if (upper == runs_.begin() || upper == runs_.end()) return;
    auto lower = std::prev(upper);
    if (!alike(lower->second, upper->second)) return;
    lower->second.numbers.last = upper->second.numbers.last;
    lower->second.since = std::max(lower->second.since, upper->second.since);
    lower->second.departure = std::max(lower->second.departure, upper->second.departure);
    runs_.erase(upper);
}

void SentRuns::add(Range range, Time since, std::uint64_t departure) {
    for (Number n = range.first; n <= range.last;) {
        auto next = position_of(n);
        if (next != runs_.end() && next->second.numbers.contains(n)) {
            n = next->second.numbers.last + 1;
            continue;
        }
        const Number last = next == runs_.end() ? range.last : std::min(range.last, next->first - 1);
        runs_.emplace(n, Run{{n, last}, since, 0, departure});
        // The new run is still fresh; its predecessor may be settled by now.
        if (auto added = runs_.find(n); added != runs_.begin()) merge_before(std::prev(added)->first);
        n = last + 1;
    }
}

template <class Change>
void SentRuns::change(Range range, Change change_run) {
    if (range.empty()) return;
    split_before(range.first);
    if (range.last != std::numeric_limits<Number>::max()) split_before(range.last + 1);
    std::vector<Number> changed;
    for (auto run = runs_.lower_bound(range.first); run != runs_.end() && run->first <= range.last; ++run) {
        change_run(run->second);
        changed.push_back(run->first);
    }
    for (Number first : changed)
        if (runs_.contains(first)) merge_before(first);
}

void SentRuns::sent_again(Range range, Time now, std::uint64_t departure) {
    change(range, [&](Run& run) {
        run.since = now;
        run.tries = 0;
        run.departure = departure;
    });
}

void SentRuns::asked_for(Range range, Time now) {
    change(range, [&](Run& run) {
        run.since = now;
        ++run.tries;
    });
}

void SentRuns::drop_to(Number n) {
    split_before(n + 1);
    runs_.erase(runs_.begin(), runs_.upper_bound(n));
    if (!runs_.empty()) runs_.begin()->second.tries = 0;
}

Time SentRuns::due(const Run& run) const {
    return run.since + (reply_timeout_ << std::min(run.tries, most_doublings));
}

std::vector<SentRuns::Run> SentRuns::overdue(Time now) const {
    std::vector<Run> due_runs;
    for (const auto& [first, run] : runs_)
        if (due(run) <= now) due_runs.push_back(run);
    return due_runs;
}

std::optional<Time> SentRuns::first_due() const {
    std::optional<Time> first;
    for (const auto& [number, run] : runs_) first = std::min(first.value_or(due(run)), due(run));
    return first;
}

}  // namespace onerepl
