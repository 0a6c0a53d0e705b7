// Draws the options of a schedule: each kind of trouble is absent in many of them, so that its effect shows
// alone.
#include "schedule.h"

#include <sstream>

namespace onerepl::sim {

namespace {

void draw_settings(Random& random, Options& options) {
    options.max_in_flight = static_cast<std::size_t>(random.between(1, 5));
    options.state_query_interval = random.between(2, 30) * 100 * millisecond;
    options.batch_bytes = static_cast<std::uint64_t>(random.between(60, 600));
    if (random.chance(0.3)) options.room = static_cast<std::uint64_t>(random.between(0, 1500));
    if (random.chance(0.3)) options.start = static_cast<Number>(random.between(1, 20));
    options.encoded = random.chance(0.15);
    options.active = random.between(3, 10) * second;
    options.transactions = static_cast<std::size_t>(random.between(3, 50));
}

void draw_channel(Random& random, Options& options) {
    if (random.chance(0.2)) return;  // a good channel
    if (random.chance(0.6)) options.lose = 0.02 * static_cast<double>(random.between(1, 15));
    if (random.chance(0.4)) options.damage_body = 0.05;
    if (random.chance(0.5)) options.damage_frame = 0.02 * static_cast<double>(random.between(1, 8));
    if (random.chance(0.5)) options.duplicate = 0.15;
    if (random.chance(0.4)) options.long_delay = 0.08;
    if (random.chance(0.5)) options.most_delay = 300 * millisecond;
}

void draw_trouble(Random& random, Options& options) {
    if (random.chance(0.3)) options.conflict = 0.03;
    if (random.chance(0.3)) options.unknown_table = 0.05;
    if (random.chance(0.2)) options.skip = 0.1;
    if (random.chance(0.4)) options.crash_remote = 0.01 * static_cast<double>(random.between(1, 3));
    if (random.chance(0.4)) options.crash_central = 0.01 * static_cast<double>(random.between(1, 3));
    if (random.chance(0.3)) options.write_fails = 0.05;
    if (random.chance(0.3)) options.side_by_side = 0.2;
    if (random.chance(0.3)) options.blocks = static_cast<std::size_t>(random.between(1, 4));
    if (random.chance(0.3)) options.pauses = static_cast<std::size_t>(random.between(1, 3));
    options.purge = random.chance(0.3);
    if (random.chance(0.2)) options.fork = static_cast<Options::Fork>(random.between(1, 3));
}

}  // namespace

bool Options::faultless() const {
    return lose + damage_body + damage_frame + duplicate + long_delay + crash_remote + crash_central +
                   write_fails + side_by_side + conflict ==
               0 &&
           room > 4096 && pauses == 0 && fork == Fork::none && max_in_flight == 1 &&
           most_delay < reply_timeout / 4;
}

Options draw_options(Random& random) {
    Options options;
    draw_settings(random, options);
    draw_channel(random, options);
    if (!random.chance(0.1)) draw_trouble(random, options);
    return options;
}

std::string to_string(const Options& options) {
    std::ostringstream text;
    text << "in flight " << options.max_in_flight << ", batch bytes " << options.batch_bytes << ", room "
         << options.room << ", Ts " << options.state_query_interval / millisecond << " ms, start "
         << options.start << (options.encoded ? ", encoded" : "") << ", lose " << options.lose
         << ", damage body " << options.damage_body << ", damage frame " << options.damage_frame
         << ", duplicate " << options.duplicate << ", long delay " << options.long_delay << ", delay "
         << options.most_delay / millisecond << " ms, conflict " << options.conflict << ", unknown table "
         << options.unknown_table << ", skip " << options.skip << ", crash A " << options.crash_remote
         << ", crash B " << options.crash_central << ", write fails " << options.write_fails
         << ", side by side " << options.side_by_side << ", blocks " << options.blocks << ", pauses "
         << options.pauses << ", fork " << static_cast<int>(options.fork);
    return text.str();
}

}  // namespace onerepl::sim
