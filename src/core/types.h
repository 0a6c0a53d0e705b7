// The specification's basic notions: numbers, ranges of numbers, identifiers, time.
// Plain C++20: nothing in src/core knows PostgreSQL, a socket or a clock.
#pragma once

#include <array>
#include <chrono>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace onerepl {

/// A log number N. Numbers begin at 1; 0 means "none".
using Number = std::uint64_t;
/// No number on the wire is larger: every number, the one after it, and the sum of two of them, fits a
/// signed 64-bit integer too.
constexpr Number largest_number = 0x3fff'ffff'ffff'ffff;

/// Moments and spans of the caller's own monotonic clock, in microseconds (P16: peers' clocks are never
/// compared).
using Time = std::int64_t;
constexpr Time millisecond = 1000;
constexpr Time second = 1000 * millisecond;

using Bytes = std::vector<std::uint8_t>;
using ByteView = std::span<const std::uint8_t>;

/// Identifier of a database (the remote or the central): a UUID in network order. All zero: not known yet.
using Uuid = std::array<std::uint8_t, 16>;
/// Identity of a history at a number (P9), and the random identity of a batch.
using Identity = std::array<std::uint8_t, 16>;
/// Random name of one body, echoed by the answer to it (P10).
using Nonce = std::array<std::uint8_t, 16>;

inline ByteView view(std::string_view text) {
    return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}

template <std::size_t Size>
bool is_zero(const std::array<std::uint8_t, Size>& value) {
    return value == std::array<std::uint8_t, Size>{};
}

/// Lower-case hexadecimal of `bytes`, without separators.
std::string to_hex(ByteView bytes);

}  // namespace onerepl
