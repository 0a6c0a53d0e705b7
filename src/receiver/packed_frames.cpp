// Compression of frames in the central's tables.
#include "receiver/packed_frames.h"

#include "core/compression.h"

namespace onerepl::receiver {

namespace {
constexpr std::size_t largest = std::size_t{1} << 30;  // what PostgreSQL can hold in one value
}

Bytes pack_compressed(ByteView compressed) {
    Bytes packed;
    packed.reserve(1 + compressed.size());
    packed.push_back(1);
    packed.insert(packed.end(), compressed.begin(), compressed.end());
    return packed;
}

Bytes pack_frames(ByteView frames, int compression) {
    const std::optional<Bytes> compressed = compress(frames, compression);
    if (compressed) return pack_compressed(*compressed);
    Bytes packed;
    packed.reserve(1 + frames.size());
    packed.push_back(0);
    packed.insert(packed.end(), frames.begin(), frames.end());
    return packed;
}

std::optional<Bytes> unpack_frames(ByteView packed) {
    if (packed.empty()) return std::nullopt;
    const ByteView content = packed.subspan(1);
    if (packed[0] == 0) return Bytes(content.begin(), content.end());
    DecompressError error{};
    return decompress(content, largest, error);
}

}  // namespace onerepl::receiver
