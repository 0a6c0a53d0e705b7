// Encoding of records for the wire. One call a record, and no allocation for the common types: this decides
// how fast a backlog is read.
#include "log/encoder.h"

extern "C" {
#include "catalog/pg_type.h"
#include "utils/lsyscache.h"
#include "utils/uuid.h"
}

#include "core/bytes.h"
#include "log/link_filters.h"
#include "pg/spi.h"

namespace onerepl::log {

namespace {

constexpr std::size_t layouts_kept = 1000;

// Flags of a record on the wire, as core/record.cpp writes them (docs/protocol/wire.md, "Records").
constexpr std::uint8_t flag_old_key = 1;
constexpr std::uint8_t flag_cascade = 2;
constexpr std::uint8_t flag_restart_identity = 4;
constexpr std::uint8_t flag_too_large = 8;
constexpr std::uint8_t flag_captured = 1;
constexpr std::uint8_t flag_statement_dropped = 2;

[[noreturn]] void damaged(const Layout& layout) {
    throw pg::Error("XX001",
                    "a logged row of table \"" + layout.schema + "." + layout.table + "\" is damaged",
                    "The log of onerepl cannot be read here. Start the links anew with a refresh.");
}

/// A varlena's content, uncompressed.
ByteView content_of(Datum value) {
    auto* stored = reinterpret_cast<varlena*>(DatumGetPointer(value));
    if (VARATT_IS_COMPRESSED(stored) || VARATT_IS_EXTERNAL(stored))
        stored = pg::call([&] { return pg_detoast_datum_packed(stored); });
    return {reinterpret_cast<const std::uint8_t*>(VARDATA_ANY(stored)), VARSIZE_ANY_EXHDR(stored)};
}

template <class Integer>
void put_integer(Bytes& out, Integer value) {
    ByteWriter writer(out);
    writer.u32(sizeof(Integer));
    writer.bytes(big_endian(value));
}

}  // namespace

RecordEncoder::Form RecordEncoder::form_of(const LayoutColumn& column) {
    if (column.rendered) return Form::string;
    switch (column.type) {
        case BOOLOID:
        case CHAROID:
            return Form::fixed1;
        case INT2OID:
            return Form::fixed2;
        case INT4OID:
        case OIDOID:
        case FLOAT4OID:
        case DATEOID:
        case XIDOID:
        case CIDOID:
            return Form::fixed4;
        case INT8OID:
        case FLOAT8OID:
        case TIMESTAMPOID:
        case TIMESTAMPTZOID:
        case TIMEOID:
        case CASHOID:
        case XID8OID:
        case PG_LSNOID:
            return Form::fixed8;
        case UUIDOID:
            return Form::plain16;
        case TEXTOID:
        case VARCHAROID:
        case BPCHAROID:
        case JSONOID:
        case XMLOID:  // its send function changes the declaration
            return Form::string;
        case BYTEAOID:
            return Form::bytes;
        default:
            return Form::send;
    }
}

RecordEncoder::Column RecordEncoder::plan(std::size_t index, MemoryContext context) const {
    const LayoutColumn& from = layout_.columns[index];
    Column column;
    column.index = index;
    column.form = form_of(from);
    // Strings travel as text: that is what their output functions give, and B converts the encoding if need
    // be.
    column.text = column.form == Form::string;
    if (column.form == Form::send)
        column.send = pg::call([&] {
            Oid function;
            bool is_varlena;
            getTypeBinaryOutputInfo(from.type, &function, &is_varlena);
            auto* info = static_cast<FmgrInfo*>(MemoryContextAllocZero(context, sizeof(FmgrInfo)));
            fmgr_info_cxt(function, info, context);
            return info;
        });
    return column;
}

RecordEncoder::RecordEncoder(Layout layout, MemoryContext context)
    : layout_(std::move(layout)), decoder_([&] {
          const MemoryContext before = MemoryContextSwitchTo(context);
          RowDecoder decoder(layout_);
          MemoryContextSwitchTo(before);
          return decoder;
      }()) {
    for (std::size_t index : layout_.wire_columns()) {
        row_.push_back(plan(index, context));
        if (layout_.columns[index].generated) row_.back().form = Form::omitted;
    }
    // A key's values are needed to find the row, even if the column is generated.
    for (std::size_t index : layout_.key()) old_.push_back(plan(index, context));
    has_key_ = !old_.empty();
    in_key_.resize(layout_.columns.size(), false);
    for (std::size_t index : layout_.key()) in_key_[index] = true;
    if (!has_key_) old_ = row_;
    encode_description(layout_.describe(), description_);
}

void RecordEncoder::put_value(const Column& column, Datum value, Bytes& out) {
    ByteWriter writer(out);
    writer.u8(static_cast<std::uint8_t>(column.text ? ValueKind::text : ValueKind::binary));
    switch (column.form) {
        case Form::fixed1:
            return put_integer(out, DatumGetUInt8(value));
        case Form::fixed2:
            return put_integer(out, DatumGetUInt16(value));
        case Form::fixed4:
            return put_integer(out, DatumGetUInt32(value));
        case Form::fixed8:
            return put_integer(out, DatumGetUInt64(value));
        case Form::plain16:
            return writer.counted({DatumGetUUIDP(value)->data, UUID_LEN});
        case Form::string:
        case Form::bytes:
            return writer.counted(content_of(value));
        case Form::send:
        case Form::omitted:
            break;
    }
    bytea* const sent = pg::call([&] { return SendFunctionCall(column.send, value); });
    writer.counted({reinterpret_cast<const std::uint8_t*>(VARDATA(sent)), VARSIZE(sent) - VARHDRSZ});
}

bool RecordEncoder::is_left_out(const PackedRecord* record, std::size_t column) const {
    return record != nullptr && (record->is_unchanged(column) || (record->too_large && !in_key_[column]));
}

void RecordEncoder::put_columns(const std::vector<Column>& columns, const PackedRecord* record, Bytes& out) {
    ByteWriter writer(out);
    writer.u16(static_cast<std::uint16_t>(columns.size()));
    for (const Column& column : columns) {
        if (column.form == Form::omitted || is_left_out(record, column.index))
            writer.u8(static_cast<std::uint8_t>(ValueKind::unchanged));
        else if (decoder_.is_null(column.index))
            writer.u8(static_cast<std::uint8_t>(ValueKind::null));
        else
            put_value(column, decoder_.value(column.index), out);
    }
}

void RecordEncoder::take_apart(const Image& image) {
    if (!decoder_.decode(image)) damaged(layout_);
}

void RecordEncoder::put_row(const PackedRecord& record, Bytes& out) {
    take_apart(record.new_row);
    put_columns(row_, record.unchanged.empty() && !record.too_large ? nullptr : &record, out);
}

void RecordEncoder::put_old(const PackedRecord& record, Bytes& out) {
    if (record.old_kind == OldImage::none) damaged(layout_);
    take_apart(record.old_row);
    put_columns(old_, record.too_large ? &record : nullptr, out);
}

void RecordEncoder::encode(const PackedRecord& record, Bytes& out) {
    const bool update_has_old = record.operation == Operation::update &&
                                (has_key_ ? record.key_changed : record.old_kind != OldImage::none);
    std::uint8_t flags = 0;
    if (update_has_old) flags |= flag_old_key;
    if (record.too_large) flags |= flag_too_large;
    if (record.truncate_cascade) flags |= flag_cascade;
    if (record.truncate_restart_identity) flags |= flag_restart_identity;

    ByteWriter writer(out);
    writer.u8(static_cast<std::uint8_t>(record.operation));
    writer.u8(flags);
    writer.u64(record.description);
    switch (record.operation) {
        case Operation::insert:
            return put_row(record, out);
        case Operation::update:
            if (update_has_old) put_old(record, out);
            return put_row(record, out);
        case Operation::remove:
            return put_old(record, out);
        case Operation::describe:
            return writer.bytes(description_);
        case Operation::truncate:
        case Operation::statement:
        case Operation::sequences:
        case Operation::chunk:
        case Operation::skip:
            return;
    }
}

void RecordEncoder::encode_statement(const PackedRecord& record, Bytes& out) {
    ByteWriter writer(out);
    writer.u8(static_cast<std::uint8_t>(Operation::statement));
    writer.u8((record.statement_captured ? flag_captured : 0) |
              (record.statement_dropped ? flag_statement_dropped : 0));
    writer.u64(record.description);
    writer.bytes(record.statement);
}

void RecordEncoder::encode_without_data(const PackedRecord& record, Bytes& out) {
    PackedRecord without = record;
    without.too_large = true;
    encode(without, out);
}

void RecordEncoder::encode_row(const Datum* values, const bool* nulls, Bytes& out) {
    ByteWriter writer(out);
    writer.u16(static_cast<std::uint16_t>(row_.size()));
    for (const Column& column : row_) {
        if (column.form == Form::omitted)
            writer.u8(static_cast<std::uint8_t>(ValueKind::unchanged));
        else if (nulls[column.index])
            writer.u8(static_cast<std::uint8_t>(ValueKind::null));
        else
            put_value(column, values[column.index], out);
    }
}

Layouts::~Layouts() {
    encoders_.clear();
    if (context_ != nullptr) MemoryContextDelete(context_);
}

RecordEncoder* Layouts::find(std::uint64_t description) {
    if (newest_ != nullptr && newest_->layout().id == description) return newest_;
    if (auto known = encoders_.find(description); known != encoders_.end())
        return newest_ = known->second.get();
    std::optional<Layout> layout = load_layout(description);
    if (!layout) return nullptr;
    if (context_ == nullptr)
        context_ = pg::call([] {
            return AllocSetContextCreate(TopMemoryContext, "onerepl layouts", ALLOCSET_DEFAULT_SIZES);
        });
    auto encoder = std::make_unique<RecordEncoder>(std::move(*layout), context_);
    return newest_ = (encoders_[description] = std::move(encoder)).get();
}

RecordEncoder& Layouts::of(std::uint64_t description) {
    if (RecordEncoder* found = find(description)) return *found;
    throw pg::Error("XX001", "table description " + std::to_string(description) + " is missing in the log");
}

void Layouts::forget() {
    encoders_.clear();
    newest_ = nullptr;
    if (context_ != nullptr) MemoryContextReset(context_);
}

void Layouts::trim() {
    if (encoders_.size() > layouts_kept) forget();
}

}  // namespace onerepl::log
