#include "pg/pg.h"

#include "sender/remote_housekeeping.h"

#include "log/purge.h"
#include "pg/journal_buffer.h"
#include "pg/settings.h"
#include "pg/spi.h"
#include "pg/transaction.h"
#include "shared/memory.h"
#include "worker/worker.h"

#include <cmath>

namespace onerepl::sender {

namespace {

double megabytes_of(std::int64_t (*size)()) {
    std::int64_t bytes = 0;
    pg::in_transaction([&] { bytes = size(); });
    return static_cast<double>(bytes) / (1024 * 1024);
}

}  // namespace

void Housekeeping::turn(Time now) {
    if (purge_.due(now)) worker::attempt([] { log::purge_step(settings::log_retention); });
    if (log_size_.due(now)) worker::attempt([this] { check_log_size(); });
    if (self_check_.due(now)) worker::attempt(worker::self_check);
    if (journal_.due(now)) worker::attempt(worker::purge_journal);
}

/// What is confirmed is no reason for an alarm: at the limit it goes at once, whatever the retention. The
/// first call seals what is confirmed, the second one empties it.
void Housekeeping::check_log_size() {
    if (settings::log_critical_size > 0 && megabytes_of(log::log_size) >= settings::log_critical_size)
        for (int i = 0; i < 2; i++) log::purge_step(0);
    const double megabytes = megabytes_of(log::unconfirmed_size);
    pg::in_transaction([&] { report_log_size(megabytes); });
}

void Housekeeping::report_log_size(double megabytes) {
    const std::string size = std::to_string(std::lround(megabytes)) + " MB";
    const bool critical = settings::log_critical_size > 0 && megabytes >= settings::log_critical_size;
    const bool warning = settings::log_warning_size > 0 && megabytes >= settings::log_warning_size;
    const int level = critical ? 2 : warning ? 1 : 0;
    pg::JournalBuffer journal;
    if (level > log_level_)
        journal.write({static_cast<Level>(level),
                       "P7",
                       "the log has grown to " + size + " that are not confirmed",
                       "See onerepl_status() which link does not confirm; repair it, or remove the link.",
                       {}});
    if (level < log_level_)
        journal.write(
            {Level::information, "P7", "the log has shrunk to " + size + " that are not confirmed", "", {}});
    log_level_ = level;
    // At the second look: what was confirmed in between, and what a writer had locked, has had time to go.
    const bool stays = critical && was_critical_;
    was_critical_ = critical;
    if (stays && settings::log_limit_policy == 1 && !shared::capture_stopped()) {
        pg::execute("UPDATE onerepl.log_state SET capture_stopped = true");
        shared::set_capture_stopped(true);
        journal.write(
            {Level::critical,
             "P7",
             "capture is stopped: what is not confirmed has reached onerepl.log_critical_size",
             "Changes are no longer logged. When the links work again, call onerepl_restart_link at the "
             "central, then here "
             "with onerepl_refresh in one transaction: what was logged before counts as confirmed then.",
             {}});
    }
    journal.flush();
}

}  // namespace onerepl::sender
