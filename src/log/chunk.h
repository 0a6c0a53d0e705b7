// Records that are made when they are numbered, and not by capture: the chunks of refreshes. Table
// onerepl.chunk keeps them until they are confirmed.
#pragma once

#include "log/batch.h"

#include <optional>

namespace onerepl::log {

/// NumberedTransaction::table of chunks; its xid is 0 and its flags are the id of the link that they are for
/// (P17: on other links their numbers are skipped).
constexpr std::uint32_t chunk_table = log_table_limit - 1;

/// A transaction of `count` chunks for `link`.
inline NumberedTransaction chunk_transaction(Number first, std::uint64_t count, int link) {
    return {0, first, count, static_cast<std::uint32_t>(link), chunk_table};
}

/// In a transaction with SPI connected. `record`: a core record; it is stored compressed.
void store_chunk(Number n, int link, std::uint64_t refresh, ByteView record);
/// nullopt: it was confirmed and is gone.
std::optional<Bytes> load_chunk(Number n);

}  // namespace onerepl::log
