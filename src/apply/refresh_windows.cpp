// Table onerepl.refresh_window: from a refresh's first chunk to its last.
#include "apply/refresh_windows.h"

#include "pg/spi.h"

#include <algorithm>

namespace onerepl::apply {

namespace {

/// A copy with a hole does not become complete by what follows, nor a table by the repair of a part ($8).
const char* const note_chunk =
    "INSERT INTO onerepl.refresh_window AS w (link, relation, refresh, method, state, first, last, rows_done)"
    " VALUES ($1, $2, $3, $4, $5, $6, $6, $7)"
    " ON CONFLICT (link, relation) DO UPDATE SET"
    "  refresh = EXCLUDED.refresh, method = EXCLUDED.method, last = EXCLUDED.last, changed_at = "
    "pg_catalog.clock_timestamp(),"
    "  state = CASE WHEN w.refresh = EXCLUDED.refresh AND w.state = 'incomplete' AND EXCLUDED.state <> "
    "'cancelled'"
    "    THEN w.state ELSE EXCLUDED.state END,"
    "  first = CASE WHEN w.refresh = EXCLUDED.refresh THEN w.first ELSE EXCLUDED.first END,"
    "  started_at = CASE WHEN w.refresh = EXCLUDED.refresh THEN w.started_at ELSE EXCLUDED.started_at END,"
    "  rows_done = CASE WHEN w.refresh = EXCLUDED.refresh THEN w.rows_done ELSE 0 END + EXCLUDED.rows_done"
    " WHERE NOT $8 OR w.refresh = EXCLUDED.refresh OR w.state = 'done'";

const char* state_after(const Chunk& chunk, bool skipped) {
    if (chunk.cancelled) return "cancelled";
    if (skipped) return "incomplete";
    if (chunk.opens) return "waiting";
    return chunk.last ? "done" : "filling";
}

}  // namespace

void RefreshWindows::load() {
    open_.clear();
    pg::query("SELECT relation FROM onerepl.refresh_window WHERE link = $1 AND state <> 'done'", {link_},
              [&](const pg::Row& row) { open_.push_back(row.oid(0)); });
}

bool RefreshWindows::is_open(Oid relation) const {
    return std::find(open_.begin(), open_.end(), relation) != open_.end();
}

void RefreshWindows::note(Oid relation, const Chunk& chunk, Number n, bool skipped) {
    pg::execute(note_chunk,
                {link_, pg::Param::oid(relation), chunk.refresh, chunk.repair ? "repair" : "empty",
                 state_after(chunk, skipped), n, static_cast<std::uint64_t>(chunk.row_count), chunk.partial});
    load();
}

}  // namespace onerepl::apply
