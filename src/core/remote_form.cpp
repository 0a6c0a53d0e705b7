// The remote forms its next body: R1a, R1b, what R2 and R3 decided, and P12's empty body.
#include "core/remote.h"

#include "core/rules.h"

#include <algorithm>
#include <limits>

namespace onerepl {

namespace {
constexpr std::size_t most_ranges_in_request = 1000;
/// P22: knocks of a link that is not in step, or has no answer, whatever Ti is. A body without content is
/// some 200 bytes.
constexpr Time longest_knock_interval = 1 * second;
constexpr Time shortest_knock_interval = 100 * millisecond;

const Missing nothing{.numbers = {}, .first_part = 0, .last_part = UINT32_MAX};

bool carries_transfers(const Outgoing& outgoing) {
    return !outgoing.repeats.empty() || !outgoing.transfers.numbers.empty();
}

bool is_empty(const Outgoing& outgoing) {
    return !carries_transfers(outgoing) && outgoing.confirmation_request.empty() &&
           outgoing.descriptions.empty() && !outgoing.remote_state;
}
}  // namespace

std::optional<Outgoing> Remote::next(Time now) {
    check_queue(now);
    if (!may_depart(now)) return std::nullopt;
    if (position_.stop == Stop::none && outage_.must_knock(now)) return Outgoing{};
    Outgoing outgoing;
    if (position_.stop == Stop::none && !resting_) {
        outgoing.confirmation_request = overdue(now);
        outgoing.descriptions.assign(descriptions_.begin(), descriptions_.end());
        form_transfers(outgoing);
        // P2: sendable records are the answer to a state request.
        if (state_is_due(now) && !carries_transfers(outgoing)) outgoing.remote_state = state_request_;
    }
    // What could not be delivered need not be any more.
    if (is_empty(outgoing) && !resting_ && outage_.nothing_to_send()) report_outage_over();
    if (is_empty(outgoing) && !keep_alive_due(now)) return std::nullopt;
    if (central_ && central_->started && central_->held > central_->written)
        outgoing.witness = std::min(central_->held, last_);
    return outgoing;
}

/// R3e before R1b, as far as P15 allows.
void Remote::form_transfers(Outgoing& outgoing) {
    if (repeats_.empty() && position_.sent >= last_) return;
    const Allowance allowed = allowance();
    // Short of room B takes only what follows without a gap: one body at a time, so that none overtakes
    // another.
    if (allowed.bytes == 0 && !in_flight_.empty()) return;
    outgoing.repeats = repeats_within(allowed);
    outgoing.transfers = transfers_within(allowed);
    outgoing.budget = allowed.bytes == 0 ? config_.batch_bytes : std::min(config_.batch_bytes, allowed.bytes);
}

/// P2, after the numbering step. One that asks all the time gets its answer as often as a knock would.
bool Remote::state_is_due(Time now) const {
    return state_request_ && numbered_since_request_ &&
           (!state_told_ || now - *state_told_ >= knock_interval());
}

std::size_t Remote::most_in_flight() const {
    return central_ && !outage_.is_on() ? config_.max_in_flight : 1;
}

/// P22: what had no answer for Tr keeps nothing else back: neither contact nor the bodies after it.
bool Remote::hangs(const BodyInFlight& body, Time now) const {
    return now - body.departed >= config_.reply_timeout;
}

std::size_t Remote::waiting_bodies(Time now) const {
    return static_cast<std::size_t>(std::count_if(
        in_flight_.begin(), in_flight_.end(), [&](const auto& each) { return !hangs(each.second, now); }));
}

/// When fewer bodies than may be in flight are waited for.
Time Remote::place_in_flight_at() const {
    const std::size_t most = most_in_flight();
    if (in_flight_.size() < most) return 0;
    std::vector<Time> departed;
    for (const auto& [id, body] : in_flight_) departed.push_back(body.departed);
    std::sort(departed.begin(), departed.end());
    return departed[departed.size() - most] + config_.reply_timeout;
}

std::optional<Remote::BodyId> Remote::overtaken(Time now) const {
    for (const auto& [id, body] : in_flight_)
        if (hangs(body, now) && last_answered_ > body.departure) return id;
    return std::nullopt;
}

/// P16: one body at a time until the first answer, and after a failure not before the back-off is over.
bool Remote::may_depart(Time now) const {
    return waiting_bodies(now) < most_in_flight() && now >= outage_.retry_at();
}

Time Remote::knock_interval() const {
    return std::clamp(config_.send_interval, shortest_knock_interval, longest_knock_interval);
}

/// Ti, but a link that is not in step looks more often whether it can go on (P22).
Time Remote::contact_interval() const {
    return position_.confirmed < last_ ? std::min(config_.send_interval, longest_knock_interval)
                                       : config_.send_interval;
}

/// P12: A posts at least every Ti. A body that is still unanswered is contact enough, for Tr: B's word comes
/// with its answer.
Time Remote::keep_alive_at() const {
    Time at = last_departure_ ? *last_departure_ + contact_interval() : 0;
    for (const auto& [id, body] : in_flight_) at = std::max(at, body.departed + config_.reply_timeout);
    return at;
}

bool Remote::keep_alive_due(Time now) const {
    return now >= keep_alive_at();
}

/// R1a, and R3d while a confirmation is missing: the records in S whose wait is over.
std::vector<Range> Remote::overdue(Time now) const {
    RangeSet numbers;
    for (const SentRuns::Run& run : sent_.overdue(now)) numbers.add(run.numbers);
    std::vector<Range> ranges = numbers.ranges();
    if (ranges.size() > most_ranges_in_request) ranges.resize(most_ranges_in_request);
    return ranges;
}

/// P15. B always takes S_b + 1 and the rest of its transaction; nothing while it is paused or stopped.
Remote::Allowance Remote::allowance() {
    if (paused_) return {};
    if (!central_ || !central_->started) return {config_.batch_bytes, last_};
    if (central_->flow == FlowState::paused || central_->flow == FlowState::stopped) return {};
    const std::uint64_t flying = bytes_in_flight();
    if (central_->flow == FlowState::running && central_->room > flying)
        return {central_->room - flying, last_};
    fired(Rule::P15);
    const Number first = central_->written + 1;
    if (first > last_) return {};
    if (first_transaction_.first != first) first_transaction_ = {first, history_.transaction_end(first)};
    return {0, first_transaction_.second};
}

std::vector<Missing> Remote::repeats_within(const Allowance& allowed) const {
    std::vector<Missing> within;
    for (const Missing& repeat : repeats_) {
        if (repeat.numbers.first > allowed.in_any_case_to) break;
        within.push_back(repeat);
        within.back().numbers.last = std::min(repeat.numbers.last, allowed.in_any_case_to);
    }
    return within;
}

Missing Remote::transfers_within(const Allowance& allowed) {
    Missing logged = first_logged();
    if (barred()) {
        if (logged.numbers.first == *blocked_) report_blocked(*blocked_);
        logged.numbers.last = std::min(logged.numbers.last, *blocked_ - 1);
    }
    logged.numbers.last = std::min(logged.numbers.last, allowed.in_any_case_to);
    if (logged.numbers.empty()) return nothing;
    return logged;
}

/// R1b: the first records in L that no body is carrying, as far as they follow each other.
Missing Remote::first_logged() const {
    const RangeSet flying = numbers_in_flight();
    Number n = position_.sent + 1;
    while (n <= last_) {
        const Number before = n;
        n = sent_.contiguous_to(n) + 1;
        n = flying.contiguous_to(n) + 1;
        if (n != before) continue;
        std::uint32_t parts = 0;
        const std::set<std::uint32_t> sent_parts = parts_on_their_way(n, parts);
        std::uint32_t part = 0;
        while (sent_parts.contains(part)) ++part;
        if (parts != 0 && part == parts) {
            ++n;
            continue;
        }
        if (auto later = sent_parts.lower_bound(part); later != sent_parts.end())
            return {{n, n}, part, *later - 1};
        Number to = last_;
        if (auto run = sent_.at_or_after(n)) to = std::min(to, run->numbers.first - 1);
        for (Range range : flying.ranges())
            if (range.first > n) to = std::min(to, range.first - 1);
        return {{n, to}, part, UINT32_MAX};
    }
    return nothing;
}

std::set<std::uint32_t> Remote::parts_on_their_way(Number n, std::uint32_t& parts) const {
    std::set<std::uint32_t> all;
    if (auto record = partly_sent_.find(n); record != partly_sent_.end()) {
        all = record->second.sent;
        parts = record->second.parts;
    }
    for (const auto& [id, body] : in_flight_) {
        for (const CarriedParts& carried : body.carried.parts) {
            if (carried.n != n) continue;
            parts = carried.parts;
            for (std::uint32_t part = carried.first_part; part <= carried.last_part; ++part) all.insert(part);
        }
    }
    return all;
}

/// Numbers that bodies in flight hold whole.
RangeSet Remote::numbers_in_flight() const {
    RangeSet numbers;
    for (const auto& [id, body] : in_flight_)
        for (Range range : body.carried.whole) numbers.add(range);
    return numbers;
}

std::uint64_t Remote::bytes_in_flight() const {
    std::uint64_t bytes = 0;
    for (const auto& [id, body] : in_flight_) bytes += body.carried.bytes;
    return bytes;
}

/// R1b: a record in B stops the forming, and the administrator is told which.
void Remote::report_blocked(Number n) {
    if (reported_blocked_ == n) return;
    reported_blocked_ = n;
    journal_.write({Level::warning,
                    "R1b",
                    "sending stops at a blocked record",
                    "Unblock the record when it may be sent.",
                    {n, n}});
}

void Remote::departed(Time now, BodyId id, const Outgoing& outgoing, const Carried& carried) {
    ++departures_;
    last_departure_ = now;
    const bool transfers = !carried.empty();
    note_departure(now, departures_, carried);
    note_confirmation_request(now, outgoing.confirmation_request);
    for (std::uint64_t description : outgoing.descriptions) {
        descriptions_.erase(description);
        served_.descriptions.insert(description);
    }
    if (outgoing.remote_state) {
        fired(Rule::R2);
        state_told_ = now;
    }
    if (outgoing.remote_state || transfers) state_request_.reset();
    if (is_empty(outgoing)) fired(Rule::P12);
    in_flight_[id] = {now, departures_, position_.confirmed, carried};
    settle();
}

/// The waits of what is in S already begin anew with its repetition; the rest becomes S by the answer only.
void Remote::note_departure(Time now, std::uint64_t departure, const Carried& carried) {
    for (Range range : carried.whole) {
        if (!sent_.contains(range.first)) fired(Rule::R1b);
        sent_.sent_again(range, now, departure);
        forget_repeats(range);
    }
    for (const CarriedParts& part : carried.parts) {
        fired(Rule::P1);
        sent_.sent_again({part.n, part.n}, now, departure);
        forget_repeat(part);
    }
}

/// R1a, or R3d while later confirmations wait for that of S_a + 1. One journal line for a wait, not for each
/// try (P16).
void Remote::note_confirmation_request(Time now, const std::vector<Range>& numbers) {
    if (numbers.empty()) return;
    const bool missing = !confirmations_.empty() && numbers.front().first == position_.confirmed + 1;
    fired(missing ? Rule::R3d : Rule::R1a);
    bool first_try = false;
    for (Range range : numbers) {
        if (auto run = sent_.find(range.first)) first_try = first_try || run->tries == 0;
        sent_.asked_for(range, now);
    }
    if (!first_try) return;
    const Range hull{numbers.front().first, numbers.back().last};
    journal_.write({Level::warning, missing ? "R3d" : "R1a",
                    missing ? "a confirmation is missing" : "the wait for a confirmation is over", "", hull});
}

Time Remote::wake_at() const {
    Time wake = keep_alive_at();
    if (position_.stop == Stop::none && !resting_) {
        if (auto due = sent_.first_due()) wake = std::min(wake, *due);
        if (state_request_ && numbered_since_request_ && state_told_)
            wake = std::min(wake, *state_told_ + knock_interval());
    }
    // After a failure something is always worth a try.
    return std::max(outage_.is_on() ? outage_.retry_at() : std::max(wake, outage_.retry_at()),
                    place_in_flight_at());
}

}  // namespace onerepl
