// Randomness of a schedule: everything follows from its seed.
#pragma once

#include "core/types.h"

namespace onerepl::sim {

/// SplitMix64: small, fast, good enough to choose what happens.
class Random {
  public:
    explicit Random(std::uint64_t seed) : state_(seed * 0x9e3779b97f4a7c15u + 0x632be59bd9b4e019u) {}

    std::uint64_t next() {
        std::uint64_t z = state_ += 0x9e3779b97f4a7c15u;
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
        z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
        return z ^ (z >> 31);
    }
    /// From `low` to `high`, both included.
    std::int64_t between(std::int64_t low, std::int64_t high) {
        return low + static_cast<std::int64_t>(next() % static_cast<std::uint64_t>(high - low + 1));
    }
    bool chance(double probability) { return static_cast<double>(next() >> 11) * 0x1p-53 < probability; }
    Identity identity() {
        Identity value;
        for (std::size_t i = 0; i < value.size(); ++i) value[i] = static_cast<std::uint8_t>(next());
        return value;
    }

  private:
    std::uint64_t state_;
};

}  // namespace onerepl::sim
