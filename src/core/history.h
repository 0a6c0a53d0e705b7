// P9: A's history has an identity at each number.
#pragma once

#include "core/ranges.h"

#include <optional>

namespace onerepl {

/// One batch of numbers as the chain of identities needs it. Written to disk on A before its first message
/// leaves.
struct Batch {
    Range numbers{};
    /// The identity of the history before the batch, at numbers.first - 1.
    Identity before{};
    /// 128 random bits, drawn when the batch was numbered.
    Identity random{};

    bool operator==(const Batch&) const = default;
};

/// The identity at number 0 of a remote: its identifier.
inline Identity identity_at_zero(const Uuid& remote) {
    return remote;
}

/// The identity at `n`, which must lie in the batch or be the number before it:
/// the first 16 bytes of SHA-256(before, random, n big-endian); `before` itself at numbers.first - 1.
Identity identity_at(const Batch& batch, Number n);

}  // namespace onerepl
