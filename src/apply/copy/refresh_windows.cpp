// Table onerepl.refresh_window: from a refresh's first chunk to its last.
#include "apply/copy/refresh_windows.h"

#include "apply/copy/key_range.h"
#include "apply/tables/relation_maps.h"
#include "pg/array_text.h"
#include "pg/spi.h"

#include <algorithm>

namespace onerepl::apply {

namespace {

/// A copy with a hole does not become complete by what follows, nor a table by the repair of a part ($8).
const char* const note_chunk =
    "INSERT INTO onerepl.refresh_window AS w"
    "  (link, relation, refresh, method, state, first, last, rows_done, partial, key_from, key_to, key)"
    " VALUES ($1, $2, $3, $4, $5, $6, $6, $7, $8, CAST($9 AS text[]), CAST($10 AS text[]), $11)"
    " ON CONFLICT (link, relation) DO UPDATE SET"
    "  refresh = EXCLUDED.refresh, method = EXCLUDED.method, last = EXCLUDED.last, changed_at = "
    "pg_catalog.clock_timestamp(),"
    "  state = CASE WHEN w.refresh = EXCLUDED.refresh AND w.state = 'incomplete' AND EXCLUDED.state <> "
    "'cancelled'"
    "    THEN w.state ELSE EXCLUDED.state END,"
    "  first = CASE WHEN w.refresh = EXCLUDED.refresh THEN w.first ELSE EXCLUDED.first END,"
    "  started_at = CASE WHEN w.refresh = EXCLUDED.refresh THEN w.started_at ELSE EXCLUDED.started_at END,"
    "  rows_done = CASE WHEN w.refresh = EXCLUDED.refresh THEN w.rows_done ELSE 0 END + EXCLUDED.rows_done,"
    "  partial = EXCLUDED.partial, key = EXCLUDED.key, key_from = EXCLUDED.key_from,"
    "  key_to = CASE WHEN w.refresh = EXCLUDED.refresh THEN w.key_to ELSE EXCLUDED.key_to END"
    " WHERE NOT $8 OR w.refresh = EXCLUDED.refresh OR w.state = 'done'";

const char* state_after(const Chunk& chunk, bool has_hole) {
    if (chunk.cancelled) return "cancelled";
    if (has_hole) return "incomplete";
    if (chunk.opens) return "waiting";
    return chunk.last ? "done" : "filling";
}

/// What names the rows, as the remote describes it.
std::string key_of(const RelationMap& target) {
    std::vector<std::string> key;
    for (const std::size_t column : target.description.key()) {
        key.push_back(target.description.columns[column].name);
        key.push_back(target.description.columns[column].type_name);
    }
    return pg::array_text(key);
}

}  // namespace

void RefreshWindows::load() {
    open_.clear();
    pg::query(
        "SELECT relation, partial, coalesce(key_from, '{}')::text, coalesce(key_to, '{}')::text, refresh, key"
        " FROM onerepl.refresh_window WHERE link = $1 AND state <> 'done'",
        {link_}, [&](const pg::Row& row) {
            open_.push_back(
                {row.oid(0), row.number(4), row.boolean(1), row.text(5), {row.text(2), row.text(3)}});
        });
}

const RefreshWindows::Window* RefreshWindows::find(Oid relation) const {
    const auto found = std::ranges::find(open_, relation, &Window::relation);
    return found != open_.end() ? &*found : nullptr;
}

bool RefreshWindows::is_open(Oid relation) const {
    return find(relation) != nullptr;
}

const RefreshWindows::Left* RefreshWindows::left_of_part(const RelationMap& target) const {
    const Window* const window = find(target.relation);
    if (window == nullptr || !window->partial || window->key != key_of(target)) return nullptr;
    return &window->left;
}

/// A chunk goes where those before it went; if the link's target has become another table meanwhile, this one
/// gets the end of a copy only (P21).
bool RefreshWindows::lacks_begin(const RelationMap& target, const Chunk& chunk) const {
    if (chunk.opens || chunk.cancelled) return false;
    const Window* const window = find(target.relation);
    return window == nullptr || window->refresh != chunk.refresh;
}

void RefreshWindows::note(const RelationMap& target, const Chunk& chunk, Number n, bool skipped) {
    const std::vector<pg::Param> bounds = bounds_of(target, chunk);
    const bool has_hole = skipped || lacks_begin(target, chunk);
    pg::execute(note_chunk,
                {link_, pg::Param::oid(target.relation), chunk.refresh, chunk.repair ? "repair" : "empty",
                 state_after(chunk, has_hole), n, static_cast<std::uint64_t>(chunk.row_count), chunk.partial,
                 bounds[chunk.opens ? 0 : 1], bounds[1], key_of(target)});
    if (chunk.last && !chunk.partial && !has_hole) forget_differences(target.relation, n);
    load();
}

void RefreshWindows::note_hole(std::optional<std::uint64_t> refresh) {
    if (open_.empty()) return;
    pg::execute(
        "UPDATE onerepl.refresh_window SET state = 'incomplete', changed_at = pg_catalog.clock_timestamp()"
        " WHERE link = $1 AND state <> 'done' AND ($2 < 0 OR refresh = $2)",
        {link_, refresh ? static_cast<std::int64_t>(*refresh) : std::int64_t{-1}});
    load();
}

/// What a verification found before is mended.
void RefreshWindows::forget_differences(Oid relation, Number n) {
    for (const char* sql : {"DELETE FROM onerepl.differing_row WHERE link = $1 AND relation = $2 AND n < $3",
                            "DELETE FROM onerepl.difference WHERE link = $1 AND relation = $2 AND n < $3"})
        pg::execute(sql, {link_, pg::Param::oid(relation), n});
}

}  // namespace onerepl::apply
