// What unique values say about the order of a transaction's records: a part of core/order.cpp.
#pragma once

#include "core/order.h"

#include <limits>

namespace onerepl::order {

/// Of a record in log order.
using Index = std::uint32_t;
constexpr Index none = std::numeric_limits<Index>::max();

/// `before` has to come before `after`.
struct Edge {
    Index before = none;
    Index after = none;
    auto operator<=>(const Edge&) const = default;
};

class RowPlaces;

/// One time that a row holds a value: from the record that took it to the one that gave it up.
struct Holding {
    Index taken = none;     // none: held before the transaction
    Index given_up = none;  // none: held after it
};

/// Edges between the holdings of each unique value. All lists of edges are sorted by `after`.
class UniqueEdges {
  public:
    /// `makers[i]`: who made the version that i consumed, or none. `stretch[i]` names the time between two
    /// barriers that i is in; empty: there are no barriers.
    UniqueEdges(std::vector<UniqueValue> values, const std::vector<Index>& makers,
                const std::vector<Index>& stretch);
    bool empty() const { return groups_.empty(); }

    /// What is certain: first the one that held the value before, last the one that holds it after.
    std::vector<Edge> certain() const;
    /// Puts those in between into the order of their records in `order`.
    void sort(const std::vector<Index>& order);
    /// Everything, with those in between one after the other as they stand now.
    std::vector<Edge> all() const;
    /// Lets the two holdings of an edge change places; false if that is not possible.
    bool swap(const Edge& edge);

  private:
    using Group = std::vector<Holding>;  // of one value

    void add_group(std::span<const UniqueValue> values, RowPlaces& rows);

    std::size_t size_;
    std::vector<Group> groups_;
};

}  // namespace onerepl::order
