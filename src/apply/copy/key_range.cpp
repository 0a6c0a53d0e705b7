// Ranges of keys in SQL.
#include "apply/copy/key_range.h"

#include "apply/rows/values.h"
#include "apply/tables/relation_maps.h"
#include "keys/key_order.h"
#include "pg/array_text.h"
#include "pg/rights.h"

extern "C" {
#include "mb/pg_wchar.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
}

namespace onerepl::apply {

std::string text_from_remote(const RelationMap& target, ByteView bytes) {
    std::string text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    return pg::call([&] {
        return static_cast<const char*>(
            pg_any_to_server(text.data(), static_cast<int>(text.size()), target.encoding));
    });
}

namespace {

std::vector<std::string> texts_from_remote(const RelationMap& target, const std::vector<ByteView>& key) {
    std::vector<std::string> texts;
    texts.reserve(key.size());
    for (const ByteView bytes : key) texts.push_back(text_from_remote(target, bytes));
    return texts;
}

}  // namespace

bool has_order(const KeyColumn& column) {
    const Oid base = pg::call([&] { return getBaseType(column.type); });
    switch (column.order) {
        case KeyOrder::natural:
            return keys::has_natural_order(base);
        case KeyOrder::collate_c:
            return keys::is_string(base);
        case KeyOrder::text:
            break;
    }
    return true;
}

std::vector<KeyColumn> key_columns(const RelationMap& target, const Chunk& chunk) {
    if (static_cast<int>(chunk.order.size()) != target.remote_key_count())
        throw pg::Error("22P03", "the chunk does not have the key of its table description");
    std::vector<KeyColumn> columns;
    for (int k = 0; k < target.remote_key_count(); k++) {
        const ColumnPlan& plan = target.columns[target.key_places[k]];
        columns.push_back({pg::call([&] { return quote_identifier(plan.name); }),
                           pg::call([&] { return get_atttype(target.relation, plan.attribute); }),
                           chunk.order[static_cast<std::size_t>(k)]});
    }
    return columns;
}

namespace {

/// One bound of the range: the key that parameter `number` is the list of.
std::string bound(const std::vector<KeyColumn>& columns, int number) {
    std::vector<std::string> values;
    for (std::size_t i = 0; i < columns.size(); i++)
        values.push_back(keys::ordered_bound(
            "(CAST($" + std::to_string(number) + " AS pg_catalog.text[]))[" + std::to_string(i + 1) + "]",
            columns[i].type, columns[i].order));
    return keys::row_of(values);
}

/// `key` is a row of expressions; the bounds are parameters $1 and $2, which appear whatever the bounds, so
/// that their types are known.
std::string is_between(const std::string& key, const std::vector<KeyColumn>& columns, bool has_from,
                       bool has_to) {
    std::string condition =
        "CAST($1 AS pg_catalog.text) IS NOT NULL AND CAST($2 AS pg_catalog.text) IS NOT NULL";
    if (has_from) condition += " AND " + key + " OPERATOR(pg_catalog.>) " + bound(columns, 1);
    if (has_to) condition += " AND " + key + " OPERATOR(pg_catalog.<=) " + bound(columns, 2);
    return condition;
}

}  // namespace

std::string range_condition(const RelationMap& target, const std::vector<KeyColumn>& columns,
                            const Chunk& chunk) {
    std::vector<std::string> key;
    key.reserve(columns.size());
    for (const KeyColumn& column : columns) key.push_back(keys::ordered("t." + column.name, column.order));
    const std::string range = is_between(keys::row_of(key), columns, !chunk.from.empty(), !chunk.to.empty());
    return target.has_branch ? range + " AND " + branch_condition(target) : range;
}

std::string key_text(const RelationMap& target, const KeyColumn& column, int place, const Value& value) {
    return pg::call([&] {
        bool is_null, is_varlena;
        Oid output;
        // A domain's checks are its user's code (P19).
        const pg::Rights rights = pg::become(pg::owner_of(target.relation));
        const Datum ours = convert_value(target, target.columns[place], value, &is_null);
        pg::return_from(rights);
        getTypeOutputInfo(column.type, &output, &is_varlena);
        return static_cast<const char*>(is_null ? "" : OidOutputFunctionCall(output, ours));
    });
}

bool is_in_range(const RelationMap& target, const std::vector<Value>& row, const std::string& from,
                 const std::string& to) {
    std::vector<KeyColumn> columns;
    std::vector<std::string> key;
    for (int k = 0; k < target.remote_key_count(); k++) {
        const int place = target.key_places[k];
        const ColumnPlan& plan = target.columns[place];
        const Oid type = pg::call([&] { return get_atttype(target.relation, plan.attribute); });
        columns.push_back({plan.name, type, keys::order_of(type, true)});
        key.push_back(key_text(target, columns.back(), place, row.at(static_cast<std::size_t>(place))));
    }
    const std::string sql = "SELECT 1::pg_catalog.int8 WHERE CAST($3 AS pg_catalog.text) IS NOT NULL AND " +
                            is_between(bound(columns, 3), columns, from != "{}", to != "{}");
    return pg::query_int8(sql.c_str(), {from, to, pg::array_text(key)}).has_value();
}

/// unnest() of several arrays must be written without its schema.
std::string listed_keys(const std::vector<KeyColumn>& columns, int first,
                        const std::vector<std::string>& more, const std::string& alias) {
    std::vector<std::string> names, lists;
    for (std::size_t k = 0; k < columns.size(); k++) names.push_back("k" + std::to_string(k + 1));
    names.insert(names.end(), more.begin(), more.end());
    for (std::size_t i = 0; i < names.size(); i++)
        lists.push_back("CAST($" + std::to_string(first + static_cast<int>(i)) + " AS pg_catalog.text[])");
    return "unnest(" + keys::list_of(lists) + ") AS " + alias + " " + keys::row_of(names);
}

std::string is_listed(const std::vector<KeyColumn>& columns) {
    std::string equal;
    for (std::size_t k = 0; k < columns.size(); k++) {
        const KeyOrder order = columns[k].order;
        equal += (k > 0 ? " AND " : "") + keys::ordered("t." + columns[k].name, order) +
                 " OPERATOR(pg_catalog.=) " +
                 keys::ordered_bound("k.k" + std::to_string(k + 1), columns[k].type, order);
    }
    return equal;
}

std::string are_same_listed(const std::vector<KeyColumn>& columns) {
    std::string equal;
    for (std::size_t k = 0; k < columns.size(); k++) {
        const auto value = [&](const char* list) {
            return keys::ordered_bound(list + std::to_string(k + 1), columns[k].type, columns[k].order);
        };
        equal += (k > 0 ? " AND " : "") + value("t.k") + " OPERATOR(pg_catalog.=) " + value("k.k");
    }
    return equal;
}

std::vector<pg::Param> bounds_of(const RelationMap& target, const Chunk& chunk) {
    return {pg::array_text(texts_from_remote(target, chunk.from)),
            pg::array_text(texts_from_remote(target, chunk.to))};
}

}  // namespace onerepl::apply
