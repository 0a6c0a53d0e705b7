// Holdings of unique values: who held which value from when to when.
#include "core/order_values.h"

#include <algorithm>
#include <utility>

namespace onerepl::order {

/// The row that a record belongs to, named by the first of its records, and how many versions lie between.
struct RowPlace {
    Index row = none;
    Index depth = 0;
};

/// Follows row versions back to the row's first record here. Each record is walked over once.
class RowPlaces {
  public:
    /// `makers[i]`: who made what i consumed. `wanted` false: nobody is going to ask.
    RowPlaces(const std::vector<Index>& makers, bool wanted)
        : makers_(makers), places_(wanted ? makers.size() : 0) {}

    RowPlace of(Index i) {
        std::vector<Index>& path = path_;
        path.clear();
        // A circle can only come from a damaged log; it ends the walk.
        while (places_[i].row == none && makers_[i] != none && path.size() < places_.size()) {
            path.push_back(i);
            i = makers_[i];
        }
        if (places_[i].row == none) places_[i] = {i, 0};
        RowPlace place = places_[i];
        for (; !path.empty(); path.pop_back()) {
            ++place.depth;
            places_[path.back()] = place;
        }
        return place;
    }

  private:
    const std::vector<Index>& makers_;
    std::vector<RowPlace> places_;
    std::vector<Index> path_;
};

namespace {

struct Event {
    Index row;
    Index depth;
    Index record;
    bool taken;
};

std::vector<Holding> holdings(std::span<const UniqueValue> values, RowPlaces& rows) {
    std::vector<Event> events;
    for (const UniqueValue& value : values) {
        const RowPlace place = rows.of(value.record);
        events.push_back({place.row, place.depth, value.record, value.taken});
    }
    std::ranges::sort(events, [](const Event& a, const Event& b) {
        return std::pair(a.row, a.depth) < std::pair(b.row, b.depth);
    });
    std::vector<Holding> found;
    Index row = none;
    for (const Event& event : events) {
        const bool continues = event.row == row && !event.taken && found.back().given_up == none;
        if (!continues) found.emplace_back();
        (event.taken ? found.back().taken : found.back().given_up) = event.record;
        row = event.row;
    }
    return found;
}

int place_in_group(const Holding& holding) {
    return holding.taken == none ? 0 : holding.given_up == none ? 2 : 1;
}

std::pair<int, Index> key(const Holding& holding, const std::vector<Index>& rank) {
    return {place_in_group(holding), holding.taken == none ? 0 : rank[holding.taken]};
}

void connect(const Holding& before, const Holding& after, std::vector<Edge>& edges) {
    if (before.given_up != none && after.taken != none && before.given_up != after.taken)
        edges.push_back({before.given_up, after.taken});
}

std::vector<Edge> sorted(std::vector<Edge> edges) {
    std::ranges::sort(edges, {}, [](const Edge& edge) { return std::pair(edge.after, edge.before); });
    edges.erase(std::unique(edges.begin(), edges.end()), edges.end());
    return edges;
}

}  // namespace

UniqueEdges::UniqueEdges(std::vector<UniqueValue> values, const std::vector<Index>& makers,
                         const std::vector<Index>& stretch)
    : size_(makers.size()) {
    RowPlaces rows(makers, !values.empty());
    // What a row held when its table was truncated is given up without a record, so each stretch is for
    // itself.
    const auto key = [&](const UniqueValue& value) {
        return std::pair(value.hash, stretch.empty() ? 0 : stretch[value.record]);
    };
    std::ranges::sort(values, {}, key);
    for (std::size_t first = 0; first < values.size();) {
        std::size_t end = first;
        while (end < values.size() && key(values[end]) == key(values[first])) ++end;
        if (end - first > 1) add_group(std::span(values).subspan(first, end - first), rows);
        first = end;
    }
}

void UniqueEdges::add_group(std::span<const UniqueValue> values, RowPlaces& rows) {
    Group group = holdings(values, rows);
    const auto before = std::ranges::count(group, none, &Holding::taken);
    const auto after = std::ranges::count(group, none, &Holding::given_up);
    // Two at once: not a value that is unique at all times, so it says nothing about order.
    if (group.size() < 2 || before > 1 || after > 1) return;
    std::ranges::sort(group, {}, place_in_group);
    groups_.push_back(std::move(group));
}

std::vector<Edge> UniqueEdges::certain() const {
    std::vector<Edge> edges;
    for (const Group& group : groups_) {
        const Holding& first = group.front();
        const Holding& last = group.back();
        for (std::size_t i = 1; i < group.size() && first.taken == none; ++i) connect(first, group[i], edges);
        for (std::size_t i = 0; i + 1 < group.size() && last.given_up == none; ++i)
            connect(group[i], last, edges);
    }
    return sorted(std::move(edges));
}

void UniqueEdges::sort(const std::vector<Index>& order) {
    std::vector<Index> rank(size_);
    for (Index i = 0; i < order.size(); ++i) rank[order[i]] = i;
    for (Group& group : groups_)
        std::ranges::sort(group, {}, [&](const Holding& holding) { return key(holding, rank); });
}

std::vector<Edge> UniqueEdges::all() const {
    std::vector<Edge> edges;
    for (const Group& group : groups_)
        for (std::size_t i = 0; i + 1 < group.size(); ++i) connect(group[i], group[i + 1], edges);
    return sorted(std::move(edges));
}

bool UniqueEdges::swap(const Edge& edge) {
    for (Group& group : groups_)
        for (std::size_t i = 0; i + 1 < group.size(); ++i) {
            if (group[i].given_up != edge.before || group[i + 1].taken != edge.after) continue;
            if (group[i].taken == none || group[i + 1].given_up == none) return false;
            std::swap(group[i], group[i + 1]);
            return true;
        }
    return false;
}

}  // namespace onerepl::order
