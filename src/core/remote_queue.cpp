// The remote looks at its queue: R2 and R3. What B asks for or confirms is decided here, nothing is sent.
#include "core/remote.h"

#include "core/rules.h"

#include <algorithm>

namespace onerepl {

namespace {
/// More single records than this are not sent again within Tr: B asks again.
constexpr std::size_t most_served_parts = 4096;

bool overlap(const Missing& a, const Missing& b) {
    if (intersection(a.numbers, b.numbers).empty()) return false;
    const bool parts_of_one = a.numbers.size() == 1 && b.numbers.size() == 1;
    return !parts_of_one || (a.first_part <= b.last_part && b.first_part <= a.last_part);
}
}  // namespace

/// R2 leaves a lone state request in place until a body carries the answer; R3 drops it. What R3c keeps does
/// not count as a queue (P16).
void Remote::check_queue(Time now) {
    forget_served(now);
    if (position_.stop != Stop::none) {
        requests_.clear();
        repeats_.clear();
        return;
    }
    if (fresh_) state_request_.reset();
    take_confirmations();
    mark_held(now);
    take_requests();
    fresh_ = false;
}

/// R3a .. R3d. Only S_a + 1 can become C, so it is the F1 that counts.
void Remote::take_confirmations() {
    while (!confirmations_.empty()) {
        const Number first = confirmations_.first();
        if (first <= position_.confirmed) {
            fired(Rule::R3b);
            const Number last = std::min(confirmations_.contiguous_to(first), position_.confirmed);
            confirmations_.remove({first, last});
            journal_.write({Level::information, "R3b", "superfluous confirmation", "", {first, last}});
        } else if (first == position_.confirmed + 1) {
            fired(Rule::R3a);
            const Number last = confirmations_.contiguous_to(first);
            confirmations_.remove({first, last});
            confirm(last);
        } else {
            // R3d takes over when the wait is over: see note_confirmation_request.
            if (fresh_) fired(Rule::R3c);
            return;
        }
    }
}

/// R3a. P16: what is confirmed while in L (the answer, or A's mark, was lost) passes through S here.
void Remote::confirm(Number to) {
    position_.confirmed = to;
    sent_.drop_to(to);
    position_.sent = std::max(position_.sent, to);
    position_.sent = std::max(position_.sent, sent_.contiguous_to(position_.sent + 1));
    partly_sent_.erase(partly_sent_.begin(), partly_sent_.upper_bound(to));
    forget_repeats({0, to});
}

/// P16: B repeats a request only after Tr. One that repeats it sooner makes A work no more than that.
void Remote::forget_served(Time now) {
    if (now - served_.since < config_.reply_timeout) return;
    served_ = {};
    served_.since = now;
}

/// Notes that it is served. False: it was, less than Tr ago.
bool Remote::serve(const Missing& asked) {
    if (asked.numbers.size() > 1) {
        if (served_.numbers.missing(asked.numbers).empty()) return false;
        served_.numbers.add(asked.numbers);
        return true;
    }
    const Range parts{asked.first_part, asked.last_part};
    auto known = served_.parts.find(asked.numbers.first);
    if (known == served_.parts.end()) {
        if (served_.parts.size() >= most_served_parts) return false;
        known = served_.parts.emplace(asked.numbers.first, RangeSet()).first;
    }
    if (known->second.missing(parts).empty()) return false;
    known->second.add(parts);
    return true;
}

void Remote::take_requests() {
    if (requests_.empty()) return;
    std::stable_sort(requests_.begin(), requests_.end(), [](const Request& a, const Request& b) {
        return a.missing.numbers < b.missing.numbers;
    });
    RangeSet taken = numbers_in_flight();
    for (const auto& [id, body] : in_flight_)
        for (const CarriedParts& parts : body.carried.parts) taken.add({parts.n, parts.n});
    if (central_)
        taken.add({1, std::max(central_->written, central_->held)});  // P15: the request is older than this
    for (const Missing& waiting : repeats_) taken.add(waiting.numbers);
    RangeSet not_repeatable;
    for (const Request& request : requests_) take_request(request, taken, not_repeatable);
    requests_.clear();
    std::sort(repeats_.begin(), repeats_.end(),
              [](const Missing& a, const Missing& b) { return a.numbers < b.numbers; });
    if (not_repeatable.empty()) return;
    fired(Rule::R3f);
    journal_.write({Level::information,
                    "R3f",
                    "request for records already confirmed or not yet sent",
                    "",
                    {not_repeatable.first(), not_repeatable.last()}});
}

/// R3e for those of its numbers that are in S, R3f for the others.
void Remote::take_request(const Request& request, const RangeSet& taken, RangeSet& not_repeatable) {
    const Range asked = request.missing.numbers;
    for (Number n = std::max<Number>(asked.first, 1); n <= asked.last;) {
        const std::optional<SentRuns::Run> run = sent_.at_or_after(n);
        if (run && run->numbers.contains(n)) {
            const Range in_run = intersection(asked, {n, run->numbers.last});
            // P16: at most once a round trip: it must have come with the answer to a body that left no
            // earlier than the last one that held the record.
            if (run->departure <= request.departure) {
                repeat(request, in_run, taken);
            } else {
                fired(Rule::P16);
            }
            n = in_run.last + 1;
        } else {
            const Number last = run ? std::min(asked.last, run->numbers.first - 1) : asked.last;
            not_repeatable.add({n, last});
            if (last == asked.last) return;
            n = last + 1;
        }
    }
}

/// R3e. P16: not while a body with it is unanswered; `taken` is what is on its way or about to be.
void Remote::repeat(const Request& request, Range range, const RangeSet& taken) {
    for (Range numbers : taken.missing(range)) {
        Missing again{numbers, 0, UINT32_MAX};
        if (request.missing.numbers.size() == 1) again = request.missing;
        if (std::any_of(repeats_.begin(), repeats_.end(),
                        [&](const Missing& waiting) { return overlap(waiting, again); }))
            continue;
        if (!serve(again)) {
            fired(Rule::P16);
            continue;
        }
        fired(Rule::R3e);
        repeats_.push_back(again);
        journal_.write({Level::information, "R3e", "sent again at the central's request", "", numbers});
    }
}

void Remote::forget_repeats(Range range) {
    std::vector<Missing> kept;
    for (const Missing& repeat : repeats_) {
        for (Range numbers : RangeSet({range}).missing(repeat.numbers)) {
            Missing rest = repeat;
            if (numbers.first != repeat.numbers.first) rest.first_part = 0;
            rest.numbers = numbers;
            kept.push_back(rest);
        }
    }
    repeats_ = std::move(kept);
}

/// Parts of carried.n went out: what is left of the repetition begins after them.
void Remote::forget_repeat(const CarriedParts& carried) {
    for (Missing& repeat : repeats_) {
        const Number n = carried.n;
        if (repeat.numbers.first != n || carried.first_part > repeat.first_part ||
            carried.last_part < repeat.first_part)
            continue;
        const bool single = repeat.numbers.size() == 1;
        const std::uint32_t last = single ? std::min(repeat.last_part, carried.parts - 1) : carried.parts - 1;
        if (carried.last_part < last) {
            repeat.first_part = carried.last_part + 1;
        } else if (single) {
            repeats_.erase(repeats_.begin() + (&repeat - repeats_.data()));
        } else {
            repeat = {{n + 1, repeat.numbers.last}, 0, UINT32_MAX};
        }
        return;
    }
}

}  // namespace onerepl
