// Transfers of one body, kept in order of their numbers.
#include "pg/pg.h"

#include "receiver/incoming.h"

#include <algorithm>

namespace onerepl::receiver {

namespace {

bool is_chunk(const ObjectTransfer& transfer) {
    return !transfer.record.empty() && transfer.record[0] == static_cast<std::uint8_t>(Operation::chunk);
}

}  // namespace

void Incoming::add(const ObjectTransfer& transfer, ByteView frame) {
    auto before = [](const Taken& a, const Taken& b) {
        return std::pair(a.transfer.n, a.transfer.part) < std::pair(b.transfer.n, b.transfer.part);
    };
    Taken taken{transfer, frame};
    has_chunk_ = has_chunk_ || is_chunk(transfer);
    // Nearly always they come in order.
    if (taken_.empty() || before(taken_.back(), taken))
        taken_.push_back(taken);
    else
        taken_.insert(std::upper_bound(taken_.begin(), taken_.end(), taken, before), taken);
}

std::size_t Incoming::find(Number n) const {
    return static_cast<std::size_t>(
        std::lower_bound(taken_.begin(), taken_.end(), n,
                         [](const Taken& taken, Number number) { return taken.transfer.n < number; }) -
        taken_.begin());
}

bool Incoming::holds(Range numbers) const {
    Number expected = numbers.first;
    for (std::size_t i = find(numbers.first); i < taken_.size() && expected <= numbers.last; i++, expected++)
        if (taken_[i].transfer.n != expected || taken_[i].transfer.parts != 1) return false;
    return expected > numbers.last;
}

bool Incoming::is_all_of(Range numbers) const {
    return holds(numbers) && !has_chunk_ && taken_.front().transfer.n == numbers.first &&
           taken_.back().transfer.n == numbers.last;
}

Bytes Incoming::frames(const Spool& spool) const {
    Bytes out;
    for (std::size_t i = find(spool.numbers.first);
         i < taken_.size() && taken_[i].transfer.n <= spool.numbers.last; i++)
        if (taken_[i].transfer.parts == spool.parts &&
            (spool.parts == 1 || taken_[i].transfer.part == spool.part))
            out.insert(out.end(), taken_[i].frame.begin(), taken_[i].frame.end());
    return out;
}

namespace {

/// False: it is no chunk, or has no rows to be left out.
bool leave_out_rows(ObjectTransfer& transfer, Bytes& record) {
    if (transfer.parts > 1 || !is_chunk(transfer)) return false;
    std::optional<Record> decoded = decode_record(transfer.record);
    if (!decoded || decoded->chunk.verify) return false;
    decoded->chunk.rows = {};
    decoded->chunk.row_count = 0;
    encode_record(*decoded, record);
    transfer.record = record;
    return true;
}

}  // namespace

Bytes Incoming::log_frames(Range numbers, const Parties& parties) const {
    Bytes out;
    Bytes record;
    for (std::size_t i = find(numbers.first); i < taken_.size() && taken_[i].transfer.n <= numbers.last;
         i++) {
        ObjectTransfer transfer = taken_[i].transfer;
        record.clear();
        if (leave_out_rows(transfer, record))
            encode_frame(parties, transfer, out);
        else
            out.insert(out.end(), taken_[i].frame.begin(), taken_[i].frame.end());
    }
    return out;
}

bool IncomingSource::next(apply::IncomingRecord& record) {
    if (index_ >= incoming_.taken_.size()) return false;
    const ObjectTransfer& transfer = incoming_.taken_[index_].transfer;
    if (transfer.n > numbers_.last) return false;
    record = {transfer.n, transfer.last_of_transaction, transfer.record};
    index_++;
    return true;
}

}  // namespace onerepl::receiver
