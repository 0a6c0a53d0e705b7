// Packs: writing (as captured, in plain memory) and reading back. The format stands in pack.h.
#include "log/pack.h"

#include "log/zigzag.h"

#include <cstring>

namespace onerepl::log {

namespace {

enum HeaderBit : std::uint8_t {
    operation_bits = 0x03,
    has_description = 0x04,
    has_command = 0x08,
    new_has_nulls = 0x10,
    has_extension = 0x20,
    ids_are_successors = 0x40,
    length_repeated = 0x80,
};

enum ExtensionBit : std::uint8_t {
    old_image_bits = 0x03,
    old_has_nulls = 0x04,
    key_did_change = 0x08,
    has_unchanged = 0x10,
    was_rewritten = 0x20,
    was_too_large = 0x40,
};

// Values of the header's operation bits beside insert (0) and update (1).
constexpr std::uint8_t write_delete = 2;
constexpr std::uint8_t write_other = 3;
enum OtherRecord : std::uint8_t {
    other_reset = 0,
    other_describe = 1,
    other_truncate = 2,
    other_statement = 3,
    other_bits = 0x0f
};
constexpr std::uint8_t truncate_cascade_bit = 0x10;
constexpr std::uint8_t truncate_restart_bit = 0x20;
constexpr std::uint8_t statement_captured_bit = 0x10;
constexpr std::uint8_t statement_dropped_bit = 0x20;

/// A block has fewer line pointers than this (32 kB pages included), so that the next row of a page is the
/// next number.
constexpr std::uint64_t ids_per_block = 2048;

std::uint64_t number_of(const ItemPointerData& id) {
    return static_cast<std::uint64_t>(ItemPointerGetBlockNumberNoCheck(&id)) * ids_per_block +
           ItemPointerGetOffsetNumberNoCheck(&id);
}

char* put_varint(char* to, std::uint64_t value) {
    while (value >= 0x80) {
        *to++ = static_cast<char>(value | 0x80);
        value >>= 7;
    }
    *to++ = static_cast<char>(value);
    return to;
}

char* put_difference(char* to, std::uint64_t value, std::uint64_t base) {
    return put_varint(to, zigzag(static_cast<std::int64_t>(value - base)));
}

char* put_row(char* to, const StoredRow& row) {
    if (row.bitmap_size > 0) std::memcpy(to, row.bitmap, row.bitmap_size);
    to += row.bitmap_size;
    if (row.data_size > 0) std::memcpy(to, row.data, row.data_size);
    return to + row.data_size;
}

/// Up to here a pack's memory is doubled when it is full, and kept when it is emptied.
constexpr std::size_t doubling_limit = 64 * 1024;

/// Room for `size` more bytes. Doubles while small; a huge row gets what it needs and no more.
void make_room(Pack& pack, std::size_t size) {
    const std::size_t needed = pack.used + size;
    if (needed <= pack.capacity) return;
    if (needed > MaxAllocSize - 8192)
        ereport(ERROR, (errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED), errmsg("row is too large to be captured"),
                        errdetail("A record of the onerepl log can hold at most 1 GB.")));
    const std::size_t doubled = pack.capacity < doubling_limit ? pack.capacity * 2 : 0;
    const std::size_t capacity = doubled > needed ? doubled : needed;
    pack.data = static_cast<char*>(repalloc(pack.data, capacity));
    pack.capacity = capacity;
}

std::uint8_t extension_of(const RowChange& change) {
    std::uint8_t extension = static_cast<std::uint8_t>(change.old_kind);
    if (change.old_row.bitmap_size > 0) extension |= old_has_nulls;
    if (change.key_changed) extension |= key_did_change;
    if (change.unchanged_size > 0) extension |= has_unchanged;
    if (change.rewritten) extension |= was_rewritten;
    if (change.too_large) extension |= was_too_large;
    return extension;
}

/// True if every id of the change is the successor of the last one of its kind. Moves the bases.
bool advance_ids(Pack& pack, const RowChange& change, std::uint64_t& old_base, std::uint64_t& new_base) {
    old_base = pack.old_id;
    new_base = pack.new_id;
    if (change.old_id) pack.old_id = number_of(*change.old_id);
    if (change.new_id) pack.new_id = number_of(*change.new_id);
    return (!change.old_id || pack.old_id == old_base + 1) && (!change.new_id || pack.new_id == new_base + 1);
}

/// Header bit 2 and 3 with what they announce, for records that are not row changes.
char* put_other(Pack& pack, char* to, std::uint8_t what, std::uint64_t description, std::uint32_t command) {
    *to++ = static_cast<char>(has_extension | write_other | has_description | has_command);
    *to++ = static_cast<char>(what);
    to = put_varint(to, description);
    to = put_difference(to, command, pack.command);
    pack.description = description;
    pack.command = command;
    return to;
}

}  // namespace

// ----------------------------------------------------------------------------------------------------------
// writing

