// The central's side of a verification.
#include "apply/copy/verify.h"

#include "apply/copy/key_range.h"
#include "apply/tables/owner.h"
#include "apply/tables/relation_maps.h"
#include "apply/tables/remove_rows.h"
#include "keys/digest.h"
#include "keys/key_order.h"
#include "pg/array_text.h"
#include "pg/rights.h"

extern "C" {
#include "utils/builtins.h"
}

#include <algorithm>
#include <charconv>
#include <functional>

namespace onerepl::apply {

namespace {

/// Of one chunk.
constexpr int most_rows_named = 1000;

struct Digest {
    std::string rows;
    std::string digest;
    bool operator==(const Digest&) const = default;
};

std::string text_of(const RelationMap& target, const Value& value) {
    return text_from_remote(target, value.bytes);
}

Digest digest_of_remote(const RelationMap& target, const Chunk& chunk) {
    std::vector<Value> row;
    ChunkRows rows(chunk.rows);
    if (!rows.next(row) || row.size() != 2) throw pg::Error("22P03", "the chunk holds no digest");
    Digest digest{text_of(target, row[0]), text_of(target, row[1])};
    Number count = 0;
    const char* const end = digest.rows.data() + digest.rows.size();
    const auto read = std::from_chars(digest.rows.data(), end, count);
    if (read.ec != std::errc{} || read.ptr != end || count > largest_number)
        throw pg::Error("22P03", "the chunk holds no count of rows");
    return digest;
}

/// A's rows: a list for each column of the key, and one of the rows' digests.
std::vector<std::vector<std::string>> rows_of_remote(const RelationMap& target, const Chunk& chunk) {
    std::vector<std::vector<std::string>> lists(chunk.order.size() + 1);
    std::vector<Value> row;
    ChunkRows rows(chunk.rows);
    rows.next(row);  // the digest of all
    while (rows.next(row)) {
        if (row.size() != lists.size()) throw pg::Error("22P03", "the chunk holds no digests of rows");
        for (std::size_t i = 0; i < row.size(); i++) lists[i].push_back(text_of(target, row[i]));
    }
    return lists;
}

std::vector<std::string> names_of_compared(const RelationMap& target) {
    std::vector<std::string> names;
    for (int i = 0; i < target.remote_column_count(); i++)
        if (!target.description.columns[i].generated) names.emplace_back(target.columns[i].name);
    return names;
}

std::vector<std::string> compared_columns(const RelationMap& target) {
    std::vector<std::string> columns = names_of_compared(target);
    for (std::string& column : columns)
        column = "t." + std::string(pg::call([&] { return quote_identifier(column.c_str()); }));
    return columns;
}

/// Reads the range with the rights of the table's owner, whose code may run (P19). And a foreign partition
/// shows what is not committed yet to nobody else.
void read_range(const RelationMap& target, const Chunk& chunk, bool by_key, const std::string& sql,
                const std::function<void(const pg::Row&)>& each) {
    const Oid owner = pg::call([&] { return pg::owner_of(target.relation); });
    const auto read = [&] {
        pg::run_as(owner, [&] { pg::query(sql.c_str(), bounds_of(target, chunk), each); });
    };
    if (by_key)
        by_index(read);
    else
        read();
}

Digest digest_of_ours(const RelationMap& target, const Chunk& chunk) {
    std::vector<KeyColumn> columns;
    if (!chunk.order.empty()) columns = key_columns(target, chunk);
    const std::string sql =
        "SELECT CAST(count(*) AS pg_catalog.text), " + keys::digest_of(compared_columns(target)) + " FROM " +
        table_expression(target.relation) + " AS t WHERE " + range_condition(target, columns, chunk);
    Digest digest;
    read_range(target, chunk, !columns.empty(), sql, [&](const pg::Row& row) {
        digest = {row.text(0), row.text(1)};
    });
    return digest;
}

/// Ours, as `rows_of_remote`.
std::vector<std::vector<std::string>> rows_of_ours(const RelationMap& target, const Chunk& chunk,
                                                   const std::vector<KeyColumn>& columns) {
    std::vector<std::string> selected;
    selected.reserve(columns.size() + 1);
    for (const KeyColumn& column : columns)
        selected.push_back("CAST(t." + column.name + " AS pg_catalog.text)");
    selected.push_back(keys::digests_of(compared_columns(target)));
    const std::string sql = "SELECT " + keys::list_of(selected) + " FROM " +
                            table_expression(target.relation) + " AS t WHERE " +
                            range_condition(target, columns, chunk);
    std::vector<std::vector<std::string>> lists(selected.size());
    read_range(target, chunk, true, sql, [&](const pg::Row& row) {
        for (std::size_t i = 0; i < lists.size(); i++) lists[i].push_back(row.text(static_cast<int>(i)));
    });
    return lists;
}

/// The statement that notes the rows that differ. Parameters: `rows_of_ours`, `rows_of_remote`, then link,
/// table, number, and the names of the columns.
std::string note_rows(const std::vector<KeyColumn>& columns) {
    const int lists = static_cast<int>(columns.size()) + 1;
    std::vector<std::string> key;
    for (std::size_t k = 1; k <= columns.size(); k++)
        key.push_back("coalesce(t.k" + std::to_string(k) + ", k.k" + std::to_string(k) + ")");
    const auto parameter = [&](int i) { return "$" + std::to_string(2 * lists + i); };
    return "INSERT INTO onerepl.differing_row (link, relation, n, key, difference, columns)"
           " SELECT " +
           parameter(1) + ", " + parameter(2) + ", " + parameter(3) + ", ARRAY[" + keys::list_of(key) +
           "], d.difference, d.columns FROM " + listed_keys(columns, 1, {"digests"}, "t") + " FULL JOIN " +
           listed_keys(columns, 1 + lists, {"digests"}) + " ON " + are_same_listed(columns) +
           " CROSS JOIN LATERAL onerepl.compare_digests(k.digests, t.digests, CAST(" + parameter(4) +
           " AS pg_catalog.text[]), " + std::to_string(keys::digits_of_column) +
           ") AS d WHERE k.digests IS DISTINCT FROM t.digests LIMIT " + std::to_string(most_rows_named);
}

void name_rows(int link, const RelationMap& target, const Chunk& chunk, Number n) {
    const std::vector<KeyColumn> columns = key_columns(target, chunk);
    std::vector<pg::Param> parameters;
    for (const auto& list : rows_of_ours(target, chunk, columns))
        parameters.emplace_back(pg::array_text(list));
    for (const auto& list : rows_of_remote(target, chunk)) parameters.emplace_back(pg::array_text(list));
    parameters.emplace_back(link);
    parameters.emplace_back(pg::Param::oid(target.relation));
    parameters.emplace_back(n);
    parameters.emplace_back(pg::array_text(names_of_compared(target)));
    pg::execute(note_rows(columns).c_str(), parameters);
    pg::execute("SELECT onerepl.tell_differing_rows($1, $2, $3)", {link, pg::Param::oid(target.relation), n});
}

std::string name_at_remote(const RelationMap& target) {
    return pg::call([&] {
        return static_cast<const char*>(
            quote_qualified_identifier(target.description.schema.c_str(), target.description.name.c_str()));
    });
}

struct Comparison {
    std::string rows_remote;
    std::string rows_here;
    std::string equal;  // "true", "false"; empty: it was not compared
};

void note_verified(int link, const RelationMap& target, const Chunk& chunk, Number n,
                   const Comparison& compared) {
    const std::vector<pg::Param> bounds = bounds_of(target, chunk);
    pg::execute(
        "SELECT onerepl.note_verified($1, $2, $3, $4, $5, CAST($6 AS text[]), CAST($7 AS text[]), $8, $9,"
        " CAST(nullif($10, '') AS bool), $11)",
        {link, pg::Param::oid(target.relation), chunk.refresh, n, chunk.last, bounds[0], bounds[1],
         compared.rows_remote, compared.rows_here, compared.equal, name_at_remote(target)});
}

bool can_be_compared(const RelationMap& target, const Chunk& chunk) {
    if (chunk.order.empty()) return !target.has_key();
    const std::vector<KeyColumn> columns = key_columns(target, chunk);
    return std::all_of(columns.begin(), columns.end(), has_order);
}

}  // namespace

void compare_digest(int link, const RelationMap& target, const Record& record, Number n) {
    const Chunk& chunk = record.chunk;
    if (!can_be_compared(target, chunk))
        throw pg::Error("0A000", "the key of table " + keys::name_of(target.relation) +
                                     " is of another type than at the remote, so that it cannot be verified");
    const Digest remote = digest_of_remote(target, chunk);
    const Digest ours = digest_of_ours(target, chunk);
    note_verified(link, target, chunk, n, {remote.rows, ours.rows, remote == ours ? "true" : "false"});
    if (remote != ours && chunk.row_count > 1) name_rows(link, target, chunk, n);
}

void report_not_compared(int link, const RelationMap& target, const Record& record, Number n) {
    note_verified(link, target, record.chunk, n, {"", "", ""});
}

void journal_missing(int link, const RelationMap& target, Number n) {
    pg::execute(
        "SELECT onerepl.write_journal(2, $1, 'III', pg_catalog.format('table %I.%I cannot be verified: it "
        "does not exist here',"
        " $2::text, $3::text), 'Create it, and call onerepl_refresh for it at the remote.', $4, $4)",
        {link, target.schema, target.name, n});
}

}  // namespace onerepl::apply
