// The layout of a frame's header, for those who write and read it. docs/protocol/wire.md, "Frames".
#pragma once

#include "core/frame.h"

namespace onerepl::frame_layout {

constexpr std::array<std::uint8_t, 4> frame_magic{'O', 'R', 'P', 'F'};
constexpr std::uint8_t version = 1;
constexpr std::size_t checksum_at = 8;
constexpr std::size_t length_at = 72;
constexpr std::uint16_t flag_last_of_transaction = 1;

/// The header's fields but for checksum and length.
struct Header {
    std::uint8_t version = frame_layout::version;
    std::uint8_t kind = 0;
    std::uint16_t flags = 0;
    Parties parties;
    Number n = 0;
    std::uint32_t part = 0;
    std::uint32_t parts = 1;
};

}  // namespace onerepl::frame_layout
