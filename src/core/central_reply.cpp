// What the central says in its answer: confirmations, requests, its state (C1, C2, C3, C4, P2, P3, P16, P17).
#include "core/central.h"

#include "core/rules.h"

#include <algorithm>
#include <tuple>

namespace onerepl {

namespace {
constexpr std::size_t most_requests_asked = 1000;
/// A description is asked for so often, Tr between the times, while A is in contact.
constexpr int most_times_asked = 10;

RangeSet lately_requested(const CentralWaits& waits, Time now, Time reply_timeout) {
    RangeSet numbers;
    for (const CentralWaits::Requested& request : waits.requested)
        if (request.first <= request.last && request.first != 0 && now - request.at < reply_timeout)
            numbers.add({request.first, request.last});
    return numbers;
}
}  // namespace

void Central::take(const Message& message) {
    processed_ = true;
    if (const auto* request = std::get_if<ConfirmationRequest>(&message)) {
        fired(Rule::C4);
        asked_for_.insert(asked_for_.end(), request->numbers.begin(), request->numbers.end());
    } else if (std::holds_alternative<RemoteState>(message)) {
        fired(Rule::C3);
        state_told_ = true;
    }
}

Reply Central::reply(Time now, Time heard_from) {
    Reply reply;
    reply.header = header();
    if (processed_) {
        // Any message from A answers a state request.
        waits_.state_request_out = false;
        waits_.reported_unanswered = false;
        waits_.last_processed = now;
    }
    if (state_.stop != Stop::none || !state_.started || !header_) return reply;
    RangeSet confirmed;
    std::vector<Missing> missing;
    confirm_written(confirmed);
    answer_remote_state(confirmed, missing);
    answer_confirmation_requests(confirmed, missing);
    ask_for_gaps(missing);
    if (!confirmed.empty()) reply.messages.push_back(TransferConfirmation{confirmed.ranges()});
    if (auto requested = not_asked_lately(now, missing); !requested.empty())
        reply.messages.push_back(TransferRequest{std::move(requested)});
    if (auto ids = descriptions_not_asked_lately(now); !ids.empty())
        reply.messages.push_back(DescriptionRequest{std::move(ids)});
    if (auto request = ask_for_state(now, heard_from, reply.messages.empty()))
        reply.messages.push_back(*request);
    if (!confirmed.empty()) waits_.confirmed_to = std::max(waits_.confirmed_to, confirmed.last());
    return reply;
}

/// C2a: what was written since the last confirmation was handed to A. P16: S_b again if all was duplicates.
void Central::confirm_written(RangeSet& confirmed) const {
    const Number told = std::max({waits_.confirmed_to, header_->confirmed, state_.start});
    if (told < state_.written) confirmed.add({told + 1, state_.written});
    if (offered_ == 0 || dropped_ != offered_ || state_.written == state_.start) return;
    fired(Rule::P16);
    const Number unconfirmed = std::max(header_->confirmed, state_.start) + 1;
    confirmed.add({std::min(unconfirmed, state_.written), state_.written});
}

/// C3, P2.
void Central::answer_remote_state(RangeSet& confirmed, std::vector<Missing>& missing) {
    if (!state_told_) return;
    const bool identical = header_->last == state_.written;
    if (identical && !waits_.reported_identical)
        journal_.write({Level::information, "C3", "central and remote are identical", "", {}});
    waits_.reported_identical = identical;
    if (header_->confirmed < state_.written) {
        // A confirmation was lost.
        fired(Rule::P2);
        confirmed.add({header_->confirmed + 1, state_.written});
    }
    for (const Missing& gap : missing_in({state_.written + 1, header_->sent})) missing.push_back(gap);
}

/// C4, P3. Numbers that wait in the queue are answered by the header's `held`.
void Central::answer_confirmation_requests(RangeSet& confirmed, std::vector<Missing>& missing) {
    for (Range asked : asked_for_) {
        fired(Rule::P3);
        const Range written = intersection(asked, {state_.start + 1, state_.written});
        if (!written.empty()) confirmed.add(written);
        const Range unwritten = intersection(asked, {state_.written + 1, header_->last});
        for (const Missing& gap : missing_in(unwritten)) missing.push_back(gap);
    }
}

/// C2c: numbers are missing in front of what is held. F and pause hold this back; what A has not sent
/// successfully yet is A's to judge (R3f).
void Central::ask_for_gaps(std::vector<Missing>& missing) {
    if (state_.failed_at || state_.paused) return;
    Number highest = whole_.empty() ? state_.written : whole_.last();
    for (const HeldParts& record : state_.partial) highest = std::max(highest, record.n);
    const std::vector<Missing> gaps = missing_in({state_.written + 1, highest});
    if (gaps.empty()) {
        waits_.reported_gap = false;
        return;
    }
    fired(Rule::C2c);
    if (!waits_.reported_gap) {
        const Range hull{gaps.front().numbers.first, gaps.back().numbers.last};
        journal_.write({Level::information, "C2c", "numbers are missing before what has arrived", "", hull});
    }
    waits_.reported_gap = true;
    missing.insert(missing.end(), gaps.begin(), gaps.end());
}

/// What of `numbers` is not there, down to single parts of records. Of a record that may still be arriving
/// (none after it is there, A has not finished sending it) only parts in front of others are missing.
std::vector<Missing> Central::missing_in(Range numbers) const {
    std::vector<Missing> missing;
    if (numbers.empty()) return missing;
    std::map<Number, const HeldParts*> partly;
    for (const HeldParts& record : state_.partial)
        if (numbers.contains(record.n) && !whole_.contains(record.n)) partly[record.n] = &record;
    for (Range gap : whole_.missing(numbers)) {
        for (auto record = partly.lower_bound(gap.first); record != partly.end() && record->first <= gap.last;
             ++record) {
            const Number n = record->first;
            if (gap.first < n) missing.push_back({{gap.first, n - 1}, 0, UINT32_MAX});
            const bool passed =
                n < numbers.last || (!whole_.empty() && n < whole_.last()) || n <= header_->sent;
            missing_parts(*record->second, passed, missing);
            gap.first = n + 1;
        }
        if (!gap.empty()) missing.push_back({gap, 0, UINT32_MAX});
    }
    if (missing.size() > most_requests_asked) missing.resize(most_requests_asked);
    return missing;
}

void Central::missing_parts(const HeldParts& record, bool all, std::vector<Missing>& missing) const {
    std::uint32_t part = 0;
    for (std::uint32_t held : record.held) {
        if (part < held) missing.push_back({{record.n, record.n}, part, held - 1});
        part = held + 1;
    }
    if (all && part < record.parts) missing.push_back({{record.n, record.n}, part, record.parts - 1});
}

/// P16: B repeats a request for a number only after Tr. P15: and asks for no more than the first gap when it
/// has no room.
std::vector<Missing> Central::not_asked_lately(Time now, std::vector<Missing> missing) {
    RangeSet asked = lately_requested(waits_, now, config_.reply_timeout);
    // Several rules may have named the same.
    std::sort(missing.begin(), missing.end(), [](const Missing& a, const Missing& b) {
        return std::tuple(a.numbers.first, a.first_part, a.numbers.last, a.last_part) <
               std::tuple(b.numbers.first, b.first_part, b.numbers.last, b.last_part);
    });
    missing.erase(std::unique(missing.begin(), missing.end()), missing.end());
    std::vector<Missing> requested;
    for (const Missing& wanted : missing) {
        if (used_ >= config_.room && !requested.empty()) break;
        for (Range numbers : asked.missing(wanted.numbers)) {
            Missing request = wanted;
            request.numbers = numbers;
            requested.push_back(request);
        }
        if (wanted.first_part == 0 && wanted.last_part == UINT32_MAX) asked.add(wanted.numbers);
    }
    if (requested.empty() && !missing.empty()) fired(Rule::P16);
    for (const Missing& request : requested) remember_request(now, request.numbers);
    return requested;
}

/// Takes the slot of an old request; without one, widens the newest (to be silent for Tr about a few more is
/// harmless).
void Central::remember_request(Time now, Range numbers) {
    Requested* newest = nullptr;
    for (Requested& slot : waits_.requested) {
        const bool old =
            slot.first == 0 || now - slot.at >= config_.reply_timeout || slot.last <= state_.written;
        const bool same = slot.at == now && slot.last + 1 == numbers.first;
        if (old || same) {
            slot = {same ? slot.first : numbers.first, numbers.last, now};
            return;
        }
        if (newest == nullptr || slot.at >= newest->at) newest = &slot;
    }
    newest->first = std::min(newest->first, numbers.first);
    newest->last = std::max(newest->last, numbers.last);
}

/// P17: a description is asked for like a number.
std::vector<std::uint64_t> Central::descriptions_not_asked_lately(Time now) {
    std::vector<std::uint64_t> ids;
    auto& slots = waits_.descriptions;
    const auto waiting = [&](const CentralWaits::RequestedDescription& slot) {
        return slot.at != 0 && now - slot.at < config_.reply_timeout;
    };
    for (std::uint64_t id : lacking_) {
        auto slot = std::find_if(std::begin(slots), std::end(slots),
                                 [&](const auto& each) { return each.at != 0 && each.id == id; });
        if (slot == std::end(slots)) slot = std::find_if_not(std::begin(slots), std::end(slots), waiting);
        if (slot == std::end(slots)) break;
        if (slot->id == id && waiting(*slot)) continue;
        *slot = {id, now, slot->id == id ? slot->times + 1 : 1};
        fired(Rule::P17);
        ids.push_back(id);
    }
    return ids;
}

std::vector<std::uint64_t> Central::untold(Time now) {
    std::vector<std::uint64_t> ids;
    for (CentralWaits::RequestedDescription& slot : waits_.descriptions) {
        if (slot.times < most_times_asked || now - slot.at < config_.reply_timeout) continue;
        ids.push_back(slot.id);
        slot = {};
    }
    return ids;
}

/// C1. The queue is empty when A's body held no message; R2 wants the request alone, so it waits for an
/// answer that says nothing else. P12: the waiting time begins with the handing over.
std::optional<StateRequest> Central::ask_for_state(Time now, Time heard_from, bool answer_is_empty) {
    if (processed_ || !answer_is_empty) return std::nullopt;
    if (waits_.state_request_out) {
        if (now < state_request_ends(heard_from)) {
            fired(Rule::C1a);
            return std::nullopt;
        }
        report_unanswered();
    } else {
        if (now - waits_.last_processed < config_.state_query_interval) return std::nullopt;
        fired(Rule::C1c);
    }
    waits_.state_request_out = true;
    waits_.state_request_at = now;
    return StateRequest{state_.written};
}

}  // namespace onerepl
