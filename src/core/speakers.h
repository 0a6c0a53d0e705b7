// P9: two copies of a remote that speak in turn, found before one of them says anything that contradicts the
// other.
#pragma once

#include "core/types.h"

namespace onerepl {

/// The processes of a remote that B has heard; plain bytes, all zero at first. A database has one such
/// process at a time, and each draws its name when it begins.
struct Speakers {
    Nonce current;
    Nonce former[8];  // the newest first
    /// Handed out with every answer since `current` speaks, and told back with the next body: who tells it
    /// has lived since then.
    std::uint64_t hearing;
};

/// A body of `process` came that tells `heard`. `fresh`: a random number, not zero. True: `process` was
/// replaced by another one and lives all the same, so there are two databases. What came late, or is
/// repeated, proves nothing.
bool speak_in_turn(Speakers& speakers, const Nonce& process, std::uint64_t heard, std::uint64_t fresh);

}  // namespace onerepl
