// Records that are made when they are numbered, and not by capture: the chunks of refreshes, kept in
// onerepl.chunk, and where sequences stand, in onerepl.sequence_record, until they are confirmed.
#pragma once

#include "log/batch.h"

#include <optional>

namespace onerepl::log {

/// NumberedTransaction::table of chunks; its xid is 0 and its flags are the id of the link that they are for
/// (P17: on other links their numbers are skipped), or 0 for sequences, which are for every link.
constexpr std::uint32_t chunk_table = log_table_limit - 1;

/// A transaction of `count` chunks for `link`.
inline NumberedTransaction chunk_transaction(Number first, std::uint64_t count, int link) {
    return {0, first, count, static_cast<std::uint32_t>(link), chunk_table};
}

/// A record of sequences, which is a transaction of its own.
inline NumberedTransaction sequences_transaction(Number n) {
    return chunk_transaction(n, 1, 0);
}

/// In a transaction with SPI connected. `record`: a core record.
void store_sequences(Number n, ByteView record);
/// nullopt: every link has confirmed it, there is a newer one, and it is gone.
std::optional<Bytes> load_sequences(Number n);

/// In a transaction with SPI connected. `record`: a core record; it is stored compressed.
void store_chunk(Number n, int link, std::uint64_t refresh, ByteView record);
/// nullopt: it was confirmed and is gone.
std::optional<Bytes> load_chunk(Number n);

}  // namespace onerepl::log
