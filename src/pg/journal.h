// The journal table. Entries of one transaction share its fate unless they are kept in memory until after it.
#pragma once

#include "core/journal.h"

#include <deque>

namespace onerepl::pg {

/// Writes one entry with the current transaction; SPI must be connected. `link`: id in onerepl.link; 0: none.
/// Below onerepl.journal_level it is dropped; a critical one also goes to the server log and, once the
/// transaction has committed, to onerepl.alert_command.
void write_journal_entry(int link, const JournalEntry& entry);

/// Collects entries; `flush` writes them with the current transaction. Used by workers: what is told about a
/// transaction that is rolled back must not be rolled back with it.
class JournalBuffer : public Journal {
  public:
    /// `link`: id in onerepl.link; 0: none.
    explicit JournalBuffer(int link = 0) : link_(link) {}
    void write(JournalEntry entry) override;
    bool empty() const { return entries_.empty(); }
    /// In a transaction with SPI connected. Writes all entries as write_journal_entry does. If one of them
    /// fails, that one and those behind it are kept for the next time.
    void flush();

  private:
    int link_;
    std::deque<JournalEntry> entries_;
};

}  // namespace onerepl::pg
