// Tables onerepl.chunk and onerepl.sequence_record.
#include "pg/pg.h"

#include "log/chunk_record.h"

#include "core/compression.h"
#include "pg/settings.h"
#include "pg/spi.h"
#include "store/log_tables.h"
#include "store/own_table.h"

extern "C" {
#include "access/xact.h"
#include "utils/fmgroids.h"
}

#include <algorithm>
#include <deque>

namespace onerepl::log {

namespace {

constexpr std::size_t largest = std::size_t{1} << 30;  // what PostgreSQL can hold in one value
/// What is stored lives for a moment: little work for most of the gain.
constexpr int stored_level = -5;

/// Chunks that this process has made: mostly it is the one that reads them, and soon.
struct Kept {
    Number n;
    std::uint32_t
        xid;  // that stored it: a step that was rolled back may have made another one of this number
    Bytes record;
};
std::deque<Kept> kept;
constexpr std::size_t most_kept = 4;
constexpr std::size_t largest_kept = 4 << 20;

void keep(Number n, ByteView record) {
    std::erase_if(kept, [&](const Kept& chunk) { return chunk.n >= n; });
    if (record.size() > largest_kept) return;
    if (kept.size() == most_kept) kept.pop_front();
    const std::uint32_t xid = pg::call([] { return GetCurrentTransactionId(); });
    kept.push_back({n, xid, Bytes(record.begin(), record.end())});
}

const Kept* find_kept(Number n) {
    const auto found = std::ranges::find(kept, n, &Kept::n);
    if (found == kept.end()) return nullptr;
    const bool there = pg::query_int8("SELECT 1::int8 FROM onerepl.chunk WHERE n = $1 AND xmin::text = $2",
                                      {n, std::to_string(found->xid)})
                           .has_value();
    return there ? &*found : nullptr;
}

}  // namespace

void store_chunk(Number n, int link, std::uint64_t refresh, ByteView record) {
    const std::optional<Bytes> compressed = compress(record, settings::compression == 0 ? 0 : stored_level);
    pg::execute(
        "INSERT INTO onerepl.chunk (n, link, refresh, compressed, body, size) VALUES ($1, $2, $3, $4, $5, "
        "$6)",
        {n, link, refresh, compressed.has_value(), compressed ? ByteView(*compressed) : record,
         static_cast<std::uint64_t>(record.size())});
    keep(n, record);
}

std::optional<Bytes> load_chunk(Number n) {
    if (const Kept* chunk = find_kept(n)) return chunk->record;
    std::optional<Bytes> record;
    pg::query("SELECT compressed, body FROM onerepl.chunk WHERE n = $1", {n}, [&](const pg::Row& row) {
        record = row.bytea(1);
        DecompressError error{};
        if (row.boolean(0)) record = decompress(*record, largest, error);
        if (!record) throw pg::Error("XX001", "chunk " + std::to_string(n) + " in onerepl.chunk is damaged");
    });
    return record;
}

/// By hand, both: they delay a change that waits for its number.
void store_sequences(Number n, ByteView record) {
    const Datum body = pg::Param(record).value;
    pg::call([&] {
        const Datum values[] = {UInt64GetDatum(n), body};
        store::insert_row(store::own_relation("sequence_record"), values);
    });
}

std::optional<Bytes> load_sequences(Number n) {
    varlena* const body = pg::call([&]() -> varlena* {
        ScanKeyData key = store::scan_key(1, BTEqualStrategyNumber, F_INT8EQ, UInt64GetDatum(n));
        store::OwnScan scan("sequence_record", "sequence_record_pkey", &key, 1);
        HeapTuple row = scan.previous();
        varlena* found = row == nullptr ? nullptr : PG_DETOAST_DATUM_COPY(scan.get(row, "body"));
        scan.close();
        return found;
    });
    if (body == nullptr) return std::nullopt;
    const auto* first = reinterpret_cast<const std::uint8_t*>(VARDATA(body));
    Bytes record(first, first + (VARSIZE(body) - VARHDRSZ));
    pfree(body);
    return record;
}

}  // namespace onerepl::log
