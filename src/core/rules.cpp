// Names of the rules, for reports.
#include "core/rules.h"

namespace onerepl {

const char* name_of(Rule rule) {
    static constexpr std::array<const char*, static_cast<std::size_t>(Rule::count)> names{
        "R1a", "R1b", "R2", "R3a", "R3b", "R3c", "R3d", "R3e", "R3f", "C1a", "C1b", "C1c", "C2a",
        "C2b", "C2c", "C3", "C4",  "P1",  "P2",  "P3",  "P5",  "P9",  "P12", "P15", "P16", "P17"};
    return names[static_cast<std::size_t>(rule)];
}

}  // namespace onerepl
