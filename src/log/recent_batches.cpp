// Cache of the newest batches, bounded in number and bytes.
#include "log/recent_batches.h"

#include <algorithm>

namespace onerepl::log {

namespace {
constexpr std::size_t most_entries = 256;
constexpr std::size_t most_bytes = 1024 * 1024;
}  // namespace

void RecentBatches::add(Entry entry) {
    if (!entries_.empty() && entries_.back().batch.numbers.last + 1 != entry.batch.numbers.first) clear();
    bytes_ += entry.transactions.size();
    entries_.push_back(std::move(entry));
    for (; entries_.size() > most_entries || (bytes_ > most_bytes && entries_.size() > 1);
         entries_.pop_front())
        bytes_ -= entries_.front().transactions.size();
}

void RecentBatches::clear() {
    entries_.clear();
    bytes_ = 0;
}

const RecentBatches::Entry* RecentBatches::find(Number n) const {
    const auto after = std::ranges::upper_bound(entries_, n, {},
                                                [](const Entry& entry) { return entry.batch.numbers.first; });
    if (after == entries_.begin()) return nullptr;
    const Entry& entry = *std::prev(after);
    return entry.batch.numbers.contains(n) ? &entry : nullptr;
}

const RecentBatches::Entry* RecentBatches::next(const Entry* entry) const {
    return find(entry->batch.numbers.last + 1);
}

RecentBatches& recent_batches() {
    static RecentBatches batches;
    return batches;
}

}  // namespace onerepl::log
