// Checks the framing of a chunked body byte by byte, before the parser sees it: what the parser makes of an
// odd chunk line must not depend on how the bytes were cut on their way. Chunk extensions and trailers, which
// no peer of ours sends, are refused.
#pragma once

#include "core/types.h"

namespace onerepl::http {

class ChunkGuard {
  public:
    /// False: the framing is malformed, now and for good. Bytes after the end of the body are not looked at.
    bool accept(ByteView bytes);

  private:
    enum class State : std::uint8_t {
        size,
        size_end,
        data,
        data_cr,
        data_lf,
        last_cr,
        last_lf,
        done,
        malformed
    };
    State next(std::uint8_t byte);
    State next_in_size(std::uint8_t byte);

    State state_ = State::size;
    std::uint64_t left_ = 0;  // of the chunk's size or data
    int digits_ = 0;
};

}  // namespace onerepl::http
