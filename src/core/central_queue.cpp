// The central's queue: what is taken of a body (C2b, P1, P15), what of it can be written (C2a, P5), what
// waits.
#include "core/central.h"

#include "core/rules.h"

#include <algorithm>

namespace onerepl {

namespace {
Number first_of(const HeldRun& run) {
    return run.numbers.first;
}
Number first_of(const HeldParts& record) {
    return record.n;
}
bool is_part(const HeldRun&) {
    return false;
}
bool is_part(const Spool& taken) {
    return taken.parts > 1;
}
}  // namespace

Offer Central::offer(const ObjectTransfer& transfer, Number count) {
    processed_ = true;
    ++offered_;
    const Number n = transfer.n;
    const bool sound = transfer.parts != 0 && transfer.part < transfer.parts && count != 0 && header_ &&
                       n <= header_->last && count - 1 <= header_->last - n && batch_of(n) != nullptr;
    if (!sound) {
        journal_.write(
            {Level::warning, "P14", "a transfer does not fit the body that carries it", "", {n, n}});
        return Offer::drop;
    }
    const Range numbers{n, n + count - 1};
    if (numbers.last <= state_.written ||
        whole_.contiguous_to(std::max(n, state_.written + 1)) >= numbers.last) {
        fired(Rule::C2b);
        ++dropped_;
        return Offer::drop;
    }
    return transfer.parts == 1 ? offer_whole(transfer, numbers) : offer_part(transfer);
}

Offer Central::offer_whole(const ObjectTransfer& transfer, Range numbers) {
    if (!make_room(transfer)) return Offer::refuse;
    const bool other_cut = partial_of(transfer.n) != nullptr;
    if (other_cut) forget_parts(transfer.n);
    keep_whole(transfer, numbers);
    return other_cut ? Offer::replace : Offer::take;
}

/// P1: a part counts when all its neighbours are there. Parts of another cut of the same record give way.
Offer Central::offer_part(const ObjectTransfer& transfer) {
    fired(Rule::P1);
    const HeldParts* record = partial_of(transfer.n);
    const bool other_cut = record != nullptr && record->parts != transfer.parts;
    if (record != nullptr && !other_cut && record->held.contains(transfer.part)) {
        fired(Rule::C2b);
        ++dropped_;
        return Offer::drop;
    }
    if (!make_room(transfer)) return Offer::refuse;
    if (other_cut) forget_parts(transfer.n);
    keep_part(transfer);
    return other_cut ? Offer::replace : Offer::take;
}

/// P15: whether it may be taken, after eviction if need be. What follows S_b without a gap is about to be
/// written and needs no room while B runs.
bool Central::make_room(const ObjectTransfer& transfer) {
    const std::uint64_t size = transfer.record.size();
    if (used_ + size <= config_.room) return true;
    const bool next = transfer.n == reach() + 1;
    const bool written_soon = next && transfer.parts == 1 && !state_.failed_at && !state_.paused;
    if (written_soon) return true;
    fired(Rule::P15);
    if (!next || !needed(transfer.n)) return false;
    while (used_ + size > config_.room && evict_highest()) {
    }
    return true;
}

/// The next number belongs to the transaction of S_b + 1 if that has not ended before it.
bool Central::needed(Number n) const {
    return last_end_to(n - 1) <= state_.written;
}

/// Gives up the queue row with the highest numbers, if it lies after a gap.
bool Central::evict_highest() {
    const Number kept = reach() + 1;
    const auto by_number = [](const auto& a, const auto& b) { return first_of(a) < first_of(b); };
    auto run = std::max_element(state_.waiting.begin(), state_.waiting.end(), by_number);
    auto record = std::max_element(state_.partial.begin(), state_.partial.end(), by_number);
    const Number highest_run = run == state_.waiting.end() ? 0 : run->numbers.first;
    const Number highest_record = record == state_.partial.end() ? 0 : record->n;
    if (std::max(highest_run, highest_record) <= kept) return false;
    if (highest_run > highest_record) {
        used_ -= std::min(used_, run->size);
        evicted_.push_back(run->numbers);
        state_.waiting.erase(run);
    } else {
        used_ -= std::min(used_, record->size);
        evicted_.push_back({record->n, record->n});
        forget_taken_parts(record->n);
        state_.partial.erase(record);
    }
    whole_.remove(evicted_.back());
    return true;
}

HeldParts* Central::partial_of(Number n) {
    for (HeldParts& record : state_.partial)
        if (record.n == n) return &record;
    return nullptr;
}

void Central::forget_taken_parts(Number n) {
    std::erase_if(taken_, [n](const Spool& taken) { return taken.parts > 1 && taken.numbers.first == n; });
}

void Central::forget_parts(Number n) {
    forget_taken_parts(n);
    if (HeldParts* record = partial_of(n)) used_ -= std::min(used_, record->size);
    std::erase_if(state_.partial, [n](const HeldParts& record) { return record.n == n; });
}

void Central::keep_whole(const ObjectTransfer& transfer, Range numbers) {
    const std::uint64_t size = transfer.record.size();
    used_ += size;
    whole_.add({std::max(numbers.first, state_.written + 1), numbers.last});
    const bool follows =
        !taken_.empty() && taken_.back().parts == 1 && taken_.back().numbers.last + 1 == numbers.first;
    if (!follows) taken_.push_back({numbers, 0, 0, 1, 0, {}});
    Spool& run = taken_.back();
    run.numbers.last = numbers.last;
    if (transfer.last_of_transaction) run.last_end = numbers.last;
    run.size += size;
}

void Central::keep_part(const ObjectTransfer& transfer) {
    const Number n = transfer.n;
    const std::uint64_t size = transfer.record.size();
    used_ += size;
    taken_.push_back({{n, n}, transfer.last_of_transaction ? n : 0, transfer.part, transfer.parts, size, {}});
    HeldParts* record = partial_of(n);
    if (record == nullptr) {
        state_.partial.push_back(
            {n, transfer.last_of_transaction, transfer.parts, {}, 0, batches_of({n, n})});
        record = &state_.partial.back();
    }
    record->held.insert(transfer.part);
    record->size += size;
    if (record->held.size() == record->parts) whole_.add({n, n});
}

/// The last end of a transaction in what is held without a gap up to `reach`; 0: none.
Number Central::last_end_to(Number reach) const {
    Number end = 0;
    const auto consider = [&](Number first, Number last_end) {
        if (first <= reach && last_end <= reach) end = std::max(end, last_end);
    };
    for (const HeldRun& run : state_.waiting) consider(run.numbers.first, run.last_end);
    for (const HeldParts& record : state_.partial)
        if (record.last_of_transaction && whole_.contains(record.n)) consider(record.n, record.n);
    for (const Spool& taken : taken_)
        if (taken.parts == 1) consider(taken.numbers.first, taken.last_end);
    return end;
}

Ready Central::ready() {
    const bool held_back =
        state_.stop != Stop::none || state_.failed_at || state_.paused || !lacking_.empty();
    if (!state_.started || held_back) return {};
    const Number reached = reach();
    const Number end = last_end_to(reached);
    // P5: what is there without an end of its transaction waits for it.
    if (reached > std::max(end, state_.written)) fired(Rule::P5);
    if (end <= state_.written || !one_history(end)) return {};
    return {{state_.written + 1, end}, *identity_at_end(end)};
}

/// P9: the identity before S_b + 1 is B's own, and each batch up to `end` follows from the one before it.
/// Stops if not.
bool Central::one_history(Number end) {
    if (two_histories_) {
        stop(Stop::other_history);
        return false;
    }
    Number n = state_.written;
    Identity identity = state_.identity;
    while (n < end) {
        const Batch* batch = batch_of(n + 1);
        // Between batches the next one begins where this one ended; only at S_b may we stand inside of one.
        const bool inside = n == state_.written || (batch != nullptr && batch->numbers.first == n + 1);
        if (batch == nullptr || !inside || identity_at(*batch, n) != identity) {
            stop(Stop::other_history);
            return false;
        }
        n = std::min(batch->numbers.last, end);
        identity = identity_at(*batch, n);
    }
    return true;
}

void Central::applied(Number to) {
    if (to <= state_.written) return;
    fired(Rule::C2a);
    state_.identity = identity_at_end(to).value();
    state_.written = to;
    changed_ = true;
    whole_.remove({0, to});
    cut(state_.waiting, to);
    cut(taken_, to);
    std::erase_if(state_.partial, [&](const HeldParts& record) {
        if (record.n <= to) used_ -= std::min(used_, record.size);
        return record.n <= to;
    });
    std::erase_if(taken_, [&](const Spool& taken) { return taken.parts > 1 && taken.numbers.last <= to; });
}

/// Drops runs up to `to`, and the lower numbers of a run across it.
template <class Run>
void Central::cut(std::vector<Run>& runs, Number to) {
    std::erase_if(runs, [&](const Run& run) {
        const bool gone = !is_part(run) && run.numbers.last <= to;
        if (gone) used_ -= std::min(used_, run.size);
        return gone;
    });
    for (Run& run : runs) {
        if (!run.numbers.contains(to)) continue;
        // Rows of the queue keep their bytes until they are gone; of what was taken the written part needs no
        // room.
        run.numbers.first = to + 1;
        if (run.last_end <= to) run.last_end = 0;
    }
}

void Central::failed(Number n, std::string_view reason) {
    fired(Rule::C2a);
    state_.failed_at = n;
    journal_.write({Level::critical,
                    "C2a",
                    "a record cannot be written: " + std::string(reason),
                    "Look at onerepl.failed, repair the conflict and call onerepl_resolve.",
                    {n, n}});
}

void Central::lacking(std::span<const std::uint64_t> ids) {
    lacking_.assign(ids.begin(), ids.end());
}

std::vector<Spool> Central::to_spool() const {
    std::vector<Spool> spools = taken_;
    for (Spool& spool : spools) spool.batches = batches_of(spool.numbers);
    return spools;
}

void Central::spooled() {
    for (const Spool& spool : to_spool())
        if (spool.parts == 1)
            state_.waiting.push_back({spool.numbers, spool.last_end, spool.size, spool.batches});
    taken_.clear();
}

}  // namespace onerepl
