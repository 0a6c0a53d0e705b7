// The simulated receivers: a turn a body, atomic commits, crashes at every step; and what must hold on B.
#include "central_node.h"

#include "remote_node.h"

#include <algorithm>

namespace onerepl::sim {

namespace {

CentralConfig config_of(const Options& options) {
    return {options.reply_timeout, options.state_query_interval, options.room};
}

bool is_part(const QueueRow& row) {
    return row.meta.parts > 1;
}

/// A queue row as the core sees it.
void add_row(CentralState& state, const QueueRow& row) {
    if (!is_part(row)) {
        state.waiting.push_back({row.meta.numbers, row.meta.last_end, row.meta.size, row.meta.batches});
        return;
    }
    const Number n = row.meta.numbers.first;
    auto record = std::find_if(state.partial.begin(), state.partial.end(),
                               [&](const HeldParts& held) { return held.n == n; });
    if (record == state.partial.end())
        record = state.partial.insert(record,
                                      {n, row.meta.last_end == n, row.meta.parts, {}, 0, row.meta.batches});
    record->held.insert(row.meta.part);
    record->size += row.meta.size;
}

}  // namespace

CentralNode::CentralNode(Context& context) : context_(context), journal_(context, "B") {
    context_.clock.after(100 * millisecond, [this] { tick(); });
}

CentralState CentralNode::load() const {
    CentralState state = store_.state;
    for (const QueueRow& row : store_.queue)
        if (row.meta.numbers.last > state.written) add_row(state, row);
    return state;
}

CentralNode::Turn CentralNode::begin() {
    return {
        Central(context_.clock.now(), config_of(context_.options), load(), waits_, journal_), store_, {}, {}};
}

void CentralNode::crash() {
    context_.trace("B", "crashes");
    up_ = false;
    ++epoch_;
    waits_ = {};
    context_.clock.after(context_.random.between(millisecond, second), [this] {
        context_.trace("B", "starts: S " + std::to_string(store_.state.written));
        up_ = true;
        check();
    });
}

void CentralNode::restore(const CentralStore& store) {
    context_.trace("B", "is restored from an older copy: S " + std::to_string(store.state.written));
    store_ = store;
    crash();
}

void CentralNode::maybe_crash() {
    if (context_.happens(context_.options.crash_central)) throw Crash{};
}

void CentralNode::receive(std::optional<Arrival> arrival, const Answer& answer) {
    if (!up_ || !arrival)
        return;  // nobody listens, or what came is not authentic: no answer, A runs into its timeout
    if (context_.happens(context_.options.side_by_side)) return receive_side_by_side(*arrival, answer);
    try {
        Turn turn = begin();
        offer_all(turn, *arrival);
        maybe_crash();
        if (context_.happens(context_.options.write_fails)) {
            context_.trace("B", "the write fails for now");
            return refuse(*arrival->packet, answer);
        }
        apply(turn);
        maybe_crash();
        commit(turn);
        maybe_crash();
        Reply reply = turn.central.reply(context_.clock.now());
        check_reply(reply);
        auto packet = std::make_shared<Packet>();
        packet->header = reply.header;
        packet->messages = std::move(reply.messages);
        packet->written = store_.state.written;
        packet->written_hash = store_.hash;
        send(packet, *arrival->packet, answer);
        maybe_crash();
    } catch (const Crash&) {
        crash();
    }
}

void CentralNode::offer_all(Turn& turn, const Arrival& arrival) {
    std::optional<Number> echo;
    for (const Message& message : arrival.messages)
        if (auto* state = std::get_if<RemoteState>(&message)) echo = state->echo;
    const bool transfers =
        turn.central.admit(context_.clock.now(), std::get<RemoteHeader>(arrival.header), echo);
    const CentralState& seen = turn.central.state();
    if (!turn.next.state.started && seen.started)
        turn.next.hash = context_.remotes[arrival.packet->remote]->store().history.hash(seen.start);
    for (const Message& message : arrival.messages) {
        const auto* transfer = std::get_if<ObjectTransfer>(&message);
        if (transfer == nullptr) {
            if (auto* description = std::get_if<Description>(&message))
                turn.next.descriptions.insert(description->description[0]);
            turn.central.take(message);
            continue;
        }
        if (!transfers) continue;
        const Number count = transfer->parts == 1 ? count_of(transfer->record) : 1;
        const Offer what = turn.central.offer(*transfer, count);
        if (what == Offer::replace) turn.replaced.insert(transfer->n);
        if (what == Offer::replace)
            std::erase_if(turn.taken, [&](const auto& taken) { return taken.first.first == transfer->n; });
        if (what == Offer::take || what == Offer::replace)
            turn.taken[{transfer->n, transfer->part}] =
                std::make_shared<const Bytes>(transfer->record.begin(), transfer->record.end());
    }
}

/// The bytes of the record that n belongs to; `first` is its first number (a skip range has several).
std::shared_ptr<const Bytes> CentralNode::record(const Turn& turn, Number n, Number& first) const {
    const auto covers = [&](Number from, const std::shared_ptr<const Bytes>& bytes) {
        return from <= n && n < from + count_of(*bytes);
    };
    for (const Spool& taken : turn.central.to_spool()) {
        if (taken.parts > 1 || !taken.numbers.contains(n)) continue;
        for (auto found = turn.taken.upper_bound({n, 0}); found != turn.taken.begin();) {
            --found;
            first = found->first.first;
            if (covers(first, found->second)) return found->second;
            if (first + 64 < n) break;
        }
    }
    for (const QueueRow& row : turn.next.queue) {
        if (is_part(row)) continue;
        for (auto found = row.records.upper_bound(n); found != row.records.begin();) {
            --found;
            first = found->first;
            if (covers(first, found->second)) return found->second;
            break;
        }
    }
    first = n;
    return assembled(turn, n);
}

std::shared_ptr<const Bytes> CentralNode::assembled(const Turn& turn, Number n) const {
    std::map<std::uint32_t, std::shared_ptr<const Bytes>> parts;
    for (const QueueRow& row : turn.next.queue)
        if (is_part(row) && row.meta.numbers.first == n && !turn.replaced.contains(n))
            parts.emplace(row.meta.part, row.records.at(n));
    for (auto taken = turn.taken.lower_bound({n, 0}); taken != turn.taken.end() && taken->first.first == n;
         ++taken)
        parts[taken->first.second] = taken->second;
    auto bytes = std::make_shared<Bytes>();
    for (const auto& [part, piece] : parts) bytes->insert(bytes->end(), piece->begin(), piece->end());
    return bytes;
}

void CentralNode::apply(Turn& turn) {
    for (;;) {
        const Ready ready = turn.central.ready();
        if (ready.numbers.empty()) return;
        if (store_.state.failed_at || store_.state.paused)
            throw Violation("B: goes on after F or in a pause");
        if (!write(turn, ready.numbers)) return;
    }
}

bool CentralNode::write(Turn& turn, Range numbers) {
    Number done = numbers.first - 1;
    std::uint64_t hash = turn.next.hash;
    std::uint64_t done_hash = hash;
    Number failed = 0;
    std::uint64_t lacking = 0;
    for (Number n = numbers.first; n <= numbers.last && failed == 0 && lacking == 0; ++n) {
        Number first = n;
        const auto bytes = record(turn, n, first);
        const auto change = change_of(*bytes);
        if (!change) throw Violation("B: record " + std::to_string(n) + " is not what A sent");
        if (change->conflict && !turn.next.resolved.contains(n)) failed = n;
        if (change->description != 0 && !turn.next.descriptions.contains(change->description))
            lacking = change->description;
        hash = extend_hash(hash, *change);
        const bool end = change->skip ? n == numbers.last : change->end;
        if (end && failed == 0 && lacking == 0) done = n, done_hash = hash;
    }
    if (done >= numbers.first) {
        turn.central.applied(done);
        turn.next.hash = done_hash;
    }
    if (failed != 0) turn.central.failed(failed, "conflict");
    if (lacking != 0) turn.central.lacking(std::span(&lacking, 1));
    return failed == 0 && lacking == 0;
}

/// Puts what was taken and is not written into `queue`, where an equal key wins that is there already.
void CentralNode::spool(Turn& turn, std::vector<QueueRow>& queue) {
    for (Range range : turn.central.evicted())
        std::erase_if(queue, [&](const QueueRow& row) {
            return range.first <= row.meta.numbers.first && row.meta.numbers.last <= range.last;
        });
    std::erase_if(queue, [&](const QueueRow& row) {
        return is_part(row) && turn.replaced.contains(row.meta.numbers.first);
    });
    for (const Spool& spool : turn.central.to_spool()) {
        QueueRow row{spool, {}};
        if (spool.parts > 1) {
            row.records[spool.numbers.first] = turn.taken.at({spool.numbers.first, spool.part});
        } else {
            for (auto& [key, bytes] : turn.taken)
                if (key.first <= spool.numbers.last && key.first + count_of(*bytes) > spool.numbers.first)
                    row.records[key.first] = bytes;
        }
        const bool there = std::any_of(queue.begin(), queue.end(), [&](const QueueRow& other) {
            return other.meta.numbers.first == spool.numbers.first && other.meta.part == spool.part &&
                   other.meta.parts == spool.parts && other.meta.numbers.last >= spool.numbers.last;
        });
        if (!there) queue.push_back(std::move(row));
    }
    turn.central.spooled();
}

void CentralNode::commit(Turn& turn) {
    spool(turn, turn.next.queue);
    CentralState state = turn.central.state();
    state.waiting.clear();
    state.partial.clear();
    turn.next.state = state;
    std::erase_if(turn.next.queue,
                  [&](const QueueRow& row) { return row.meta.numbers.last <= state.written; });
    check_written(turn.next);
    if (state.written != store_.state.written || state.stop != store_.state.stop)
        context_.trace("B", "commits: S " + std::to_string(state.written) +
                                (state.stop == Stop::none ? "" : ", stopped"));
    store_ = std::move(turn.next);
    most_written_ = std::max(most_written_, state.written);
}

/// B is always a prefix of A's numbered history, at the end of a transaction (P5).
void CentralNode::check_written(const CentralStore& next) const {
    const Number written = next.state.written;
    if (!next.state.started) return;
    if (written < store_.state.written) throw Violation("B: S_b went back");
    const auto is_prefix_of = [&](const History& history) {
        return written <= history.last() && history.hash(written) == next.hash &&
               (written == next.state.start || history.change(written).end || history.change(written).skip);
    };
    for (const RemoteNode* remote : context_.remotes)
        if (is_prefix_of(remote->store().history)) return;
    for (const History& history : context_.other_histories)
        if (is_prefix_of(history)) return;
    throw Violation("B: what is written up to " + std::to_string(written) + " is not a prefix of A");
}

/// Nothing is confirmed or told that is not on disk.
void CentralNode::check_reply(const Reply& reply) const {
    for (const Message& message : reply.messages) {
        const auto* confirmation = std::get_if<TransferConfirmation>(&message);
        if (confirmation == nullptr) continue;
        for (Range range : confirmation->numbers) {
            if (range.last > store_.state.written) throw Violation("B: confirms what is not written");
            context_.confirmed = std::max(context_.confirmed, range.last);
        }
    }
    if (reply.header.written != store_.state.written) throw Violation("B: tells another S_b than it has");
    RangeSet held;
    for (const QueueRow& row : store_.queue)
        if (!is_part(row)) held.add(row.meta.numbers);
    const CentralState state = load();
    for (const HeldParts& record : state.partial)
        if (record.held.size() == record.parts) held.add({record.n, record.n});
    held.add({0, store_.state.written});
    if (reply.header.held > held.contiguous_to(0)) throw Violation("B: tells to hold what it does not hold");
}

/// A look at the queue without a body: after a restart, a decision of the administrator, or another
/// receiver's spooling.
void CentralNode::check() {
    if (!up_) return;
    try {
        Turn turn = begin();
        apply(turn);
        maybe_crash();
        commit(turn);
    } catch (const Crash&) {
        crash();
    }
}

/// A receiver that does not get the link: it looks at the tables as they are now, spools and commits some
/// time later, and answers with the header alone; the owner of the link looks again.
void CentralNode::receive_side_by_side(const Arrival& arrival, const Answer& answer) {
    auto turn = std::make_shared<Turn>(begin());
    offer_all(*turn, arrival);
    const Time late = context_.random.between(0, 20 * millisecond);
    context_.clock.after(late, [this, turn, arrival, answer, epoch = epoch_] {
        if (epoch != epoch_ || !up_) return;
        spool(*turn, store_.queue);
        const CentralState& seen = turn->central.state();
        if (!store_.state.started && seen.started) {
            store_.state.started = true;
            store_.state.start = store_.state.written = seen.start;
            store_.state.start_identity = store_.state.identity = seen.start_identity;
            store_.hash = turn->next.hash;
        }
        store_.descriptions.insert(turn->next.descriptions.begin(), turn->next.descriptions.end());
        if (seen.stop != Stop::none) store_.state.stop = seen.stop;
        auto packet = std::make_shared<Packet>();
        packet->header = turn->central.header();
        packet->written = seen.written;
        packet->written_hash = turn->next.hash;
        send(packet, *arrival.packet, answer);
        check();
    });
}

void CentralNode::send(std::shared_ptr<Packet> packet, const Packet& request, const Answer& answer) {
    packet->remote = request.remote;
    packet->body = request.body;
    std::string what;
    for (const Message& message : packet->messages) what += std::string(" ") + name_of(kind_of(message));
    context_.trace("B", "answers body " + std::to_string(request.body) + ":" + what);
    context_.channel.send(packet, [answer, body = request.body](std::optional<Arrival> arrival) {
        answer(body, std::move(arrival));
    });
}

void CentralNode::refuse(const Packet& request, const Answer& answer) {
    auto packet = std::make_shared<Packet>();
    packet->refused = true;
    packet->header = CentralHeader{};
    send(packet, request, answer);
}

void CentralNode::pause(bool paused) {
    context_.trace("B", paused ? "pause" : "resume");
    store_.state.paused = paused;
    check();
}

void CentralNode::resolve() {
    if (!store_.state.failed_at) return;
    context_.trace("B", "resolve " + std::to_string(*store_.state.failed_at));
    store_.resolved.insert(*store_.state.failed_at);
    store_.state.failed_at.reset();
    check();
}

void CentralNode::tick() {
    if (up_) begin().central.tick(context_.clock.now());
    context_.clock.after(300 * millisecond, [this] { tick(); });
}

}  // namespace onerepl::sim
