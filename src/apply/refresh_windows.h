// Which tables of B a link's refreshes are filling just now (Part III): table onerepl.refresh_window.
#pragma once

#include "pg/pg.h"

#include "core/record.h"

#include <vector>

namespace onerepl::apply {

class RefreshWindows {
  public:
    explicit RefreshWindows(int link) : link_(link) {}

    /// At the begin of a B transaction, with SPI connected.
    void load();
    /// Changes of this table are written tolerantly.
    bool is_open(Oid relation) const;

    /// The chunk `n` was written to `relation`, or (skipped) left out by the administrator.
    void note(Oid relation, const Chunk& chunk, Number n, bool skipped);

  private:
    int link_;
    std::vector<Oid> open_;
};

}  // namespace onerepl::apply
