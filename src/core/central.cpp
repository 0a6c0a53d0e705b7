// The central's side of a link: what every body of A says, one history (P9), and what time alone tells (C1b,
// P12).
#include "core/central.h"

#include "core/rules.h"

#include <algorithm>
#include <limits>

namespace onerepl {

Central::Central(Time now, const CentralConfig& config, CentralState state, CentralWaits& waits,
                 Journal& journal)
    : config_(config), state_(std::move(state)), waits_(waits), journal_(journal) {
    begin(now);
    for (const HeldRun& run : state_.waiting) {
        whole_.add(run.numbers);
        used_ += run.size;
        for (const Batch& batch : run.batches) learn(batch);
    }
    for (const HeldParts& record : state_.partial) {
        if (record.held.size() == record.parts) whole_.add({record.n, record.n});
        used_ += record.size;
        for (const Batch& batch : record.batches) learn(batch);
    }
    whole_.remove({0, state_.written});
}

/// P16: after a restart every wait begins anew.
void Central::begin(Time now) {
    if (waits_.begun) return;
    waits_ = CentralWaits{};
    waits_.begun = true;
    waits_.last_contact = now;
    waits_.last_processed = now;
}

void Central::contact(Time now) {
    if (waits_.reported_silent)
        journal_.write({Level::information, "P12", "the remote is in contact again", "", {}});
    waits_.reported_silent = false;
    waits_.last_contact = now;
}

bool Central::admit(Time now, const RemoteHeader& header, std::optional<Number> echo) {
    contact(now);
    header_ = header;
    if (state_.stop != Stop::none) return false;
    if (!state_.started) {
        // Only a link that begins at both ends has a common start. Where A has confirmations already, B has
        // lost them, or was started anew before A was: A stops when it reads that B has not started.
        if (header.confirmed != header.start || header.stop != Stop::none) {
            report_not_started();
            return false;
        }
        state_.started = true;
        state_.start = state_.written = header.start;
        state_.start_identity = state_.identity = header.start_identity;
        changed_ = true;
    }
    check_history(header, echo);
    if (state_.stop != Stop::none) return false;
    for (const Batch& batch : header.batches) learn(batch);
    return true;
}

/// P9: nothing here can be stopped, but the administrator must know.
void Central::report_not_started() {
    if (waits_.reported_not_started) return;
    fired(Rule::P9);
    waits_.reported_not_started = true;
    journal_.write(
        {Level::critical, "P9", "the remote goes on with a link that has not started here", see_status, {}});
}

/// P9 as B sees it.
void Central::check_history(const RemoteHeader& header, std::optional<Number> echo) {
    // A stopped link of another start is an old message: it says nothing about this one.
    const bool same_start = header.start == state_.start && header.start_identity == state_.start_identity;
    if (header.stop != Stop::none && same_start) return stop(header.stop);
    if (header.confirmed > state_.written) return stop(Stop::central_lost_history);
    // M_a below S_b counts only in the answer that echoes this S_b: A formed it after B had told it.
    if (echo && *echo <= state_.written && header.last < *echo) return stop(Stop::remote_lost_history);
    if (std::any_of(header.batches.begin(), header.batches.end(),
                    [&](const Batch& batch) { return conflicts(batch); }))
        stop(Stop::other_history);
}

/// Whether the batch cannot belong to the history that B has written or holds.
bool Central::conflicts(const Batch& batch) const {
    if (batch.numbers.empty() || batch.numbers.first == 0) return true;
    const Range judged{batch.numbers.first - 1, batch.numbers.last};
    if (judged.contains(state_.written) && identity_at(batch, state_.written) != state_.identity) return true;
    // A history has one batch for a number, and never changes it.
    auto held = batches_.upper_bound(batch.numbers.last);
    return held != batches_.begin() && std::prev(held)->second.numbers.last >= batch.numbers.first &&
           std::prev(held)->second != batch;
}

void Central::learn(const Batch& batch) {
    auto [known, added] = batches_.emplace(batch.numbers.first, batch);
    const bool overlaps =
        (known != batches_.begin() && std::prev(known)->second.numbers.last >= known->first) ||
        (std::next(known) != batches_.end() && std::next(known)->first <= batch.numbers.last);
    if (known->second != batch || overlaps) two_histories_ = true;
}

const Batch* Central::batch_of(Number n) const {
    auto batch = batches_.upper_bound(n);
    if (batch == batches_.begin() || !std::prev(batch)->second.numbers.contains(n)) return nullptr;
    return &std::prev(batch)->second;
}

std::vector<Batch> Central::batches_of(Range numbers) const {
    std::vector<Batch> covering;
    for (auto batch = batches_.upper_bound(numbers.first);; ++batch) {
        if (covering.empty() && batch != batches_.begin()) {
            if (const Batch* first = batch_of(numbers.first)) covering.push_back(*first);
        }
        if (batch == batches_.end() || batch->first > numbers.last) return covering;
        covering.push_back(batch->second);
    }
}

std::optional<Identity> Central::identity_at_end(Number end) const {
    if (end == state_.written) return state_.identity;
    const Batch* batch = batch_of(end);
    if (batch == nullptr) return std::nullopt;
    return identity_at(*batch, end);
}

/// Who said what against what is here.
std::string Central::circumstances() const {
    std::string seen = config_.speaker.empty() ? "" : "told from " + config_.speaker;
    if (!header_) return seen;
    if (!seen.empty()) seen += ": ";
    return seen + "S = " + std::to_string(header_->confirmed) + ", M = " + std::to_string(header_->last) +
           " there, " + std::to_string(state_.written) + " is written here";
}

void Central::stop(Stop reason, std::string detail) {
    if (state_.stop != Stop::none || reason == Stop::none) return;
    fired(Rule::P9);
    state_.stop = reason;
    changed_ = true;
    stop_detail_ = detail.empty() ? circumstances() : std::move(detail);
    std::string message = describe(reason);
    if (!stop_detail_.empty()) message += " (" + stop_detail_ + ")";
    journal_.write({Level::critical, "P9", std::move(message), see_status, {}});
}

CentralHeader Central::header() const {
    CentralHeader header;
    header.started = state_.started;
    header.taken = header_.has_value();
    header.written = state_.written;
    header.identity = state_.identity;
    RangeSet held;
    std::uint64_t size = 0;
    for (const HeldRun& run : state_.waiting) held.add(run.numbers), size += run.size;
    for (const HeldParts& record : state_.partial) {
        if (record.held.size() == record.parts) held.add({record.n, record.n});
        size += record.size;
    }
    header.held = std::max(state_.written, held.contiguous_to(state_.written + 1));
    header.room = config_.room > size ? config_.room - size : 0;
    header.stop = state_.stop;
    if (state_.stop != Stop::none) {
        header.flow = FlowState::stopped;
    } else if (state_.failed_at) {
        header.flow = FlowState::failed;
        header.failed_at = *state_.failed_at;
    } else if (state_.paused) {
        header.flow = FlowState::paused;
    }
    return header;
}

void Central::report_unanswered() {
    fired(Rule::C1b);
    if (waits_.reported_unanswered) return;
    waits_.reported_unanswered = true;
    journal_.write({Level::warning,
                    "C1b",
                    "the remote does not answer the state request",
                    "Check that the remote runs and that the channel works.",
                    {}});
}

Time Central::tick(Time now, Time heard_from) {
    Time next = std::numeric_limits<Time>::max();
    const Time silent = std::max(waits_.last_contact, heard_from) + config_.reply_timeout;
    if (now < silent) {
        next = silent;
    } else if (!waits_.reported_silent) {
        fired(Rule::P12);
        waits_.reported_silent = true;
        journal_.write({Level::warning,
                        "P12",
                        "no contact with the remote",
                        "Check that the remote runs and that the channel works.",
                        {}});
    }
    if (waits_.state_request_out && !waits_.reported_unanswered) {
        const Time unanswered = state_request_ends(heard_from);
        if (now < unanswered) next = std::min(next, unanswered);
        if (now >= unanswered) report_unanswered();
    }
    return next;
}

}  // namespace onerepl
