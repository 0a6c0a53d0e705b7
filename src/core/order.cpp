// Order inside a transaction (P4).
//
// What is known for certain about the order in which changes took effect, and becomes an edge:
//   - the rows of one command took effect in the order in which they were logged;
//   - who consumes a row version comes after who made it;
//   - a barrier of a table (TRUNCATE, ...) and that table's records stay as they were logged: PostgreSQL
//     lets no such statement run while the table has events that are not logged yet;
//   - a unique value is held by one row at a time: who held it before the transaction gives it up first, who
//     holds it in the end takes it last, and in between it is given up before the next one takes it.
// Where edges say nothing, the preferred order does: log order, except that when a younger command's record
// stands between two records of an older command, the older one was already firing its AFTER triggers, so
// that all of its rows were there before the younger command began. A younger command that was logged before
// the older one's first record was nested in a BEFORE trigger (or a function) of it, and log order is good
// enough but where an edge says otherwise.
#include "core/order.h"

#include "core/order_values.h"

#include <algorithm>
#include <utility>

namespace onerepl {

namespace {

using order::Edge;
using order::Index;
using order::none;
using order::UniqueEdges;

bool has_old(const OrderRecord& record) {
    return record.old_offset != 0;
}
bool has_new(const OrderRecord& record) {
    return record.new_offset != 0;
}

/// Small numbers for commands, in order.
class Commands {
  public:
    explicit Commands(std::span<const OrderRecord> records) {
        for (const OrderRecord& record : records)
            if (record.command != no_command && (sorted_.empty() || sorted_.back() != record.command))
                sorted_.push_back(record.command);
        std::ranges::sort(sorted_);
        sorted_.erase(std::unique(sorted_.begin(), sorted_.end()), sorted_.end());
    }
    std::size_t size() const { return sorted_.size(); }
    std::size_t index(std::uint32_t command) const {
        return static_cast<std::size_t>(std::ranges::lower_bound(sorted_, command) - sorted_.begin());
    }

  private:
    std::vector<std::uint32_t> sorted_;
};

/// The preferred order, as a linked list over the records.
class PreferredOrder {
  public:
    explicit PreferredOrder(std::span<const OrderRecord> records)
        : records_(records), next_(records.size(), none) {
        const Commands commands(records);
        std::vector<Index> last_of(commands.size(), none);
        for (Index i = 0; i < records.size(); ++i) {
            if (records[i].command == no_command) {
                insert(i, tail_);
                continue;
            }
            Index& last = last_of[commands.index(records[i].command)];
            insert(i, last == none ? tail_ : place_after(last));
            last = i;
        }
    }
    Index first() const { return head_; }
    Index next(Index i) const { return next_[i]; }

  private:
    /// After `last` of the same command, before the first younger command that follows it; the end if none
    /// does.
    Index place_after(Index last) {
        const std::uint32_t command = records_[last].command;
        Index after = last;
        while (next_[after] != none && records_[next_[after]].command <= command) {
            after = next_[after];
            // Bounds what a strange log can cost; the end is where log order would put it.
            if (++steps_ > 16 * records_.size()) return tail_;
        }
        return after;
    }
    void insert(Index i, Index after) {
        Index& from = after == none ? head_ : next_[after];
        next_[i] = from;
        from = i;
        if (after == tail_) tail_ = i;
    }

    std::span<const OrderRecord> records_;
    std::vector<Index> next_;
    Index head_ = none;
    Index tail_ = none;
    std::size_t steps_ = 0;
};

/// Row versions made by the records of one stretch between barriers, by place: open addressing over record
/// indexes.
class Makers {
  public:
    explicit Makers(std::span<const OrderRecord> records, std::span<const Index> stretch)
        : records_(records), stretch_(stretch) {
        std::size_t size = 16;
        while (size < records.size() + records.size() / 2) size *= 2;
        slots_.assign(size, none);
        for (Index i = 0; i < records.size(); ++i)
            if (has_new(records[i])) add(i);
    }
    /// Who made the version that `i` consumes, or none.
    Index maker(Index i) const {
        const OrderRecord& of = records_[i];
        for (std::size_t slot = start(i, of.old_block, of.old_offset); slots_[slot] != none;
             slot = following(slot)) {
            const Index candidate = slots_[slot];
            const OrderRecord& made = records_[candidate];
            if (candidate != i && made.relation == of.relation && made.new_block == of.old_block &&
                made.new_offset == of.old_offset && stretch_of(candidate) == stretch_of(i))
                return candidate;
        }
        return none;
    }

