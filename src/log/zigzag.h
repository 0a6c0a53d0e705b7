// Signed numbers as unsigned ones: those near zero stay small, so that a varint of them is short.
#pragma once

#include <cstdint>

namespace onerepl::log {

constexpr std::uint64_t zigzag(std::int64_t value) {
    return static_cast<std::uint64_t>(value) << 1 ^ static_cast<std::uint64_t>(value >> 63);
}

constexpr std::int64_t unzigzag(std::uint64_t value) {
    return static_cast<std::int64_t>(value >> 1) ^ -static_cast<std::int64_t>(value & 1);
}

}  // namespace onerepl::log
