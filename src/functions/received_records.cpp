// onerepl.received_records: what the frames in a row of onerepl.received say, for the central's part of the
// log.
#include "pg/guard.h"
#include "pg/spi.h"
#include "functions/record_text.h"
#include "core/frame.h"
#include "receiver/packed_frames.h"

extern "C" {
#include "catalog/pg_type.h"
#include "funcapi.h"
#include "utils/array.h"

PG_FUNCTION_INFO_V1(onerepl_received_records);
}

#include <map>

namespace onerepl {

namespace {

/// The link's parties and descriptions, as far as they are needed.
class LinkData {
  public:
    explicit LinkData(std::int32_t link) : link_(link) {
        pg::query("SELECT peer, (SELECT id FROM onerepl.database) FROM onerepl.link WHERE id = $1", {link},
                  [&](const pg::Row& row) {
                      parties_ = {row.uuid(0), row.uuid(1)};
                  });
    }
    const Parties& parties() const { return parties_; }
    /// Null if it is not known.
    const TableDescription* description(std::uint64_t id) {
        if (auto known = descriptions_.find(id); known != descriptions_.end())
            return known->second ? &*known->second : nullptr;
        std::optional<TableDescription> found;
        pg::query("SELECT description FROM onerepl.remote_description WHERE link = $1 AND id = $2",
                  {link_, id}, [&](const pg::Row& row) { found = decode_description(row.bytea(0)); });
        const auto& kept = descriptions_.emplace(id, std::move(found)).first->second;
        return kept ? &*kept : nullptr;
    }

  private:
    std::int32_t link_;
    Parties parties_;
    std::map<std::uint64_t, std::optional<TableDescription>> descriptions_;
};

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

class Output {
  public:
    explicit Output(FunctionCallInfo fcinfo) : result_(reinterpret_cast<ReturnSetInfo*>(fcinfo->resultinfo)) {
        pg::call([&] { InitMaterializedSRF(fcinfo, 0); });
    }
    void put(Number n, const RecordText& text, bool last_of_transaction) {
        pg::call([&] {
            Datum values[5];
            bool nulls[5];
            values[0] = Int64GetDatum(static_cast<int64>(n));
            nulls[0] = false;
            put_text(text.relation, values[1], nulls[1]);
            put_text(text.object_id, values[2], nulls[2]);
            put_text(text.operation, values[3], nulls[3]);
            values[4] = BoolGetDatum(last_of_transaction);
            nulls[4] = false;
            tuplestore_putvalues(result_->setResult, result_->setDesc, values, nulls);
        });
    }

  private:
    static void put_text(const std::optional<std::string>& text, Datum& value, bool& null) {
        null = !text;
        value = null
                    ? Datum{0}
                    : PointerGetDatum(cstring_to_text_with_len(text->data(), static_cast<int>(text->size())));
    }
    ReturnSetInfo* result_;
};

void put_records(ByteView frames, LinkData& link, Output& output) {
    Assembler assembler;
    for (FrameReader reader(link.parties(), frames); !reader.at_end();) {
        const FrameResult result = reader.next();
        const auto* const message = std::get_if<Message>(&result.value);
        const auto* const transfer = message ? std::get_if<ObjectTransfer>(message) : nullptr;
        if (!transfer) continue;
        const std::optional<ByteView> whole = assembler.add(*transfer);
        if (!whole) continue;
        const std::optional<Record> record = decode_record(*whole);
        const RecordText text =
            record ? text_of(*record, link.description(record->description)) : RecordText{};
        output.put(transfer->n, text, transfer->last_of_transaction);
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
    Output output(fcinfo);
    if (PG_ARGISNULL(0) || PG_ARGISNULL(1)) return;
    const Bytes frames = frames_of(pg::call([&] { return PG_GETARG_ARRAYTYPE_P(1); }));
    pg::SpiConnection spi;
    LinkData link(PG_GETARG_INT32(0));
    put_records(frames, link, output);
    spi.finish();
}

}  // namespace

}  // namespace onerepl

PGDLLEXPORT Datum onerepl_received_records(PG_FUNCTION_ARGS) {
    onerepl::pg::entry([&] { onerepl::received_records(fcinfo); });
    return static_cast<Datum>(0);
}
