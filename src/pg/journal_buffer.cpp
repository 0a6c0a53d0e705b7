// Writes journal entries to onerepl.journal_entry, and makes critical ones heard outside of the database.
#include "pg/journal_buffer.h"

#include "pg/alert.h"
#include "pg/settings.h"
#include "pg/spi.h"
#include "pg/transaction.h"

extern "C" {
#include "catalog/pg_type.h"
}

#include <chrono>

namespace onerepl::pg {

namespace {

/// More entries than this wait in memory only if nothing can be written for long; then the oldest are worth
/// least.
constexpr std::size_t most_entries = 10000;
/// Entries that say the same.
constexpr std::size_t most_alike = 20;
constexpr Time time_of_alike = 10 * second;
constexpr std::size_t most_messages = 1000;

Time now() {
    return std::chrono::duration_cast<std::chrono::microseconds>(
               std::chrono::steady_clock::now().time_since_epoch())
        .count();
}

Param text_or_null(const std::string& text) {
    return text.empty() ? Param::null(TEXTOID) : Param(text);
}

std::string name_of_link(int link) {
    if (link == 0) return {};
    return query_text("SELECT name FROM onerepl.link WHERE id = $1", {link}).value_or("");
}

void report_outside(int link, const JournalEntry& entry) {
    const std::string name = name_of_link(link);
    call([&] {
        ereport(LOG_SERVER_ONLY,
                (name.empty() ? errmsg("onerepl: %s", entry.message.c_str())
                              : errmsg("onerepl, link \"%s\": %s", name.c_str(), entry.message.c_str()),
                 entry.hint.empty() ? 0 : errhint("%s", entry.hint.c_str())));
    });
    alert_at_commit({"critical", name, entry.message, entry.hint});
}

}  // namespace

void write_journal_entry(int link, const JournalEntry& entry) {
    if (static_cast<int>(entry.level) < settings::journal_level) return;
    const bool numbered = !entry.numbers.empty();
    execute(
        "INSERT INTO onerepl.journal_entry (level, link, rule, message, hint, first, last)"
        " VALUES ($1::int4, $2, $3, $4, $5, $6, $7)",
        {static_cast<std::int32_t>(entry.level), link == 0 ? Param::null(INT4OID) : Param(link), entry.rule,
         entry.message, text_or_null(entry.hint),
         numbered ? Param(entry.numbers.first) : Param::null(INT8OID),
         numbered ? Param(entry.numbers.last) : Param::null(INT8OID)});
    if (entry.level == Level::critical) report_outside(link, entry);
}

bool JournalBuffer::is_said_too_often(JournalEntry& entry) {
    if (entry.level == Level::critical) return false;
    if (said_.size() >= most_messages) said_.clear();
    Said& said = said_[entry.message];
    if (now() - said.since >= time_of_alike) {
        const std::size_t left_out = said.times > most_alike ? said.times - most_alike : 0;
        said = {now(), 0};
        if (left_out > 0) entry.message += " (and " + std::to_string(left_out) + " times more before)";
    }
    return ++said.times > most_alike;
}

void JournalBuffer::write(JournalEntry entry) {
    if (is_said_too_often(entry)) return;
    if (entries_->size() >= most_entries) entries_->pop_front();
    entries_->push_back(std::move(entry));
}

void JournalBuffer::flush() {
    if (empty()) return;
    for (const JournalEntry& entry : *entries_) write_journal_entry(link_, entry);
    const auto written = static_cast<std::ptrdiff_t>(entries_->size());
    on_commit(
        [entries = entries_, written] { entries->erase(entries->begin(), entries->begin() + written); });
}

}  // namespace onerepl::pg
