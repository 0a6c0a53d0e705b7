// Frames as the central's tables keep them: one byte that says how (0: as they are, 1: one zstd frame), then
// the bytes.
#pragma once

#include "core/types.h"

#include <optional>

namespace onerepl::receiver {

Bytes pack_frames(ByteView frames, int compression);
/// The same of frames that are compressed already.
Bytes pack_compressed(ByteView compressed);
/// nullopt if the bytes are damaged or announce more than a body may hold.
std::optional<Bytes> unpack_frames(ByteView packed);

}  // namespace onerepl::receiver
