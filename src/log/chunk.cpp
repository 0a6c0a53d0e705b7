// Tables onerepl.chunk and onerepl.sequence_record.
#include "pg/pg.h"

#include "log/chunk.h"

#include "core/compression.h"
#include "pg/settings.h"
#include "pg/spi.h"

namespace onerepl::log {

namespace {
constexpr std::size_t largest = std::size_t{1} << 30;  // what PostgreSQL can hold in one value
}

void store_chunk(Number n, int link, std::uint64_t refresh, ByteView record) {
    const std::optional<Bytes> compressed = compress(record, settings::compression);
    pg::execute(
        "INSERT INTO onerepl.chunk (n, link, refresh, compressed, body, size) VALUES ($1, $2, $3, $4, $5, "
        "$6)",
        {n, link, refresh, compressed.has_value(), compressed ? ByteView(*compressed) : record,
         static_cast<std::uint64_t>(record.size())});
}

std::optional<Bytes> load_chunk(Number n) {
    std::optional<Bytes> record;
    pg::query("SELECT compressed, body FROM onerepl.chunk WHERE n = $1", {n}, [&](const pg::Row& row) {
        record = row.bytea(1);
        DecompressError error{};
        if (row.boolean(0)) record = decompress(*record, largest, error);
        if (!record) throw pg::Error("XX001", "chunk " + std::to_string(n) + " in onerepl.chunk is damaged");
    });
    return record;
}

void store_sequences(Number n, ByteView record) {
    pg::execute("INSERT INTO onerepl.sequence_record (n, body) VALUES ($1, $2)", {n, record});
}

std::optional<Bytes> load_sequences(Number n) {
    std::optional<Bytes> record;
    pg::query("SELECT body FROM onerepl.sequence_record WHERE n = $1", {n},
              [&](const pg::Row& row) { record = row.bytea(0); });
    return record;
}

}  // namespace onerepl::log
