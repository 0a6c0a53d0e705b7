// A journal that keeps what it is told, for tests of the two state machines.
#pragma once

#include "core/journal.h"

#include <algorithm>

namespace onerepl::test {

class RecordingJournal : public Journal {
  public:
    void write(JournalEntry entry) override { entries.push_back(std::move(entry)); }
    /// How often a rule spoke.
    long count(std::string_view rule) const {
        return std::count_if(entries.begin(), entries.end(),
                             [&](const JournalEntry& entry) { return entry.rule == rule; });
    }

    std::vector<JournalEntry> entries;
};

/// A history of one batch.
inline Batch one_batch(Number last) {
    return {{1, last}, {0xaa}, {0xbb}};
}

}  // namespace onerepl::test
