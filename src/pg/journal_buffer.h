// The journal table. Entries of one transaction share its fate unless they are kept in memory until after it.
#pragma once

#include "core/journal.h"
#include "core/types.h"

#include <cstddef>
#include <deque>
#include <map>
#include <memory>

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
    /// Of entries that say the same, critical ones apart, no more than some are kept within some seconds:
    /// whoever makes them come does not fill the table (P22). The next one says how many were left out.
    void write(JournalEntry entry) override;
    bool empty() const { return entries_->empty(); }
    /// In an in_transaction, once. Writes all entries as write_journal_entry does. They are kept for the next
    /// time until the transaction has committed (P20).
    void flush();

  private:
    struct Said {
        Time since = 0;
        std::size_t times = 0;
    };
    bool is_said_too_often(JournalEntry& entry);

    int link_;
    std::shared_ptr<std::deque<JournalEntry>> entries_ = std::make_shared<std::deque<JournalEntry>>();
    std::map<std::string, Said> said_;  // by message
};

}  // namespace onerepl::pg
