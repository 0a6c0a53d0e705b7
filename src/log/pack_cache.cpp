// Cache of packs, bounded in bytes.
#include "log/pack_cache.h"

#include "pg/error_boundary.h"

namespace onerepl::log {

namespace {
constexpr std::size_t cache_limit = 8 * 1024 * 1024;  // bytes; one pack is kept whatever its size
}

PackCache::Entry PackCache::load(LogTables& tables, const NumberedTransaction& transaction,
                                 std::int32_t seq) {
    PackScan scan(tables, transaction.table, transaction.xid, seq);
    Entry entry;
    entry.xid = transaction.xid;
    entry.seq = seq;
    if (!scan.next() || scan.seq() != seq) throw pg::Error("XX001", "a pack of the onerepl log is missing");
    const ByteView data = scan.data();
    entry.data.assign(data.begin(), data.end());
    scan.close();
    PackReader reader(entry.data);
    for (PackedRecord record; reader.next(record);) entry.records.push_back(record);
    if (reader.damaged()) throw pg::Error("XX001", "a pack of the onerepl log is damaged");
    return entry;
}

const std::vector<PackedRecord>& PackCache::records(LogTables& tables, const NumberedTransaction& transaction,
                                                    std::int32_t seq) {
    for (auto entry = entries_.begin(); entry != entries_.end(); ++entry) {
        if (entry->seq != seq || entry->xid != transaction.xid) continue;
        entries_.splice(entries_.begin(), entries_, entry);
        return entry->records;
    }
    entries_.push_front(load(tables, transaction, seq));
    size_ += entries_.front().size();
    for (; size_ > cache_limit && entries_.size() > 1; entries_.pop_back()) size_ -= entries_.back().size();
    return entries_.front().records;
}

void PackCache::trim() {
    if (size_ <= cache_limit) return;
    entries_.clear();
    size_ = 0;
}

}  // namespace onerepl::log
