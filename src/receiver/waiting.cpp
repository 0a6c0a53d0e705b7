// Queue rows: writing, loading as the core's state, and reading back as records.
#include "pg/pg.h"

#include "receiver/waiting.h"

#include "core/bytes.h"
#include "pg/spi.h"
#include "receiver/packed_frames.h"

namespace onerepl::receiver {

namespace {

Bytes encode_batches(const std::vector<Batch>& batches) {
    Bytes out;
    ByteWriter writer(out);
    for (const Batch& batch : batches) {
        writer.u64(batch.numbers.first);
        writer.u64(batch.numbers.last);
        writer.bytes(batch.before);
        writer.bytes(batch.random);
    }
    return out;
}

std::vector<Batch> decode_batches(const Bytes& in) {
    std::vector<Batch> batches;
    ByteReader reader(in);
    while (reader.left() > 0) {
        Batch batch;
        batch.numbers.first = reader.u64();
        batch.numbers.last = reader.u64();
        reader.array(batch.before);
        reader.array(batch.random);
        if (!reader.ok()) break;
        batches.push_back(batch);
    }
    return batches;
}

HeldParts& parts_of(CentralState& state, Number n) {
    if (state.partial.empty() || state.partial.back().n != n) {
        state.partial.emplace_back();
        state.partial.back().n = n;
    }
    return state.partial.back();
}

[[noreturn]] void damaged(Number n) {
    throw pg::Error("XX001", "the queue row of record " + std::to_string(n) + " is damaged",
                    "Delete it from onerepl.waiting: the remote sends it again.");
}

}  // namespace

void load_waiting(int link, CentralState& state) {
    pg::query(
        "SELECT first, last, part, parts, last_end, size, batches FROM onerepl.waiting WHERE link = $1 ORDER "
        "BY first, part",
        {link}, [&](const pg::Row& row) {
            const Number first = row.number(0);
            if (row.int4(3) == 1) {
                state.waiting.push_back({{first, row.number(1)},
                                         row.number(4),
                                         static_cast<std::uint64_t>(row.int8(5)),
                                         decode_batches(row.bytea(6))});
                return;
            }
            HeldParts& parts = parts_of(state, first);
            parts.last_of_transaction = row.number(4) == first;
            parts.parts = static_cast<std::uint32_t>(row.int4(3));
            parts.held.insert(static_cast<std::uint32_t>(row.int4(2)));
            parts.size += static_cast<std::uint64_t>(row.int8(5));
            parts.batches = decode_batches(row.bytea(6));
        });
}

void insert_waiting(int link, const Spool& spool, ByteView frames, int compression) {
    pg::execute(
        "INSERT INTO onerepl.waiting (link, first, part, last, parts, last_end, batches, frames, size)"
        " VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)"
        // Receivers that spool side by side may bring runs that begin alike: the longer one stays.
        " ON CONFLICT (link, first, part) DO UPDATE SET last = excluded.last, parts = excluded.parts,"
        "    last_end = excluded.last_end, batches = excluded.batches, frames = excluded.frames, size = "
        "excluded.size"
        "  WHERE excluded.last > waiting.last",
        {link, spool.numbers.first, static_cast<std::int32_t>(spool.part), spool.numbers.last,
         static_cast<std::int32_t>(spool.parts), spool.last_end, encode_batches(spool.batches),
         pack_frames(frames, compression), spool.size});
}

void delete_waiting(int link, Range range) {
    pg::execute("DELETE FROM onerepl.waiting WHERE link = $1 AND first >= $2 AND last <= $3",
                {link, range.first, range.last});
}

void finish_waiting(int link, Number written, bool keep_log) {
    if (keep_log)
        pg::execute(
            "INSERT INTO onerepl.received (link, first, part, last, frames)"
            " SELECT link, first, part, last, frames FROM onerepl.waiting WHERE link = $1 AND last <= $2"
            " ON CONFLICT DO NOTHING",
            {link, written});
    pg::execute("DELETE FROM onerepl.waiting WHERE link = $1 AND last <= $2", {link, written});
}

bool WaitingSource::next(apply::IncomingRecord& record) {
    while (next_ <= numbers_.last) {
        if (assembled_ready_) {
            assembled_ready_ = false;
            record = {next_++, assembled_last_, assembled_};
            return true;
        }
        if (!reader_ || reader_->at_end()) {
            if (!load_row()) damaged(next_);
            continue;
        }
        const FrameResult frame = reader_->next();
        const auto* message = std::get_if<Message>(&frame.value);
        const auto* transfer = message ? std::get_if<ObjectTransfer>(message) : nullptr;
        if (!transfer) damaged(next_);
        if (transfer->n < next_) continue;
        if (transfer->n > next_) damaged(next_);
        record = {next_++, transfer->last_of_transaction, transfer->record};
        return true;
    }
    return false;
}

void WaitingSource::rewind(Number n) {
    next_ = n;
    reader_.reset();
    assembled_ready_ = false;
}

/// Loads the row that holds next_.
bool WaitingSource::load_row() {
    bool found = false;
    std::int32_t parts = 1;
    pg::query(
        "SELECT parts, CASE WHEN parts = 1 THEN frames END FROM onerepl.waiting"
        " WHERE link = $1 AND first <= $2 AND last >= $2 ORDER BY first DESC, part DESC LIMIT 1",
        {link_, next_}, [&](const pg::Row& row) {
            parts = row.int4(0);
            if (parts > 1) {
                found = true;
                return;
            }
            auto frames = unpack_frames(row.bytea(1));
            if (!frames) return;
            frames_ = std::move(*frames);
            reader_.emplace(Parties{}, frames_);
            found = true;
        });
    if (!found) return false;
    return parts == 1 || assemble(static_cast<std::uint32_t>(parts));
}

bool WaitingSource::assemble(std::uint32_t parts) {
    assembled_.clear();
    assembled_.reserve(static_cast<std::size_t>(
        pg::query_int8("SELECT sum(size)::int8 FROM onerepl.waiting WHERE link = $1 AND first = $2",
                       {link_, next_})
            .value_or(0)));
    for (std::uint32_t part = 0; part < parts; part++) {
        bool found = false;
        pg::query("SELECT frames FROM onerepl.waiting WHERE link = $1 AND first = $2 AND part = $3",
                  {link_, next_, static_cast<std::int32_t>(part)}, [&](const pg::Row& row) {
                      const auto frames = unpack_frames(row.bytea(0));
                      if (!frames) return;
                      FrameReader reader(Parties{}, *frames);
                      const FrameResult frame = reader.next();
                      const auto* message = std::get_if<Message>(&frame.value);
                      const auto* transfer = message ? std::get_if<ObjectTransfer>(message) : nullptr;
                      if (!transfer) return;
                      assembled_.insert(assembled_.end(), transfer->record.begin(), transfer->record.end());
                      assembled_last_ = transfer->last_of_transaction;
                      found = true;
                  });
        if (!found) return false;
    }
    assembled_ready_ = true;
    return true;
}

}  // namespace onerepl::receiver
