// The simulated sender: numbering, positions, bodies, answers, crashes; and what must hold on A.
#include "remote_node.h"

#include "central_node.h"

#include <algorithm>

namespace onerepl::sim {

namespace {
RemoteConfig config_of(const Options& options) {
    return {options.reply_timeout, options.send_interval, options.max_in_flight, options.batch_bytes};
}
}  // namespace

RemoteNode::RemoteNode(Context& context, std::size_t index, RemoteStore store)
    : context_(context),
      index_(index),
      name_(index == 0 ? "A" : "A'"),
      journal_(context, name_),
      store_(std::move(store)) {
    context_.clock.after(millisecond, [this] { start(); });
}

void RemoteNode::start() {
    if (remote_) return;
    ++epoch_;
    context_.trace(name_, "starts: M " + std::to_string(store_.history.last()) + ", S " +
                              std::to_string(store_.position.confirmed) + ", sent " +
                              std::to_string(store_.position.sent));
    remote_.emplace(context_.clock.now(), config_of(context_.options), store_.position, store_.history.last(),
                    journal_, static_cast<NumberedHistory&>(*this));
    states_.clear();
    delivered_ = RangeSet({{1, store_.position.sent}});
    next_wake_ = 0;
    turn();
}

void RemoteNode::crash() {
    context_.trace(name_, "crashes");
    remote_.reset();
    unflushed_.reset();
    waiting_.clear();
    context_.clock.after(context_.random.between(millisecond, second), [this] { start(); });
}

void RemoteNode::restore(const RemoteStore& store) {
    context_.trace(name_, "is restored from an older copy: M " + std::to_string(store.history.last()));
    store_ = store;
    departures_.clear();
    crash();
}

std::optional<Identity> RemoteNode::identity(Number n) {
    if (n < store_.purged || n > store_.history.last()) return std::nullopt;
    return store_.history.identity(n, store_.id);
}

void RemoteNode::purge() {
    store_.purged = store_.position.confirmed;
}

void RemoteNode::commit(std::vector<Change> transaction) {
    store_.committed.push_back(std::move(transaction));
    wake_after(context_.random.between(0, 5 * millisecond));
}

void RemoteNode::block(Number n) {
    context_.trace(name_, "block " + std::to_string(n));
    if (n == 0 || n <= store_.position.confirmed) return;
    store_.blocked.insert(n);
    wake_after(0);
}

void RemoteNode::unblock_all() {
    if (!store_.blocked.empty()) context_.trace(name_, "unblock all");
    store_.blocked.clear();
    wake_after(0);
}

void RemoteNode::pause(bool paused) {
    context_.trace(name_, paused ? "pause" : "resume");
    store_.paused = paused;
    wake_after(0);
}

void RemoteNode::wake_after(Time delay) {
    context_.clock.after(delay, [this, epoch = epoch_] {
        if (epoch == epoch_) turn();
    });
}

void RemoteNode::guarded(const std::function<void()>& work) {
    try {
        work();
    } catch (const Crash&) {
        crash();
    }
}

void RemoteNode::maybe_crash() {
    if (context_.happens(context_.options.crash_remote)) throw Crash{};
}

/// P4: what is committed gets its numbers, durable before the first message.
void RemoteNode::number() {
    if (store_.committed.empty() || context_.happens(0.05)) return;
    std::vector<Change> changes;
    for (const auto& transaction : store_.committed)
        changes.insert(changes.end(), transaction.begin(), transaction.end());
    store_.committed.clear();
    store_.history.append(changes, store_.id, context_.random);
    if (unflushed_) store_.position = *unflushed_;
    unflushed_.reset();
    context_.trace(name_, "numbers up to " + std::to_string(store_.history.last()));
}

void RemoteNode::persist() {
    if (!remote_->position_changed()) return;
    unflushed_ = remote_->position();
    remote_->position_stored();
    // A stop is told to the administrator by a commit that is waited for; positions may be lost in a crash.
    if (unflushed_->stop == Stop::none && context_.happens(0.3)) return;
    store_.position = *unflushed_;
    unflushed_.reset();
}

void RemoteNode::turn() {
    if (!remote_) return;
    guarded([this] {
        number();
        maybe_crash();
        remote_->numbered(store_.history.last());
        remote_->set_paused(store_.paused);
        std::optional<Number> blocked;
        for (Number n : store_.blocked)
            if (!blocked && remote_->state_of(n) != RecordState::sent &&
                remote_->state_of(n) != RecordState::confirmed)
                blocked = n;
        remote_->set_blocked(blocked);
        check_states(true);
        persist();
        maybe_crash();
        while (auto outgoing = remote_->next(context_.clock.now())) {
            check_states(false);
            check_outgoing(*outgoing);
            persist();
            send(*outgoing);
            maybe_crash();
        }
        check_states(false);
        persist();
        const Time wake = remote_->wake_at();
        if (wake == std::numeric_limits<Time>::max()) return;
        if (wake <= context_.clock.now()) throw Violation(name_ + " would spin");
        if (next_wake_ <= context_.clock.now() || wake < next_wake_) {
            next_wake_ = wake;
            wake_after(wake - context_.clock.now());
        }
    });
}

void RemoteNode::send(const Outgoing& outgoing) {
    Formed formed = form(store_, outgoing, remote_->header(), context_.options.batch_bytes);
    const bool wanted = !outgoing.repeats.empty() || !outgoing.transfers.numbers.empty();
    if (wanted && formed.carried.whole.empty() && formed.carried.parts.empty())
        throw Violation(name_ + ": a body without room for one record");
    maybe_crash();
    const std::uint64_t body = ++bodies_;
    formed.packet->remote = index_;
    formed.packet->body = body;
    check_not_on_its_way(formed.carried);
    remote_->departed(context_.clock.now(), body, outgoing, formed.carried);
    waiting_[body] = formed.carried;
    note_departure(formed, outgoing, body);
    CentralNode* central = context_.central;
    context_.channel.send(formed.packet, [central, epoch = epoch_, this](std::optional<Arrival> arrival) {
        central->receive(std::move(arrival),
                         [this, epoch](std::uint64_t answered, std::optional<Arrival> answer) {
                             arrived(epoch, answered, std::move(answer));
                         });
    });
    context_.clock.after(context_.options.reply_timeout,
                         [this, epoch = epoch_, body] { timed_out(epoch, body); });
}

void RemoteNode::note_departure(const Formed& formed, const Outgoing& outgoing, std::uint64_t body) {
    std::string what;
    for (Range range : formed.carried.whole) {
        what += " " + to_string(range);
        context_.departed = std::max(context_.departed, range.last);
        for (Number n = range.first; n <= range.last; ++n) ++departures_[n];
    }
    for (const CarriedParts& parts : formed.carried.parts) {
        what += " " + std::to_string(parts.n) + "(" + std::to_string(parts.first_part) + ".." +
                std::to_string(parts.last_part) + "/" + std::to_string(parts.parts) + ")";
        context_.departed = std::max(context_.departed, parts.n);
        if (parts.first_part == 0) ++departures_[parts.n];
    }
    for (Range range : outgoing.confirmation_request) what += " confirm? " + to_string(range);
    if (outgoing.remote_state) what += " state";
    context_.trace(name_, "sends body " + std::to_string(body) + ":" + what);
}

/// P16: nothing is sent again while a body with it is unanswered.
void RemoteNode::check_not_on_its_way(const Carried& carried) const {
    for (const auto& [body, flying] : waiting_) {
        for (Range a : flying.whole)
            for (Range b : carried.whole)
                if (!intersection(a, b).empty()) throw Violation(name_ + ": sends what is on its way");
        for (const CarriedParts& a : flying.parts)
            for (const CarriedParts& b : carried.parts)
                if (a.n == b.n && a.first_part <= b.last_part && b.first_part <= a.last_part)
                    throw Violation(name_ + ": sends parts that are on their way");
    }
}

void RemoteNode::note_delivery(const Carried& carried, const CentralHeader& header) {
    for (Range range : carried.whole) delivered_.add(range);
    for (const CarriedParts& parts : carried.parts) delivered_.add({parts.n, parts.n});
    delivered_.add({1, header.held});
}

void RemoteNode::timed_out(std::uint64_t epoch, std::uint64_t body) {
    if (epoch != epoch_ || !remote_ || waiting_.erase(body) == 0) return;
    context_.trace(name_, "body " + std::to_string(body) + " timed out");
    remote_->unanswered(context_.clock.now(), body, "timeout");
    turn();
}

void RemoteNode::arrived(std::uint64_t epoch, std::uint64_t body, std::optional<Arrival> arrival) {
    const auto found = waiting_.find(body);
    if (epoch != epoch_ || !remote_ || found == waiting_.end()) return;
    const Carried carried = found->second;
    waiting_.erase(found);
    if (!arrival || arrival->packet->refused) {
        remote_->unanswered(context_.clock.now(), body, "HTTP error");
    } else {
        context_.trace(name_, "answer to body " + std::to_string(body));
        note_delivery(carried, std::get<CentralHeader>(arrival->header));
        remote_->answered(context_.clock.now(), body, std::get<CentralHeader>(arrival->header),
                          arrival->messages);
        check_states(false);
        check_fork(*arrival->packet);
    }
    turn();
}

/// Only the transitions of the specification's table (and L, S, C in one step where both are due).
void RemoteNode::check_states(bool after_block) {
    for (Number n = remote_->position().start + 1; n <= remote_->last(); ++n) {
        const RecordState now = remote_->state_of(n);
        auto [known, added] = states_.try_emplace(n, now);
        const RecordState before = known->second;
        known->second = now;
        if (added || before == now) continue;
        const auto is = [&](RecordState from, RecordState to) { return before == from && now == to; };
        const bool allowed = is(RecordState::logged, RecordState::sent) ||
                             is(RecordState::sent, RecordState::confirmed) ||
                             is(RecordState::logged, RecordState::confirmed) ||
                             is(RecordState::blocked, RecordState::confirmed) ||
                             (is(RecordState::logged, RecordState::blocked)) ||
                             (after_block && is(RecordState::blocked, RecordState::logged));
        if (!allowed)
            throw Violation(name_ + ": record " + std::to_string(n) + " went from " +
                            static_cast<char>(before) + " to " + static_cast<char>(now));
        // P16: sent means that an authentic answer came.
        if (now == RecordState::sent && !delivered_.contains(n))
            throw Violation(name_ + ": record " + std::to_string(n) + " is S without an answer");
    }
    if (remote_->position().confirmed > std::max(context_.central->most_written(), remote_->position().start))
        throw Violation(name_ + ": a confirmed record is not written");
}

/// P9: after an exchange both ways a fork is known.
void RemoteNode::check_fork(const Packet& answer) {
    const CentralHeader& header = std::get<CentralHeader>(answer.header);
    if (!header.started) return;
    const bool forked =
        answer.written > store_.history.last() || store_.history.hash(answer.written) != answer.written_hash;
    if (forked && remote_->stopped() == Stop::none) throw Violation(name_ + ": a fork was missed");
}

/// P15: no first sending of what B holds, nothing while paused.
void RemoteNode::check_outgoing(const Outgoing& outgoing) {
    if (outgoing.transfers.numbers.empty()) return;
    if (store_.paused) throw Violation(name_ + ": sends while paused");
    const auto& central = remote_->central();
    if (!central) return;
    if (outgoing.transfers.numbers.first <= central->held) throw Violation(name_ + ": sends what B holds");
    if (central->flow == FlowState::paused || central->flow == FlowState::stopped)
        throw Violation(name_ + ": sends to a paused central");
}

}  // namespace onerepl::sim
