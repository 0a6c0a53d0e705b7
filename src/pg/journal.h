// The journal table. Entries of one transaction share its fate unless they are kept in memory until after it.
#pragma once

#include "core/journal.h"

#include <deque>
#include <optional>

namespace onerepl::pg {

/// Collects entries; `flush` writes them with the current transaction. Used by workers: what is told about a
/// transaction that is rolled back must not be rolled back with it.
class JournalBuffer : public Journal {
  public:
    /// `link`: id in onerepl.link; 0: none.
    explicit JournalBuffer(int link = 0) : link_(link) {}
    void write(JournalEntry entry) override;
    bool empty() const { return entries_.empty(); }
    /// In a transaction with SPI connected. Entries below onerepl.journal_level are dropped; critical ones
    /// also go to the server log and to onerepl.alert_command.
    void flush();

  private:
    int link_;
    std::deque<JournalEntry> entries_;
};

}  // namespace onerepl::pg
