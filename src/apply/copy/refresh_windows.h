// Which tables of B a link's refreshes are filling just now (Part III): table onerepl.refresh_window.
#pragma once

#include "pg/pg.h"

#include "apply/rows/relation_map.h"

#include <optional>
#include <string>
#include <vector>

namespace onerepl::apply {

class RefreshWindows {
  public:
    explicit RefreshWindows(int link) : link_(link) {}

    /// At the begin of a B transaction, with SPI connected.
    void load();
    /// Changes of this table are written as the copy will complete them.
    bool is_open(Oid relation) const;

    /// Keys after `from`, up to `to`: lists as text of an array; "{}": no bound.
    struct Left {
        std::string from;
        std::string to;
    };
    /// What the repair of a range of keys has still to bring; null if the whole table is copied, or if the
    /// range was meant under another key than the target's description has (P21).
    const Left* left_of_part(const RelationMap& target) const;

    /// The chunk `n` was written to its table, or (skipped) left out by the administrator.
    void note(const RelationMap& target, const Chunk& chunk, Number n, bool skipped);
    /// A chunk that cannot be read, or not be told where it belongs, was left out: the copies of that
    /// refresh, or all that are under way, are not complete.
    void note_hole(std::optional<std::uint64_t> refresh);

  private:
    struct Window {
        Oid relation;
        std::uint64_t refresh;
        bool partial;
        std::string key;
        Left left;
    };
    const Window* find(Oid relation) const;
    bool lacks_begin(const RelationMap& target, const Chunk& chunk) const;
    void forget_differences(Oid relation, Number n);

    int link_;
    std::vector<Window> open_;
};

}  // namespace onerepl::apply