  private:
    Index stretch_of(Index i) const { return stretch_.empty() ? 0 : stretch_[i]; }
    std::size_t following(std::size_t slot) const { return slot + 1 == slots_.size() ? 0 : slot + 1; }
    std::size_t start(Index i, std::uint32_t block, std::uint16_t offset) const {
        std::uint64_t hash = std::uint64_t{block} << 16 | offset;
        hash ^= std::uint64_t{records_[i].relation} << 48 ^ std::uint64_t{stretch_of(i)} << 40;
        hash *= 0x9e3779b97f4a7c15;
        return static_cast<std::size_t>(hash ^ hash >> 32) & (slots_.size() - 1);
    }
    void add(Index i) {
        std::size_t slot = start(i, records_[i].new_block, records_[i].new_offset);
        while (slots_[slot] != none) slot = following(slot);
        slots_[slot] = i;
    }

    std::span<const OrderRecord> records_;
    std::span<const Index> stretch_;
    std::vector<Index> slots_;
};

/// For each record the last one of its table, and the last barrier. Empty if there is no barrier at all.
struct Barriers {
    std::vector<Index> previous;  // record of the same table
    std::vector<Index>
        barrier;  // of the same table, before the record; also names the stretch (none: the first)

    explicit Barriers(std::span<const OrderRecord> records) {
        if (std::ranges::none_of(records, [](const OrderRecord& record) { return record.barrier; })) return;
        previous.assign(records.size(), none);
        barrier.assign(records.size(), none);
        std::vector<std::pair<std::uint32_t, Index>> last;  // by table
        for (Index i = 0; i < records.size(); ++i) {
            const std::uint32_t relation = records[i].relation;
            auto at = std::ranges::lower_bound(last, relation, {}, &std::pair<std::uint32_t, Index>::first);
            if (at == last.end() || at->first != relation) {
                last.insert(at, {relation, i});
                continue;
            }
            previous[i] = at->second;
            barrier[i] = records[at->second].barrier ? at->second : barrier[at->second];
            at->second = i;
        }
    }
    /// A version made by a barrier record itself (first after a rewrite) belongs to the stretch that it
    /// begins.
    std::vector<Index> stretches(std::span<const OrderRecord> records) const {
        std::vector<Index> stretch = barrier;
        for (Index i = 0; i < stretch.size(); ++i)
            if (records[i].barrier) stretch[i] = i;
        return stretch;
    }
};

/// For each record the one of the same command before it.
std::vector<Index> previous_of_command(std::span<const OrderRecord> records) {
    const Commands commands(records);
    std::vector<Index> last_of(commands.size(), none);
    std::vector<Index> previous(records.size(), none);
    for (Index i = 0; i < records.size(); ++i)
        if (records[i].command != no_command)
            previous[i] = std::exchange(last_of[commands.index(records[i].command)], i);
    return previous;
}

std::vector<Index> makers_of(std::span<const OrderRecord> records, std::span<const Index> stretch) {
    const Makers made(records, stretch);
    std::vector<Index> makers(records.size(), none);
    for (Index i = 0; i < records.size(); ++i)
        if (has_old(records[i])) makers[i] = made.maker(i);
    return makers;
}

/// All that a record has to wait for.
struct Constraints {
    std::span<const OrderRecord> records;
    const std::vector<Index>& makers;
    const std::vector<Index>& previous;
    const Barriers& barriers;
    const std::vector<Edge>& unique;  // by `after`

    /// The index-th of them; none at the end, `i` itself for a place that is empty.
    Index at(Index i, Index which) const {
        if (which == 0) return makers[i] == none ? i : makers[i];
        if (which == 1) return previous[i] == none ? i : previous[i];
        which -= 2;
        if (!barriers.previous.empty()) {
            if (which == 0) return for_barrier(i);
            --which;
        }
        const auto first = std::ranges::lower_bound(unique, i, {}, &Edge::after);
        if (unique.end() - first <= static_cast<std::ptrdiff_t>(which) || first[which].after != i)
            return none;
        return first[which].before;
    }

  private:
    /// A barrier waits for all of its table before it; a record between two waits for the barrier. Waiting
    /// for the one before it too would be wrong for records that took effect in another order, so a barrier
    /// asks for each.
    Index for_barrier(Index i) const {
        const Index barrier = barriers.barrier[i];
        return barrier == none ? i : barrier;
    }
};

/// Emits the records in preferred order, each after what it waits for.
class Emitter {
  public:
    Emitter(const Constraints& constraints, const PreferredOrder& preferred)
        : constraints_(constraints),
          preferred_(preferred),
          state_(constraints.records.size(), State::waiting) {}

    /// False if the edges run in a circle; then `circle` has those of unique values that are part of it.
    bool run() {
        order_.reserve(state_.size());
        for (Index i = preferred_.first(); i != none; i = preferred_.next(i))
            if (state_[i] == State::waiting && !emit(i)) return false;
        return true;
    }
    std::vector<Index> take() { return std::move(order_); }
    const std::vector<Edge>& circle() const { return circle_; }
    /// Circles without a unique value's edge are passed over instead of reported.
    void tolerate_circles() { tolerant_ = true; }