void pack_begin(Pack& pack, MemoryContext context, std::size_t size) {
    pack = Pack{};
    pack.capacity = VARHDRSZ + size;
    pack.data = static_cast<char*>(MemoryContextAlloc(context, pack.capacity));
    pack.used = VARHDRSZ;
}

void pack_append(Pack& pack, const RowChange& change) {
    make_room(pack, packed_size_limit(change));
    char* const start = pack.data + pack.used;
    char* to = start + 1;
    std::uint8_t header = change.operation;

    if (const std::uint8_t extension = extension_of(change)) {
        header |= has_extension;
        *to++ = static_cast<char>(extension);
    }
    if (change.description != pack.description) {
        header |= has_description;
        to = put_varint(to, change.description);
        pack.description = change.description;
    }
    if (change.command != pack.command) {
        header |= has_command;
        to = put_difference(to, change.command, pack.command);
        pack.command = change.command;
    }
    std::uint64_t old_base, new_base;
    if (advance_ids(pack, change, old_base, new_base)) {
        header |= ids_are_successors;
    } else {
        if (change.old_id) to = put_difference(to, pack.old_id, old_base);
        if (change.new_id) to = put_difference(to, pack.new_id, new_base);
    }
    if (change.old_kind != OldImage::none) {
        to = put_varint(to, change.old_row.size());
        to = put_row(to, change.old_row);
    }
    if (change.unchanged_size > 0) {
        to = put_varint(to, change.unchanged_size);
        std::memcpy(to, change.unchanged, change.unchanged_size);
        to += change.unchanged_size;
    }
    if (change.operation != write_delete) {
        const std::size_t length = change.new_row.size();
        if (change.new_row.bitmap_size > 0) header |= new_has_nulls;
        if (length == pack.new_length) {
            header |= length_repeated;
        } else {
            to = put_varint(to, length);
            pack.new_length = length;
        }
        to = put_row(to, change.new_row);
    }
    *start = static_cast<char>(header);
    pack.used = static_cast<std::size_t>(to - pack.data);
}

void pack_append_describe(Pack& pack, std::uint64_t description, std::uint32_t command) {
    make_room(pack, 32);
    char* to = put_other(pack, pack.data + pack.used, other_describe, description, command);
    pack.used = static_cast<std::size_t>(to - pack.data);
}

void pack_append_truncate(Pack& pack, std::uint64_t description, std::uint32_t command, bool cascade,
                          bool restart) {
    std::uint8_t what = other_truncate;
    if (cascade) what |= truncate_cascade_bit;
    if (restart) what |= truncate_restart_bit;
    make_room(pack, 32);
    char* to = put_other(pack, pack.data + pack.used, what, description, command);
    pack.used = static_cast<std::size_t>(to - pack.data);
}

void pack_append_statement(Pack& pack, std::uint64_t description, std::uint32_t command, bool captured,
                           bool dropped, const char* statement, std::size_t size) {
    std::uint8_t what = other_statement;
    if (captured) what |= statement_captured_bit;
    if (dropped) what |= statement_dropped_bit;
    make_room(pack, size + 42);
    char* to = put_other(pack, pack.data + pack.used, what, description, command);
    to = put_varint(to, size);
    std::memcpy(to, statement, size);
    pack.used = static_cast<std::size_t>(to + size - pack.data);
}

void pack_clear(Pack& pack) {
    char* const data = pack.data;
    const std::size_t capacity = pack.capacity;
    pack = Pack{};
    if (!data) return;
    if (capacity > doubling_limit) {
        pfree(data);
        return;
    }
    pack.data = data;
    pack.capacity = capacity;
    pack.used = VARHDRSZ;
}

void pack_free(Pack& pack) {
    if (pack.data) pfree(pack.data);
    pack = Pack{};
}

void pack_reserve(Pack& pack, std::size_t size) {
    make_room(pack, size + 2);
}

void pack_join(Pack& pack, const Pack& tail) {
    const std::size_t size = tail.used - VARHDRSZ;
    pack_reserve(pack, size);
    char* to = pack.data + pack.used;
    *to++ = static_cast<char>(has_extension | write_other);
    *to++ = static_cast<char>(other_reset);
    std::memcpy(to, tail.data + VARHDRSZ, size);
    pack.used += 2 + size;
    pack.description = tail.description;
    pack.command = tail.command;
    pack.old_id = tail.old_id;
    pack.new_id = tail.new_id;
    pack.new_length = tail.new_length;
}

// ----------------------------------------------------------------------------------------------------------
// reading

ByteView PackReader::take(std::uint64_t size) {
    if (size > left_.size()) {
        damaged_ = true;
        left_ = {};
        return {};
    }
    const ByteView taken = left_.first(size);
    left_ = left_.subspan(size);
    return taken;
}

std::uint64_t PackReader::varint() {
    std::uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
        const ByteView byte = take(1);
        if (byte.empty()) return 0;
        value |= static_cast<std::uint64_t>(byte[0] & 0x7f) << shift;
        if (!(byte[0] & 0x80)) return value;
    }
    damaged_ = true;
    return 0;
}

