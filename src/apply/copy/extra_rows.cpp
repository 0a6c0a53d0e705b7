// Counts before it looks: mostly there is nothing to remove.
#include "apply/copy/extra_rows.h"

#include "apply/copy/key_range.h"
#include "apply/tables/owner.h"
#include "apply/tables/remove_rows.h"
#include "keys/key_order.h"
#include "pg/array_text.h"
#include "pg/error_boundary.h"
#include "pg/spi.h"

extern "C" {
#include "access/table.h"
#include "mb/pg_wchar.h"
#include "utils/builtins.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"
}

#include <algorithm>

namespace onerepl::apply {

namespace {

void check_order(const RelationMap& target, const std::vector<KeyColumn>& columns) {
    if (!std::all_of(columns.begin(), columns.end(), has_order))
        throw pg::Error(
            "0A000",
            "the key of table " + keys::name_of(target.relation) + " is of another type than at the remote",
            "Cancel the refresh at the remote, and begin one with method 'empty'.");
}

/// The chunk's keys as text of our types, an array for each column.
std::vector<std::vector<std::string>> keys_of(const RelationMap& target, const Chunk& chunk,
                                              const std::vector<KeyColumn>& columns) {
    std::vector<std::vector<std::string>> keys(columns.size());
    std::vector<Value> row;
    for (ChunkRows rows(chunk.rows); rows.next(row);) {
        for (std::size_t k = 0; k < columns.size(); k++) {
            const int place = target.key_places[k];
            keys[k].push_back(key_text(target, columns[k], place, row[place]));
        }
    }
    return keys;
}

std::string extra_condition(const std::string& condition, const std::vector<KeyColumn>& columns) {
    return condition + " AND NOT EXISTS (SELECT FROM " + listed_keys(columns, 3) + " WHERE " +
           is_listed(columns) + ")";
}

/// Whether a look at the table may save the work: at foreign partitions it would cost as much, and need the
/// rights of their owner.
bool is_whole(const RelationMap& target, const std::vector<Oid>& parts) {
    return parts.size() == 1 && parts.front() == target.relation;
}

}  // namespace

void remove_extra_rows(const RelationMap& target, const Record& record, const std::vector<Oid>& parts) {
    const Chunk& chunk = record.chunk;
    const std::vector<KeyColumn> columns = key_columns(target, chunk);
    check_order(target, columns);
    const std::string condition = range_condition(target, columns, chunk);
    std::vector<pg::Param> parameters = bounds_of(target, chunk);
    const std::string count =
        "SELECT count(*) FROM " + table_expression(target.relation) + " AS t WHERE " + condition;
    by_index([&] {
        if (is_whole(target, parts) &&
            query_as_owner(target.relation, count, parameters) == static_cast<std::int64_t>(chunk.row_count))
            return;
        for (const auto& keys : keys_of(target, chunk, columns))
            parameters.emplace_back(pg::array_text(keys));
        for (const Oid part : parts) delete_rows(part, extra_condition(condition, columns), parameters);
    });
}

bool clear_range(const RelationMap& target, const Record& record, const std::vector<Oid>& parts) {
    const std::vector<KeyColumn> columns = key_columns(target, record.chunk);
    if (!std::all_of(columns.begin(), columns.end(), has_order)) return false;
    const std::string condition = range_condition(target, columns, record.chunk);
    const std::string look =
        "SELECT 1::int8 FROM " + table_expression(target.relation) + " AS t WHERE " + condition + " LIMIT 1";
    const std::vector<pg::Param> bounds = bounds_of(target, record.chunk);
    by_index([&] {
        if (is_whole(target, parts) && !query_as_owner(target.relation, look, bounds)) return;
        for (const Oid part : parts) delete_rows(part, condition, bounds);
    });
    return true;
}

}  // namespace onerepl::apply
