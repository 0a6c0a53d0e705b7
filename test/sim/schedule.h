// What may happen in one schedule, drawn from its seed.
#pragma once

#include "random.h"

namespace onerepl::sim {

struct Options {
    // The system's settings.
    Time reply_timeout = second;
    Time send_interval = 200 * millisecond;
    Time state_query_interval = 2 * second;
    std::size_t max_in_flight = 4;
    std::uint64_t batch_bytes = 200;
    std::uint64_t room = 1 << 20;
    Number start = 0;      // N0
    bool encoded = false;  // bodies travel as bytes, through core/body.h

    // The channel.
    double lose = 0;
    double damage_body = 0;
    double damage_frame = 0;
    double duplicate = 0;
    double long_delay = 0;  // up to three times Tr
    Time most_delay = 20 * millisecond;

    // Work and trouble.
    Time active = 8 * second;  // then faults stop
    std::size_t transactions = 40;
    double conflict = 0;       // a record cannot be written until resolved
    double unknown_table = 0;  // a record needs a description that B lacks
    double skip = 0;           // a record is a skip range
    double crash_remote = 0;   // at each step
    double crash_central = 0;
    double write_fails = 0;   // transient, the turn's commit
    double side_by_side = 0;  // a second receiver takes the body while the link is taken
    std::size_t blocks = 0;
    std::size_t pauses = 0;
    bool purge = false;
    /// Trouble of P9.
    enum class Fork : std::uint8_t { none, restore_remote, restore_central, clone } fork = Fork::none;

    bool faultless() const;
};

Options draw_options(Random& random);
std::string to_string(const Options& options);

}  // namespace onerepl::sim
