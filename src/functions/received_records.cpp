// onerepl.received_records: what the frames in a row of onerepl.received say, for the central's part of the
// log.
#include "core/frame.h"
#include "functions/record_output.h"
#include "pg/error_boundary.h"
#include "pg/spi.h"
#include "receiver/packed_frames.h"

extern "C" {
#include "catalog/pg_type.h"
#include "utils/array.h"

PG_FUNCTION_INFO_V1(onerepl_received_records);
}

namespace onerepl {

namespace {

Parties parties_of(std::int32_t link) {
    Parties parties;
    pg::query("SELECT peer, (SELECT id FROM onerepl.database) FROM onerepl.link WHERE id = $1", {link},
              [&](const pg::Row& row) {
                  parties = {row.uuid(0), row.uuid(1)};
              });
    return parties;
}

std::optional<Bytes> load_description(std::int32_t link, std::uint64_t id) {
    std::optional<Bytes> encoded;
    pg::query("SELECT description FROM onerepl.remote_description WHERE link = $1 AND id = $2", {link, id},
              [&](const pg::Row& row) { encoded = row.bytea(0); });
    return encoded;
}

/// Puts the parts of records together.
class Assembler {
  public:
    /// The whole record, if this was its only or last part.
    std::optional<ByteView> add(const ObjectTransfer& transfer) {
        if (transfer.parts == 1) return transfer.record;
        if (transfer.part == 0) bytes_.clear(), n_ = transfer.n, next_ = 0;
        if (transfer.n != n_ || transfer.part != next_) return std::nullopt;
        bytes_.insert(bytes_.end(), transfer.record.begin(), transfer.record.end());
        if (++next_ < transfer.parts) return std::nullopt;
        return ByteView(bytes_);
    }

  private:
    Number n_ = 0;
    std::uint32_t next_ = 0;
    Bytes bytes_;
};

void put_records(ByteView frames, const Parties& parties, Descriptions& descriptions, RecordOutput& output) {
    Assembler assembler;
    for (FrameReader reader(parties, frames); !reader.at_end();) {
        const FrameResult result = reader.next();
        const auto* const message = std::get_if<Message>(&result.value);
        const auto* const transfer = message ? std::get_if<ObjectTransfer>(message) : nullptr;
        if (!transfer) continue;
        const std::optional<ByteView> whole = assembler.add(*transfer);
        if (!whole) continue;
        const std::optional<Record> record = decode_record(*whole);
        const RecordText text =
            record ? text_of(*record, descriptions.find(record->description)) : RecordText{};
        output.put({transfer->n, transfer->last_of_transaction, std::nullopt}, text);
    }
}

/// The frames of all elements of a bytea[] one after the other; damaged ones are left out.
Bytes frames_of(ArrayType* packed) {
    Datum* elements = nullptr;
    bool* nulls = nullptr;
    int count = 0;
    pg::call(
        [&] { deconstruct_array(packed, BYTEAOID, -1, false, TYPALIGN_INT, &elements, &nulls, &count); });
    Bytes all;
    for (int i = 0; i < count; i++) {
        if (nulls[i]) continue;
        const auto* const element = reinterpret_cast<varlena*>(elements[i]);
        const ByteView bytes(reinterpret_cast<const std::uint8_t*>(VARDATA_ANY(element)),
                             VARSIZE_ANY_EXHDR(element));
        const std::optional<Bytes> frames = receiver::unpack_frames(bytes);
        if (frames) all.insert(all.end(), frames->begin(), frames->end());
    }
    return all;
}

void received_records(FunctionCallInfo fcinfo) {
    RecordOutput output(fcinfo);
    if (PG_ARGISNULL(0) || PG_ARGISNULL(1)) return;
    const Bytes frames = frames_of(pg::call([&] { return PG_GETARG_ARRAYTYPE_P(1); }));
    pg::SpiConnection spi;
    const std::int32_t link = PG_GETARG_INT32(0);
    Descriptions descriptions([&](std::uint64_t id) { return load_description(link, id); });
    put_records(frames, parties_of(link), descriptions, output);
    spi.finish();
}

}  // namespace

}  // namespace onerepl

PGDLLEXPORT Datum onerepl_received_records(PG_FUNCTION_ARGS) {
    onerepl::pg::entry([&] { onerepl::received_records(fcinfo); });
    return static_cast<Datum>(0);
}
