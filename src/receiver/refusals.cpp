// Counting of refused requests, and their journal entries.
#include "pg/pg.h"

#include "receiver/refusals.h"

#include "pg/transaction.h"

#include <algorithm>

namespace onerepl::receiver {

namespace {
constexpr Time entry_interval = 60 * second;
constexpr std::size_t most_kinds = 100;  // reasons that an attacker chooses must not use up memory
}  // namespace

void Refusals::refused(const http::Refusal& refusal) {
    const std::string status = refusal.status == 0 ? "" : " (status " + std::to_string(refusal.status) + ")";
    const std::string reason = kinds_.size() < most_kinds ? refusal.reason + status : "various reasons";
    Kind& kind = kinds_[reason];
    kind.count++;
    kind.last_peer = refusal.peer;
}

void Refusals::handler_failed(const std::string& peer, const std::string& what) {
    refused({500, peer, what});
}

void Refusals::flush(Time now) {
    pg::JournalBuffer journal;
    for (auto& [reason, kind] : kinds_) {
        if (kind.count == 0 || (kind.reported_at != 0 && now - kind.reported_at < entry_interval)) continue;
        std::string message = kind.count == 1 ? "a request" : std::to_string(kind.count) + " requests";
        message.append(" refused: ").append(reason).append("; last from ").append(kind.last_peer);
        journal.write({Level::warning, "P14", std::move(message), "", {}});
        kind.count = 0;
        kind.reported_at = now;
    }
    std::erase_if(kinds_, [&](const auto& each) {
        return each.second.count == 0 && now - each.second.reported_at > entry_interval;
    });
    if (!journal.empty()) pg::in_transaction([&] { journal.flush(); });
}

}  // namespace onerepl::receiver
