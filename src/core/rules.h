// The specification's rules by name, and how often each decided something. The simulation counts them; in
// production the counter is a null pointer and costs one test.
#pragma once

#include "core/types.h"

namespace onerepl {

/// Rules that are decisions of one of the two state machines.
enum class Rule : std::uint8_t {
    R1a,
    R1b,
    R2,
    R3a,
    R3b,
    R3c,
    R3d,
    R3e,
    R3f,
    C1a,
    C1b,
    C1c,
    C2a,
    C2b,
    C2c,
    C3,
    C4,
    P1,   // a record counts when all its parts are there
    P2,   // B confirms again what a remote state shows as not confirmed
    P3,   // B answers a confirmation request
    P5,   // B waits for the end of A's transaction
    P9,   // a link stops
    P12,  // an empty body, or no contact for Tr
    P15,  // B refuses or evicts, or A holds back, for lack of room or because of B's state
    P16,  // a request or repetition is held back, or a duplicate is confirmed again
    P17,  // B asks for a description that it lacks
    count
};

/// The rule's name in the specification.
const char* name_of(Rule rule);

using RuleCounts = std::array<std::uint64_t, static_cast<std::size_t>(Rule::count)>;

/// Where rules are counted; null: nowhere.
inline RuleCounts* rule_counts = nullptr;

inline void fired(Rule rule) {
    if (rule_counts != nullptr) ++(*rule_counts)[static_cast<std::size_t>(rule)];
}

}  // namespace onerepl