  private:
    enum class State : std::uint8_t { waiting, open, emitted };
    struct Visit {
        Index record;
        Index which = 0;           // next constraint to look at
        Index member = none;       // barrier: next record of its table to look at
        bool unique_edge = false;  // came here by a unique value's edge
    };

    bool emit(Index root) {
        open(root, false);
        while (!stack_.empty()) {
            bool unique_edge = false;
            const Index before = next_constraint(stack_.back(), unique_edge);
            if (before == none) {
                close();
            } else if (state_[before] == State::waiting) {
                open(before, unique_edge);
            } else if (state_[before] == State::open && before != stack_.back().record) {
                if (!tolerant_ && !blame(before, unique_edge)) return false;
            }
        }
        return true;
    }
    void open(Index i, bool unique_edge) {
        state_[i] = State::open;
        Visit visit;
        visit.record = i;
        visit.unique_edge = unique_edge;
        if (constraints_.records[i].barrier && !constraints_.barriers.previous.empty())
            visit.member = constraints_.barriers.previous[i];
        stack_.push_back(visit);
    }
    void close() {
        const Index i = stack_.back().record;
        state_[i] = State::emitted;
        order_.push_back(i);
        stack_.pop_back();
    }
    Index next_constraint(Visit& visit, bool& unique_edge) {
        if (visit.member != none) {
            const Index member = visit.member;
            const bool is_barrier = constraints_.records[member].barrier;
            visit.member = is_barrier ? none : constraints_.barriers.previous[member];
            return member;
        }
        const Index first_unique = constraints_.barriers.previous.empty() ? 2 : 3;
        unique_edge = visit.which >= first_unique;
        return constraints_.at(visit.record, visit.which++);
    }
    /// A circle from `before` over the stack back to it: finds the edges of unique values in it. True: there
    /// are none, go on.
    bool blame(Index before, bool closing_is_unique) {
        if (closing_is_unique) circle_.push_back({before, stack_.back().record});
        for (std::size_t i = stack_.size(); i-- > 0 && stack_[i].record != before;)
            if (stack_[i].unique_edge) circle_.push_back({stack_[i].record, stack_[i - 1].record});
        return circle_.empty();
    }

    const Constraints& constraints_;
    const PreferredOrder& preferred_;
    std::vector<State> state_;
    std::vector<Visit> stack_;
    std::vector<Index> order_;
    std::vector<Edge> circle_;
    bool tolerant_ = false;
};

/// Each attempt looks at all records.
int most_attempts(std::size_t records) {
    constexpr std::size_t looks = 20'000'000;
    return static_cast<int>(std::clamp<std::size_t>(looks / (records + 1), 5, 200));
}

/// An order that keeps all edges. Where unique values' edges run in a circle, `mend` is to change them, and
/// gets how often it was asked and the edge.
template <class Mend>
std::vector<Index> emit(const Constraints& constraints, const PreferredOrder& preferred, Mend&& mend) {
    for (int attempt = 0;; ++attempt) {
        Emitter emitter(constraints, preferred);
        if (constraints.unique.empty()) emitter.tolerate_circles();
        if (emitter.run()) return emitter.take();
        mend(attempt, emitter.circle());
    }
}

}  // namespace

RecordOrder order_records(std::span<const OrderRecord> records, std::vector<UniqueValue> values) {
    const PreferredOrder preferred(records);
    const Barriers barriers(records);
    const std::vector<Index> stretch = barriers.stretches(records);
    const std::vector<Index> makers = makers_of(records, stretch);
    const std::vector<Index> previous = previous_of_command(records);
    UniqueEdges values_held(std::move(values), makers, stretch);

    std::vector<Edge> unique = values_held.certain();
    const Constraints constraints{records, makers, previous, barriers, unique};
    RecordOrder result;
    // A value that is handed round in a circle is checked late on A, and so it is on B: its edges mean
    // nothing.
    const int attempts = most_attempts(records.size());
    const auto drop = [&](int attempt, const std::vector<Edge>& circle) {
        result.clash = true;
        if (attempt < attempts)
            std::erase(unique, circle.front());
        else
            unique.clear();
    };
    result.order = emit(constraints, preferred, drop);
    if (values_held.empty()) return result;

    values_held.sort(result.order);
    unique = values_held.all();
    result.order = emit(constraints, preferred, [&](int attempt, std::vector<Edge> circle) {
        // Any of them may be the wrong one; a fixed choice could swap the same ones to and fro.
        const std::uint32_t scrambled = (static_cast<std::uint32_t>(attempt) * 2654435761u) >> 16;
        std::rotate(circle.begin(), circle.begin() + scrambled % static_cast<std::ptrdiff_t>(circle.size()),
                    circle.end());
        const auto swapped = [&](const Edge& edge) { return values_held.swap(edge); };
        if (attempt >= attempts || std::ranges::none_of(circle, swapped)) return drop(attempt, circle);
        unique = values_held.all();
    });
    return result;
}

}  // namespace onerepl
