// The journal as the core sees it: a place to tell the administrator something. Each side writes it to its
// table.
#pragma once

#include "core/ranges.h"

namespace onerepl {

enum class Level : std::uint8_t { information, warning, critical };

struct JournalEntry {
    Level level = Level::information;
    /// The specification's name of the rule that speaks, as "R3b" or "P9".
    const char* rule = "";
    /// One sentence in the style of PostgreSQL's primary messages: lower case, no full stop.
    std::string message;
    /// What the administrator does now; empty if nothing.
    std::string hint;
    /// The numbers that it is about; empty range if none.
    Range numbers;
};

class Journal {
  public:
    virtual ~Journal() = default;
    virtual void write(JournalEntry entry) = 0;
};

}  // namespace onerepl
