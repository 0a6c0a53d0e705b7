// Hashes of unique values, from the rows' stored bytes. Values that are equal but stored differently
// (numeric 1.0 and 1.00) are not recognized as equal; then log order has to do.
#include "log/unique_values.h"

extern "C" {
#include "common/hashfn.h"
}

#include "pg/error_boundary.h"

#include <algorithm>
#include <cstring>

namespace onerepl::log {

namespace {

std::uint64_t mix(std::uint64_t seed, const void* bytes, std::size_t size) {
    return hash_bytes_extended(static_cast<const unsigned char*>(bytes), static_cast<int>(size), seed);
}

std::uint64_t mix_value(std::uint64_t seed, const LayoutColumn& column, Datum value) {
    if (column.by_value) return mix(seed, &value, sizeof value);
    if (column.length > 0) return mix(seed, DatumGetPointer(value), static_cast<std::size_t>(column.length));
    if (column.length == -2) return mix(seed, DatumGetCString(value), std::strlen(DatumGetCString(value)));
    auto* stored = reinterpret_cast<varlena*>(DatumGetPointer(value));
    if (VARATT_IS_COMPRESSED(stored)) stored = pg::call([&] { return pg_detoast_datum_packed(stored); });
    return mix(seed, VARDATA_ANY(stored), VARSIZE_ANY_EXHDR(stored));
}

std::optional<std::uint64_t> hash_of(RecordEncoder& encoder, std::size_t set) {
    const Layout& layout = encoder.layout();
    std::uint64_t hash = std::uint64_t{layout.relation} << 16 | set;
    for (std::uint16_t column : layout.unique_sets[set]) {
        if (encoder.decoder().is_null(column)) return std::nullopt;
        hash = mix_value(hash, layout.columns[column], encoder.decoder().value(column));
    }
    return hash;
}

}  // namespace

UniqueValueCollector::UniqueValueCollector(Layouts& layouts) : layouts_(layouts) {}

std::vector<std::optional<std::uint64_t>> UniqueValueCollector::hashes(RecordEncoder& encoder,
                                                                       const Image& image) {
    std::vector<std::optional<std::uint64_t>> result(encoder.layout().unique_sets.size());
    if (result.empty() || image.bytes.empty() || !encoder.decoder().decode(image)) return result;
    for (std::size_t set = 0; set < result.size(); set++) result[set] = hash_of(encoder, set);
    return result;
}

/// Calls each(hash, taken).
template <class Each>
void UniqueValueCollector::for_each_value(const PackedRecord& record, Each&& each) {
    const bool insert = record.operation == Operation::insert;
    const bool row_change =
        insert || record.operation == Operation::update || record.operation == Operation::remove;
    // An update without an old image changed no unique column.
    if (!row_change || (!insert && record.old_kind == OldImage::none)) return;
    RecordEncoder& encoder = layouts_.of(record.description);
    const auto before = hashes(encoder, record.old_row);
    const auto after = hashes(encoder, record.new_row);
    for (std::size_t set = 0; set < before.size(); set++) {
        const auto& columns = encoder.layout().unique_sets[set];
        const bool kept = before[set] == after[set] || std::ranges::any_of(columns, [&](std::uint16_t i) {
                              return record.is_unchanged(i);
                          });
        if (kept) continue;
        if (before[set]) each(*before[set], false);
        if (after[set]) each(*after[set], true);
    }
}

void UniqueValueCollector::check(const PackedRecord& record) {
    for_each_value(record, [&](std::uint64_t hash, bool taken) { (taken ? taken_ : given_up_).add(hash); });
}

void UniqueValueCollector::collect(const PackedRecord& record) {
    for_each_value(record, [&](std::uint64_t hash, bool taken) {
        if (taken_.contains(hash) && given_up_.contains(hash)) values_.push_back({hash, next_, taken});
    });
    next_++;
}

}  // namespace onerepl::log
