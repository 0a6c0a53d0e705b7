// The remote's side of a link: what comes in from numbering, the administrator, the transport and B.
#include "core/remote.h"

#include "core/rules.h"

#include <algorithm>

namespace onerepl {

namespace {
// B asks again for what does not fit; a hostile or broken B cannot make A's memory grow.
constexpr std::size_t most_requests_kept = 4096;
constexpr std::size_t most_descriptions = 1024;
constexpr Time longest_back_off = 30 * second;
}  // namespace

Remote::Remote(Time now, const RemoteConfig& config, const RemotePosition& position, Number last,
               Journal& journal, NumberedHistory& history)
    : position_(position), stored_(position), last_(last), journal_(journal), history_(history) {
    configure(config);
    // P16: the waits begin anew at a restart.
    sent_.add({position.confirmed + 1, position.sent}, now, 0);
}

void Remote::configure(const RemoteConfig& config) {
    config_ = config;
    config_.max_in_flight = std::max<std::size_t>(config_.max_in_flight, 1);
    config_.batch_bytes = std::max<std::uint64_t>(config_.batch_bytes, 1);
    sent_.set_reply_timeout(config_.reply_timeout);
    outage_.set_pace(knock_interval(), std::clamp(config_.reply_timeout, knock_interval(), longest_back_off));
}

void Remote::numbered(Number last) {
    last_ = std::max(last_, last);
    numbered_since_request_ = true;
}

void Remote::set_blocked(std::optional<Number> first) {
    blocked_ = first;
    if (reported_blocked_ != blocked_) reported_blocked_.reset();
}

void Remote::set_paused(bool paused) {
    paused_ = paused;
}

void Remote::set_resting(bool resting) {
    resting_ = resting;
}

void Remote::stop(Stop reason, std::string detail) {
    if (position_.stop != Stop::none || reason == Stop::none) return;
    fired(Rule::P9);
    position_.stop = reason;
    stop_detail_ = std::move(detail);
    std::string message = describe(reason);
    if (!stop_detail_.empty()) message += " (" + stop_detail_ + ")";
    journal_.write({Level::critical, "P9", std::move(message), see_status, {}});
}

void Remote::answered(Time now, BodyId id, const CentralHeader& header, std::span<const Message> messages) {
    auto found = in_flight_.find(id);
    if (found == in_flight_.end()) return;
    const std::optional<Identity> own = own_identity(header);  // may throw, so nothing has changed yet
    const BodyInFlight body = std::move(found->second);
    in_flight_.erase(found);
    last_answered_ = std::max(last_answered_, body.departure);
    if (outage_.contact_found(now, !body.carried.empty())) report_outage_over();
    if (!header.taken && header.stop == Stop::none) {
        outage_.not_taken(now, body.departure, departures_);
        return settle();
    }
    check_history(body, header, own);
    if (position_.stop == Stop::none) {
        mark_sent(body);
        enqueue(body, messages);
    }
    remember(now, body, header);
    mark_held(now);
    settle();
}

void Remote::unanswered(Time now, BodyId id, std::string_view reason) {
    auto found = in_flight_.find(id);
    if (found == in_flight_.end()) return;
    // Its numbers are no longer on their way: those that were in L are formed again by R1b.
    const BodyInFlight body = std::move(found->second);
    in_flight_.erase(found);
    // One journal line at an outage's begin.
    if (outage_.contact_lost(now, body.departed, !body.carried.empty()))
        journal_.write({Level::warning,
                        "P16",
                        "no answer from the central: " + std::string(reason),
                        "Check the central, the network and the link's URL.",
                        {}});
    settle();
}

/// A's identity at the number that B tells; nullopt: there is nothing to compare.
std::optional<Identity> Remote::own_identity(const CentralHeader& header) {
    if (header.stop != Stop::none || !header.started || header.written > last_) return std::nullopt;
    return header.written == position_.start ? position_.start_identity : history_.identity(header.written);
}

/// P9 as A sees it: B's number and identity in any authentic answer, however late it comes.
void Remote::check_history(const BodyInFlight& body, const CentralHeader& header,
                           const std::optional<Identity>& own) {
    if (header.stop != Stop::none) return stop(header.stop);
    const auto seen = [&] {
        return "S = " + std::to_string(header.written) +
               " at the central, S = " + std::to_string(position_.confirmed) +
               ", M = " + std::to_string(last_) + " here";
    };
    if (!header.started && body.confirmed > position_.start)
        return stop(Stop::central_lost_history, "it has not started");
    if (!header.started) return;
    // What B holds counts like what it has written: A never let go of a number before it was durable here.
    if (std::max(header.written, header.held) > last_) return stop(Stop::remote_lost_history, seen());
    if (header.written < body.confirmed) return stop(Stop::central_lost_history, seen());
    if (own && *own != header.identity) stop(Stop::other_history, seen());
}

/// P15: keeps the newest header. Answers overtake each other: one whose body left after the kept header came
/// is newer; of two that were on their way together the one that tells of more progress counts, then the one
/// that left later.
void Remote::remember(Time now, const BodyInFlight& body, const CentralHeader& header) {
    const auto rank = [](const CentralHeader& told, std::uint64_t departure) {
        return std::tuple(told.written, told.held, departure);
    };
    const bool newer = !central_ || body.departed >= last_told_ ||
                       rank(header, body.departure) > rank(*central_, central_departure_);
    if (!newer) return;
    central_ = header;
    central_departure_ = body.departure;
    last_told_ = now;
}

/// P16: an authentic answer to the body came, so what it held is sent.
void Remote::mark_sent(const BodyInFlight& body) {
    for (Range range : body.carried.whole) became_sent(range, body.departed, body.departure);
    for (const CarriedParts& carried : body.carried.parts) {
        if (carried.n <= position_.confirmed || sent_.contains(carried.n)) continue;
        PartlySent& record = partly_sent_[carried.n];
        if (record.parts != carried.parts) record = {carried.parts, {}};
        for (std::uint32_t part = carried.first_part; part <= carried.last_part; ++part)
            record.sent.insert(part);
        if (record.sent.size() == record.parts)
            became_sent({carried.n, carried.n}, body.departed, body.departure);
    }
}

/// P15: what B says it holds is not sent (again): it did arrive, only the answer did not.
void Remote::mark_held(Time now) {
    if (position_.stop != Stop::none || !central_ || !central_->started) return;
    Range held{position_.sent + 1, std::min(std::max(central_->written, central_->held), last_)};
    if (barred()) held.last = std::min(held.last, *blocked_ - 1);
    became_sent(held, now, departures_);
}

void Remote::became_sent(Range range, Time since, std::uint64_t departure) {
    range.first = std::max(range.first, position_.confirmed + 1);
    if (range.empty()) return;
    sent_.add(range, since, departure);
    partly_sent_.erase(partly_sent_.lower_bound(range.first), partly_sent_.upper_bound(range.last));
    position_.sent = std::max(position_.sent, sent_.contiguous_to(position_.sent + 1));
}

void Remote::enqueue(const BodyInFlight& body, std::span<const Message> messages) {
    for (const Message& message : messages) {
        if (const auto* confirmation = std::get_if<TransferConfirmation>(&message)) {
            enqueue(*confirmation);
        } else if (const auto* request = std::get_if<TransferRequest>(&message)) {
            for (const Missing& missing : request->numbers) {
                if (requests_.size() < most_requests_kept) requests_.push_back({missing, body.departure});
            }
            fresh_ = true;
        } else if (const auto* state = std::get_if<StateRequest>(&message)) {
            state_request_ = std::max(state_request_.value_or(0), state->written);
            numbered_since_request_ = false;
        } else if (const auto* descriptions = std::get_if<DescriptionRequest>(&message)) {
            for (std::uint64_t id : descriptions->ids)
                if (descriptions_.size() < most_descriptions && !served_.descriptions.contains(id))
                    descriptions_.insert(id);
        }
        // Kinds that only A sends mean nothing when B sends them.
    }
}

void Remote::enqueue(const TransferConfirmation& confirmation) {
    for (Range range : confirmation.numbers) {
        if (range.empty()) continue;
        // P16: a confirmation of a number that A never gave.
        if (range.last > last_) return stop(Stop::remote_lost_history);
        confirmations_.add(range);
        fresh_ = true;
    }
}

void Remote::report_outage_over() {
    journal_.write({Level::information, "P16", "the central answers again", "", {}});
}

void Remote::settle() {
    std::uint64_t first = departures_ + 1;
    for (const auto& [id, body] : in_flight_) first = std::min(first, body.departure);
    sent_.settle(first - 1);
}

RemoteHeader Remote::header() const {
    RemoteHeader header;
    header.start = position_.start;
    header.start_identity = position_.start_identity;
    header.confirmed = position_.confirmed;
    header.last = last_;
    header.sent = position_.sent;
    if (blocked_ && state_of(*blocked_) == RecordState::blocked) header.blocked_at = *blocked_;
    header.paused = paused_;
    header.stop = position_.stop;
    return header;
}

RecordState Remote::state_of(Number n) const {
    if (n <= position_.confirmed) return RecordState::confirmed;
    if (sent_.contains(n)) return RecordState::sent;
    // What left before it was blocked is on its way; it is blocked only when its body turns out to be lost.
    if (blocked_ != n || is_in_flight(n)) return RecordState::logged;
    return RecordState::blocked;
}

/// Whole or in part.
bool Remote::is_in_flight(Number n) const {
    return std::any_of(in_flight_.begin(), in_flight_.end(), [n](const auto& flying) {
        const Carried& carried = flying.second.carried;
        return std::any_of(carried.whole.begin(), carried.whole.end(),
                           [n](Range range) { return range.contains(n); }) ||
               std::any_of(carried.parts.begin(), carried.parts.end(),
                           [n](const CarriedParts& parts) { return parts.n == n; });
    });
}

/// Forming stops at the blocked record, which has not become S before it was blocked.
bool Remote::barred() const {
    return blocked_ && *blocked_ > position_.confirmed && !sent_.contains(*blocked_);
}

}  // namespace onerepl
