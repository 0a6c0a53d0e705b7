// Frames of one body of A, in the order: descriptions, requests, state, repetitions, first sendings.
#include "pg/pg.h"

#include "sender/body_builder.h"

#include "pg/journal_buffer.h"

#include <algorithm>

namespace onerepl::sender {

struct BodyBuilder::Body {
    const Parties& parties;
    std::uint64_t part_size;
    std::uint64_t budget;
    Built built;
    /// Where the last whole transaction ended: a body is cut there rather than inside the next one, so that B
    /// can write it at once (P5).
    struct Mark {
        std::size_t frames = 0;
        Carried carried;
    } transaction_end{};

    bool empty() const { return built.carried.whole.empty() && built.carried.parts.empty(); }

    void carry(Number n, std::size_t size) {
        auto& whole = built.carried.whole;
        if (!whole.empty() && whole.back().last + 1 == n)
            whole.back().last = n;
        else
            whole.push_back({n, n});
        built.carried.bytes += size;
    }

    void mark_transaction_end() { transaction_end = {built.frames.size(), built.carried}; }

    void cut_at_transaction_end() {
        if (transaction_end.frames == 0) return;
        built.frames.resize(transaction_end.frames);
        built.carried = transaction_end.carried;
    }
};

namespace {

/// The smallest range that holds all transfers, for the batches of the header.
Range span_of(const Carried& carried) {
    Range span{UINT64_MAX, 0};
    for (const Range& range : carried.whole)
        span = {std::min(span.first, range.first), std::max(span.last, range.last)};
    for (const CarriedParts& parts : carried.parts)
        span = {std::min(span.first, parts.n), std::max(span.last, parts.n)};
    return span;
}

/// The batches of what is carried, and that of the witness (P9), in order.
std::vector<Batch> batches_of(Range span, Number witness) {
    std::vector<Batch> batches;
    if (!span.empty()) batches = log::batches(span);
    if (witness == 0) return batches;
    for (const Batch& batch : log::batches({witness, witness})) {
        const auto place = std::lower_bound(
            batches.begin(), batches.end(), batch,
            [](const Batch& a, const Batch& b) { return a.numbers.first < b.numbers.first; });
        if (place == batches.end() || place->numbers.first != batch.numbers.first)
            batches.insert(place, batch);
    }
    return batches;
}

}  // namespace

Built BodyBuilder::build(const Parties& parties, const Outgoing& outgoing, std::uint64_t part_size) {
    Body body{parties, part_size, outgoing.budget, {}, {}};
    for (std::uint64_t id : outgoing.descriptions)
        if (auto description = log::description(id))
            encode_frame(parties, Description{*description}, body.built.frames);
    if (!outgoing.confirmation_request.empty())
        encode_frame(parties, ConfirmationRequest{outgoing.confirmation_request}, body.built.frames);
    if (outgoing.remote_state) encode_frame(parties, RemoteState{*outgoing.remote_state}, body.built.frames);

    bool room = true;
    for (const Missing& repeat : outgoing.repeats) room = room && add(body, repeat);
    if (room && !outgoing.transfers.numbers.empty()) add(body, outgoing.transfers);

    body.built.batches = batches_of(span_of(body.built.carried), outgoing.witness);
    return std::move(body.built);
}

void BodyBuilder::forget_up_to(Number n) {
    if (large_.n != 0 && large_.n <= n) large_ = {};
}

/// False when the body is full.
bool BodyBuilder::add(Body& body, const Missing& wanted) {
    Range numbers = wanted.numbers;
    if (large_.n != 0 && large_.n == numbers.first) {
        if (!add_parts(body, large_.n, large_.last_of_transaction, large_.record, wanted)) return false;
        numbers.first++;
    }
    if (numbers.empty()) return true;
    bool room = true;
    Number expected = numbers.first;
    const log::ReadEnd end = reader_.read(numbers.first, numbers.last, [&](const log::LogEntry& entry) {
        room = add_entry(body, entry, wanted);
        expected = entry.n + 1;
        return room;
    });
    if (end == log::ReadEnd::missing) body.built.missing = expected;
    return room && end == log::ReadEnd::done;
}

void BodyBuilder::note_without_values(Number n, std::string_view fault) {
    if (n <= noted_without_values_) return;
    noted_without_values_ = n;
    JournalEntry entry;
    entry.level = Level::critical;
    entry.rule = "P7";
    entry.numbers = {n, n};
    entry.message =
        (fault.empty() ? "a row is too large to be sent" : "a row cannot be sent: " + std::string(fault)) +
        ": its change goes without the values and fails at the central";
    entry.hint =
        "onerepl.log tells table and key of this number. Bring the row to the central by other means, then "
        "skip the record "
        "there. See onerepl.max_row_size and onerepl.row_limit_policy.";
    pg::write_journal_entry(link_, entry);
}

bool BodyBuilder::add_entry(Body& body, const log::LogEntry& entry, const Missing& wanted) {
    if (entry.without_values) note_without_values(entry.n, entry.fault);
    if (entry.record.size() > body.part_size) {
        if (!body.empty()) return false;  // a record in parts begins a body of its own
        large_ = {entry.n, entry.last_of_transaction, Bytes(entry.record.begin(), entry.record.end())};
        return add_parts(body, entry.n, entry.last_of_transaction, large_.record, wanted);
    }
    if (!body.empty() && body.built.carried.bytes + entry.record.size() > body.budget) {
        body.cut_at_transaction_end();
        return false;
    }
    encode_frame(body.parties,
                 ObjectTransfer{
                     .n = entry.n, .last_of_transaction = entry.last_of_transaction, .record = entry.record},
                 body.built.frames);
    body.carry(entry.n, entry.record.size());
    if (entry.last_of_transaction) body.mark_transaction_end();
    return true;
}

/// Adds the wanted parts of one large record as far as the budget lets, at least one if the body is empty.
bool BodyBuilder::add_parts(Body& body, Number n, bool last_of_transaction, ByteView record,
                            const Missing& wanted) {
    if (!body.empty()) return false;
    const auto parts = static_cast<std::uint32_t>((record.size() + body.part_size - 1) / body.part_size);
    const std::uint32_t first = n == wanted.numbers.first ? wanted.first_part : 0;
    const std::uint32_t last =
        std::min(parts - 1, wanted.numbers.size() == 1 ? wanted.last_part : UINT32_MAX);
    std::uint32_t part = first;
    for (; part <= last; part++) {
        const std::size_t offset = part * body.part_size;
        const ByteView piece =
            record.subspan(offset, std::min<std::size_t>(body.part_size, record.size() - offset));
        if (part > first && body.built.carried.bytes + piece.size() > body.budget) break;
        encode_frame(body.parties,
                     ObjectTransfer{.n = n,
                                    .last_of_transaction = last_of_transaction,
                                    .part = part,
                                    .parts = parts,
                                    .record = piece},
                     body.built.frames);
        body.built.carried.bytes += piece.size();
    }
    if (part > first) body.built.carried.parts.push_back({n, first, part - 1, parts});
    return false;  // nothing else shares a body with parts
}

}  // namespace onerepl::sender
