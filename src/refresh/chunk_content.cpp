// Reads what belongs into a chunk and stores it under its number.
#include "refresh/chunk_content.h"

#include "keys/digest.h"
#include "log/chunk_record.h"
#include "pg/settings.h"
#include "pg/spi.h"

#include <algorithm>
#include <utility>

namespace onerepl::refresh {

namespace {

/// A chunk is to be one body, not a record in parts.
std::size_t chunk_bytes() {
    return static_cast<std::size_t>(settings::batch_bytes) * 1024 / 4 * 3;
}

ByteView bytes_of(const std::string& text) {
    return view(text);
}

Record chunk_record(std::uint64_t refresh, const CopiedTable& table) {
    Record record;
    record.operation = Operation::chunk;
    record.description = table.description();
    record.chunk.refresh = refresh;
    record.chunk.order = table.order();
    return record;
}

Key load_key(std::uint64_t refresh, const char* column) {
    const std::string sql = std::string("SELECT v FROM onerepl.refresh AS r, pg_catalog.unnest(") + column +
                            ") WITH ORDINALITY AS k (v, place) WHERE r.id = $1 ORDER BY k.place";
    Key key;
    pg::query(sql.c_str(), {refresh}, [&](const pg::Row& row) { key.push_back(row.text(0)); });
    return key;
}

/// What is still to be read.
KeyRange range_left(std::uint64_t refresh) {
    return {load_key(refresh, "coalesce(r.last_key, r.key_from)"), load_key(refresh, "r.key_to")};
}

/// How many rows a verification's chunk can name and still be one body.
std::uint64_t rows_with_digests(const CopiedTable& table) {
    constexpr std::size_t size_of_key = 64;  // a guess
    return std::max<std::size_t>(
        1, chunk_bytes() / (table.column_count() * keys::digits_of_column + size_of_key));
}

/// Stores one chunk and begins anew.
void store(Record& record, Bytes& rows, const Key& from, const Key& to, Number n, int link) {
    Chunk& chunk = record.chunk;
    chunk.from.clear();
    chunk.to.clear();
    std::transform(from.begin(), from.end(), std::back_inserter(chunk.from), bytes_of);
    std::transform(to.begin(), to.end(), std::back_inserter(chunk.to), bytes_of);
    chunk.rows = rows;
    Bytes encoded;
    encode_record(record, encoded);
    log::store_chunk(n, link, chunk.refresh, encoded);
    rows.clear();
    chunk.row_count = 0;
    chunk.first = false;
}

}  // namespace

Made make_copy(CopiedTable& table, const Task& task, Number first) {
    const bool whole = task.one_snapshot || !table.has_key();
    KeyRange range = range_left(task.id);
    Record record = chunk_record(task.id, table);
    Chunk& chunk = record.chunk;
    chunk.repair = task.repair && table.has_key();  // which of equal rows is which?
    chunk.partial = task.partial && chunk.repair;
    chunk.first = task.chunks == 0;

    Made made;
    Bytes rows;
    table.read(range, whole ? 0 : task.chunk_rows);
    while (table.next(rows)) {
        chunk.row_count++;
        made.rows++;
        if (rows.size() < chunk_bytes() && chunk.row_count < task.chunk_rows) continue;
        made.to = table.key();
        if (!whole) break;
        made.bytes += rows.size();
        store(record, rows, range.from, made.to, first + made.chunks++, task.link);
        range.from = std::exchange(made.to, {});
    }
    table.end();
    made.last = whole || made.to.empty();
    chunk.last = made.last;
    made.bytes += rows.size();
    store(record, rows, range.from, made.last ? range.to : made.to, first + made.chunks++, task.link);
    return made;
}

void make_mark(const CopiedTable* table, const Task& task, bool cancelled, std::uint64_t description,
               Number n) {
    Record record;
    record.operation = Operation::chunk;
    record.description = description;
    record.chunk.refresh = task.id;
    record.chunk.repair = task.repair;
    record.chunk.partial = task.partial;
    record.chunk.opens = !cancelled;
    record.chunk.cancelled = cancelled;
    KeyRange range;
    if (task.partial && !cancelled && table != nullptr) {
        record.chunk.order = table->order();
        range = range_left(task.id);
    }
    Bytes none;
    store(record, none, range.from, range.to, n, task.link);
}

Made make_digest(const CopiedTable& table, const Task& task, Number n) {
    const bool with_rows = task.with_rows && table.has_key();
    KeyRange range = range_left(task.id);
    const std::uint64_t limit =
        with_rows ? std::min<std::uint64_t>(task.chunk_rows, rows_with_digests(table)) : task.chunk_rows;
    const CopiedTable::Digest digest = table.digest(range, limit);
    if (!digest.to.empty()) range.to = digest.to;

    Record record = chunk_record(task.id, table);
    record.chunk.verify = true;
    record.chunk.last = digest.to.empty();
    record.chunk.row_count = 1;
    Bytes rows;
    append_texts({std::to_string(digest.rows), digest.digest}, rows);
    if (with_rows) record.chunk.row_count += table.append_row_digests(range, rows);
    const std::uint64_t size = rows.size();
    store(record, rows, range.from, range.to, n, task.link);
    return {1, digest.rows, size, digest.to.empty(), digest.to};
}

}  // namespace onerepl::refresh