std::int64_t PackReader::signed_varint() {
    return unzigzag(varint());
}

TupleId PackReader::next_id(std::uint64_t& base, bool successor) {
    base += successor ? 1 : static_cast<std::uint64_t>(signed_varint());
    return {static_cast<std::uint32_t>(base / ids_per_block),
            static_cast<std::uint16_t>(base % ids_per_block)};
}

void PackReader::reset_bases() {
    description_ = 0;
    command_ = 0;
    old_id_ = 0;
    new_id_ = 0;
    new_length_ = 0;
}

void PackReader::ids(std::uint8_t header, PackedRecord& record) {
    const bool successor = header & ids_are_successors;
    if (record.operation != Operation::insert) record.old_id = next_id(old_id_, successor);
    if (record.operation != Operation::remove) record.new_id = next_id(new_id_, successor);
}

void PackReader::row_change(PackedRecord& record, std::uint8_t header, std::uint8_t extension) {
    static constexpr Operation operations[] = {Operation::insert, Operation::update, Operation::remove};
    record.operation = operations[header & operation_bits];
    record.old_kind = static_cast<OldImage>(extension & old_image_bits);
    record.key_changed = extension & key_did_change;
    record.rewritten = extension & was_rewritten;
    record.too_large = extension & was_too_large;
    ids(header, record);
    if (record.old_kind != OldImage::none) {
        record.old_row.has_nulls = extension & old_has_nulls;
        record.old_row.bytes = counted();
    }
    if (extension & has_unchanged) record.unchanged = counted();
    if (record.operation == Operation::remove) return;
    if (!(header & length_repeated)) new_length_ = varint();
    record.new_row.has_nulls = header & new_has_nulls;
    record.new_row.bytes = take(new_length_);
}

void PackReader::other(PackedRecord& record, std::uint8_t what) {
    switch (what & other_bits) {
        case other_describe:
            record.operation = Operation::describe;
            return;
        case other_truncate:
            record.operation = Operation::truncate;
            record.truncate_cascade = what & truncate_cascade_bit;
            record.truncate_restart_identity = what & truncate_restart_bit;
            return;
        case other_statement:
            record.operation = Operation::statement;
            record.statement_captured = what & statement_captured_bit;
            record.statement_dropped = what & statement_dropped_bit;
            record.statement = counted();
            return;
        default:
            damaged_ = true;
    }
}

bool PackReader::next(PackedRecord& record) {
    while (!left_.empty()) {
        record = PackedRecord{};
        const std::uint8_t header = take(1)[0];
        std::uint8_t extension = 0;
        if (header & has_extension) {
            const ByteView byte = take(1);
            if (byte.empty()) return false;
            extension = byte[0];
        }
        const bool is_other = (header & operation_bits) == write_other;
        if (is_other && extension == other_reset) {
            reset_bases();
            continue;
        }
        if (header & has_description) description_ = varint();
        if (header & has_command) command_ += static_cast<std::uint32_t>(signed_varint());
        record.description = description_;
        record.command = command_;
        if (is_other)
            other(record, extension);
        else
            row_change(record, header, extension);
        if (damaged_) left_ = {};
        return !damaged_;
    }
    return false;
}

RowDecoder::RowDecoder(const Layout& layout)
    : descriptor_(layout.tuple_descriptor()), values_(layout.columns.size()), nulls_(layout.columns.size()) {}

bool RowDecoder::decode(const Image& image) {
    const std::size_t natts = values_.size();
    const std::size_t bitmap_size = image.has_nulls ? BITMAPLEN(natts) : 0;
    if (image.bytes.size() < bitmap_size) return false;
    const std::size_t header_size = MAXALIGN(SizeofHeapTupleHeader + bitmap_size);
    const std::size_t data_size = image.bytes.size() - bitmap_size;
    copy_.assign((header_size + 7) / 8, 0);
    copy_.resize((header_size + data_size + 7) / 8);

    auto header = reinterpret_cast<HeapTupleHeader>(copy_.data());
    header->t_hoff = static_cast<uint8>(header_size);
    HeapTupleHeaderSetNatts(header, natts);
    if (image.has_nulls) header->t_infomask |= HEAP_HASNULL;
    header->t_infomask |= HEAP_HASVARWIDTH;
    std::memcpy(header->t_bits, image.bytes.data(), bitmap_size);
    std::memcpy(reinterpret_cast<char*>(header) + header_size, image.bytes.data() + bitmap_size, data_size);

    HeapTupleData tuple;
    std::memset(&tuple, 0, sizeof tuple);
    tuple.t_len = static_cast<uint32>(header_size + data_size);
    tuple.t_data = header;
    heap_deform_tuple(&tuple, descriptor_, values_.data(), reinterpret_cast<bool*>(nulls_.data()));
    return true;
}

}  // namespace onerepl::log
