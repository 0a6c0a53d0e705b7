// Ordering of a large transaction in pieces, so that memory follows the largest statement and not the
// transaction.
#include "log/transaction_order.h"

#include "log/unique_values.h"
#include "pg/error_boundary.h"

#include <algorithm>

namespace onerepl::log {

namespace {

/// Hands out the records of the packs [first, end) in log order. `data` of a pack lives in a context of its
/// own.
template <class Each>
void scan_records(LogTables& tables, const NumberedTransaction& transaction, std::int32_t from_seq,
                  std::size_t packs, Each&& each) {
    const MemoryContext before = CurrentMemoryContext;
    const MemoryContext context = pg::call([] {
        return AllocSetContextCreate(CurrentMemoryContext, "onerepl log order", ALLOCSET_DEFAULT_SIZES);
    });
    PackScan scan(tables, transaction.table, transaction.xid, from_seq);
    while (packs-- > 0 && scan.next()) {
        MemoryContextSwitchTo(context);
        PackReader reader(scan.data());
        for (PackedRecord record; reader.next(record);) each(scan.seq(), record);
        MemoryContextSwitchTo(before);
        MemoryContextReset(context);
        if (reader.damaged()) throw pg::Error("XX001", "a pack of the onerepl log is damaged");
    }
    scan.close();
    MemoryContextDelete(context);
}

OrderRecord order_record(const PackedRecord& from, std::uint32_t relation) {
    OrderRecord record;
    record.relation = relation & 0x7fffffff;
    const bool row_change = from.operation == Operation::insert || from.operation == Operation::update ||
                            from.operation == Operation::remove;
    record.barrier = !row_change || from.rewritten;
    record.command = row_change ? from.command : no_command;
    record.old_block = from.old_id.block;
    record.old_offset = from.old_id.offset;
    record.new_block = from.new_id.block;
    record.new_offset = from.new_id.offset;
    return record;
}

bool in_command_order(const std::vector<OrderRecord>& records) {
    std::uint32_t highest = 0;
    for (const OrderRecord& record : records) {
        if (record.command < highest) return false;
        if (record.command != no_command) highest = record.command;
    }
    return true;
}

}  // namespace

TransactionOrder::TransactionOrder(LogTables& tables, const NumberedTransaction& transaction)
    : transaction_(transaction) {
    summarize(tables);
    find_pieces();
}

void TransactionOrder::summarize(LogTables& tables) {
    scan_records(tables, transaction_, 0, SIZE_MAX, [&](std::int32_t seq, const PackedRecord& record) {
        if (packs_.empty() || packs_.back().seq != seq) {
            packs_.emplace_back();
            packs_.back().seq = seq;
            packs_.back().first = size_;
        }
        size_++;
        // These have no command of their own, and nothing of their table passes them.
        if (record.operation == Operation::describe || record.operation == Operation::truncate ||
            record.operation == Operation::statement)
            return;
        PackSummary& pack = packs_.back();
        pack.lowest_command = std::min(pack.lowest_command, record.command);
        pack.highest_command = std::max(pack.highest_command, record.command);
    });
}

void TransactionOrder::find_pieces() {
    std::vector<std::uint32_t> lowest_from(packs_.size() + 1, UINT32_MAX);
    for (std::size_t i = packs_.size(); i-- > 0;)
        lowest_from[i] = std::min(lowest_from[i + 1], packs_[i].lowest_command);
    std::uint32_t highest = 0;
    std::size_t first = 0;
    for (std::size_t i = 0; i < packs_.size(); i++) {
        highest = std::max(highest, packs_[i].highest_command);
        if (i + 1 < packs_.size() && lowest_from[i + 1] <= highest) continue;
        const std::uint64_t end = i + 1 < packs_.size() ? packs_[i + 1].first : size_;
        pieces_.push_back({first, i + 1, packs_[first].first, end});
        first = i + 1;
    }
}

void TransactionOrder::order_piece(const Piece& piece, LogTables& tables, Layouts& layouts) {
    std::vector<OrderRecord> records;
    records.reserve(piece.end - piece.first);
    const std::int32_t from_seq = packs_[piece.first_pack].seq;
    const std::size_t packs = piece.end_pack - piece.first_pack;
    scan_records(tables, transaction_, from_seq, packs, [&](std::int32_t, const PackedRecord& record) {
        const bool has_table = record.description != 0;
        records.push_back(
            order_record(record, has_table ? layouts.of(record.description).layout().relation : InvalidOid));
    });
    order_.clear();
    if (in_command_order(records)) return;

    UniqueValueCollector values(layouts);
    scan_records(tables, transaction_, from_seq, packs,
                 [&](std::int32_t, const PackedRecord& record) { values.check(record); });
    scan_records(tables, transaction_, from_seq, packs,
                 [&](std::int32_t, const PackedRecord& record) { values.collect(record); });
    order_ = order_records(records, values.take()).order;
}

TransactionOrder::Place TransactionOrder::at(std::uint64_t position, LogTables& tables, Layouts& layouts) {
    const auto piece = std::prev(std::ranges::upper_bound(pieces_, position, {}, &Piece::first));
    const auto index = static_cast<std::size_t>(piece - pieces_.begin());
    if (ordered_piece_ != index) {
        ordered_piece_ = SIZE_MAX;
        order_piece(*piece, tables, layouts);
        ordered_piece_ = index;
    }
    if (!order_.empty()) position = piece->first + order_[position - piece->first];
    const auto pack = std::prev(std::ranges::upper_bound(packs_, position, {}, &PackSummary::first));
    return {static_cast<std::size_t>(pack - packs_.begin()),
            static_cast<std::uint32_t>(position - pack->first)};
}

}  // namespace onerepl::log
