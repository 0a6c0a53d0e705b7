// Compression of byte strings with zstd.
#pragma once

#include "core/types.h"

#include <optional>

namespace onerepl {

/// One zstd frame that announces its size; nullopt if that would not be smaller than `in`, if `in` is not
/// worth the time (a few hundred bytes), or if `level` is 0. Levels above 19 need more memory at the reader
/// than they are worth and count as 19.
std::optional<Bytes> compress(ByteView in, int level);

enum class DecompressError : std::uint8_t { malformed, too_large };

/// What announces more than `limit` bytes is refused before anything is allocated (P14).
/// Sets `error` if it gives nullopt.
std::optional<Bytes> decompress(ByteView in, std::size_t limit, DecompressError& error);

}  // namespace onerepl
