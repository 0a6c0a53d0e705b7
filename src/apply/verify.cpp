// The central's side of a verification.
#include "apply/verify.h"

#include "apply/key_range.h"
#include "apply/truncate.h"
#include "pg/array_text.h"
#include "refresh/digest.h"
#include "refresh/key_order.h"

extern "C" {
#include "utils/builtins.h"
}

#include <algorithm>

namespace onerepl::apply {

namespace {

struct Digest {
    std::string rows;
    std::string digest;
    bool operator==(const Digest&) const = default;
};

Digest digest_of_remote(const Chunk& chunk) {
    std::vector<Value> row;
    ChunkRows rows(chunk.rows);
    if (!rows.next(row) || row.size() != 2) throw pg::Error("22P03", "the chunk holds no digest");
    const auto text = [](const Value& value) {
        return std::string(reinterpret_cast<const char*>(value.bytes.data()), value.bytes.size());
    };
    return {text(row[0]), text(row[1])};
}

std::vector<std::string> compared_columns(const Target& target) {
    std::vector<std::string> columns;
    for (int i = 0; i < target.column_count; i++) {
        if (target.description.columns[i].generated) continue;
        const char* const name = target.columns[i].name;
        columns.push_back("t." + std::string(pg::call([&] { return quote_identifier(name); })));
    }
    return columns;
}

Digest digest_of_ours(const Target& target, const Chunk& chunk) {
    std::vector<KeyColumn> columns;
    if (!chunk.order.empty()) columns = key_columns(target, chunk);
    const std::string sql =
        "SELECT CAST(count(*) AS pg_catalog.text), " + refresh::digest_of(compared_columns(target)) +
        " FROM " + table_expression(target.relation) + " AS t WHERE " + range_condition(columns, chunk);
    Digest digest;
    const auto take = [&](const pg::Row& row) { digest = {row.text(0), row.text(1)}; };
    if (columns.empty())
        pg::query(sql.c_str(), bounds_of(target, chunk), take);
    else
        by_index([&] { pg::query(sql.c_str(), bounds_of(target, chunk), take); });
    return digest;
}

bool can_be_compared(const Target& target, const Chunk& chunk) {
    if (chunk.order.empty()) return !target.has_key();
    const std::vector<KeyColumn> columns = key_columns(target, chunk);
    return std::all_of(columns.begin(), columns.end(), has_order);
}

}  // namespace

void compare_digest(int link, const Target& target, const Record& record, Number n) {
    const Chunk& chunk = record.chunk;
    if (!can_be_compared(target, chunk))
        throw pg::Error("0A000",
                        "the key of table " + refresh::name_of(target.relation) +
                            " is of another type than at the remote, so that it can not be verified");
    const Digest remote = digest_of_remote(chunk);
    const Digest ours = digest_of_ours(target, chunk);
    const std::vector<pg::Param> bounds = bounds_of(target, chunk);
    pg::execute(
        "SELECT onerepl.note_verified($1, $2, $3, $4, $5, CAST($6 AS text[]), CAST($7 AS text[]), $8, $9, "
        "$10)",
        {link, pg::Param::oid(target.relation), chunk.refresh, n, chunk.last, bounds[0], bounds[1],
         remote.rows, ours.rows, remote == ours});
}

}  // namespace onerepl::apply
