// Records: the data of object transfers. The layout is docs/protocol/wire.md, "Records".
#include "core/record.h"

#include "core/bytes.h"

#include <algorithm>
#include <limits>
#include <stdexcept>

namespace onerepl {
namespace {

constexpr std::uint8_t flag_old_key = 1;
constexpr std::uint8_t flag_cascade = 2;
constexpr std::uint8_t flag_restart_identity = 4;
constexpr std::uint8_t flag_too_large = 8;

// Of a statement.
constexpr std::uint8_t flag_captured = 1;
constexpr std::uint8_t flag_dropped = 2;

// Of sequences.
constexpr std::uint8_t flag_complete = 1;

// Of a chunk.
constexpr std::uint8_t flag_opens = 1;
constexpr std::uint8_t flag_first = 2;
constexpr std::uint8_t flag_last = 4;
constexpr std::uint8_t flag_cancelled = 8;
constexpr std::uint8_t flag_repair = 16;
constexpr std::uint8_t flag_verify = 32;
constexpr std::uint8_t flag_partial = 64;
constexpr std::uint8_t all_flags_of_chunk =
    flag_opens | flag_first | flag_last | flag_cancelled | flag_repair | flag_verify | flag_partial;

// ---------------------------------------------------------------- writing

std::uint16_t count16(std::size_t count) {
    if (count > std::numeric_limits<std::uint16_t>::max()) throw std::length_error("too many columns");
    return static_cast<std::uint16_t>(count);
}

bool has_bytes(ValueKind kind) {
    return kind == ValueKind::text || kind == ValueKind::binary;
}

void write_values(ByteWriter& writer, const std::vector<Value>& values) {
    writer.u16(count16(values.size()));
    for (const Value& value : values) {
        writer.u8(static_cast<std::uint8_t>(value.kind));
        if (has_bytes(value.kind)) writer.counted(value.bytes);
    }
}

std::uint8_t flags_of(const Chunk& chunk) {
    std::uint8_t flags = 0;
    if (chunk.opens) flags |= flag_opens;
    if (chunk.first) flags |= flag_first;
    if (chunk.last) flags |= flag_last;
    if (chunk.cancelled) flags |= flag_cancelled;
    if (chunk.repair) flags |= flag_repair;
    if (chunk.verify) flags |= flag_verify;
    if (chunk.partial) flags |= flag_partial;
    return flags;
}

void write_key(ByteWriter& writer, const std::vector<ByteView>& key) {
    writer.u16(count16(key.size()));
    for (const ByteView& value : key) writer.counted(value);
}

void write_statement(ByteWriter& writer, const Statement& statement) {
    writer.counted(statement.encoding);
    writer.counted(statement.search_path);
    writer.u16(count16(statement.settings.size()));
    for (const Setting& setting : statement.settings) {
        writer.counted(setting.name);
        writer.counted(setting.value);
    }
    writer.counted(statement.text);
}

void write_sequences(ByteWriter& writer, const Record& record) {
    writer.counted(record.sequence_encoding);
    writer.u32(static_cast<std::uint32_t>(record.sequences.size()));
    for (const SequenceState& sequence : record.sequences) {
        writer.counted(sequence.schema);
        writer.counted(sequence.name);
        writer.u64(static_cast<std::uint64_t>(sequence.last_value));
        writer.u8(sequence.is_called ? 1 : 0);
    }
}

void write_chunk(ByteWriter& writer, const Chunk& chunk) {
    writer.u64(chunk.refresh);
    writer.u16(count16(chunk.order.size()));
    for (const KeyOrder order : chunk.order) writer.u8(static_cast<std::uint8_t>(order));
    write_key(writer, chunk.from);
    write_key(writer, chunk.to);
    writer.u32(chunk.row_count);
    writer.bytes(chunk.rows);
}

std::uint8_t flags_of(const Statement& statement) {
    std::uint8_t flags = 0;
    if (statement.captured) flags |= flag_captured;
    if (statement.dropped) flags |= flag_dropped;
    return flags;
}

std::uint8_t flags_of(const Record& record) {
    if (record.operation == Operation::statement) return flags_of(record.statement);
    if (record.operation == Operation::chunk) return flags_of(record.chunk);
    if (record.operation == Operation::sequences) return record.sequences_complete ? flag_complete : 0;
    std::uint8_t flags = 0;
    if (record.operation == Operation::update && record.old_key) flags |= flag_old_key;
    if (record.operation == Operation::truncate && record.truncate_cascade) flags |= flag_cascade;
    if (record.operation == Operation::truncate && record.truncate_restart_identity)
        flags |= flag_restart_identity;
    const bool has_row = record.operation == Operation::insert || record.operation == Operation::update ||
                         record.operation == Operation::remove;
    if (has_row && record.too_large) flags |= flag_too_large;
    return flags;
}

// ---------------------------------------------------------------- reading

bool read_value(ByteReader& reader, Value& value) {
    value.kind = ValueKind{reader.u8()};
    switch (value.kind) {
        case ValueKind::null:
        case ValueKind::unchanged:
            value.bytes = {};
            return true;
        case ValueKind::text:
        case ValueKind::binary:
            value.bytes = reader.counted();
            return reader.ok();
    }
    return false;
}

bool read_values(ByteReader& reader, std::vector<Value>& values) {
    const std::size_t count = reader.u16();
    // Each value takes a byte at least: nothing is allocated for a count that only pretends.
    if (!reader.ok() || count > reader.left()) return false;
    values.resize(count);
    for (Value& value : values)
        if (!read_value(reader, value)) return false;
    return true;
}

bool read_order(ByteReader& reader, std::vector<KeyOrder>& order) {
    const std::size_t count = reader.u16();
    if (!reader.ok() || count > reader.left()) return false;
    order.clear();
    for (const std::uint8_t byte : reader.bytes(count)) {
        const KeyOrder one{byte};
        if (one != KeyOrder::natural && one != KeyOrder::collate_c && one != KeyOrder::text) return false;
        order.push_back(one);
    }
    return true;
}

/// A bound of the range: nothing, or a value for each column of the key.
bool read_bound(ByteReader& reader, std::size_t columns, std::vector<ByteView>& key) {
    const std::size_t count = reader.u16();
    if (count != 0 && count != columns) return false;
    key.clear();
    for (std::size_t i = 0; i < count && reader.ok(); i++) key.push_back(reader.counted());
    return reader.ok();
}

/// The rows are as many as is said, and nothing is after them.
bool are_rows(ByteView bytes, std::uint32_t count) {
    ChunkRows rows(bytes);
    std::vector<Value> row;
    for (std::uint32_t i = 0; i < count; i++)
        if (!rows.next(row)) return false;
    return rows.at_end();
}

bool read_chunk(ByteReader& reader, std::uint8_t flags, Chunk& chunk) {
    chunk.opens = (flags & flag_opens) != 0;
    chunk.first = (flags & flag_first) != 0;
    chunk.last = (flags & flag_last) != 0;
    chunk.cancelled = (flags & flag_cancelled) != 0;
    chunk.repair = (flags & flag_repair) != 0;
    chunk.verify = (flags & flag_verify) != 0;
    chunk.partial = (flags & flag_partial) != 0;
    if ((flags & ~all_flags_of_chunk) != 0) return false;
    chunk.refresh = reader.u64();
    if (chunk.refresh > largest_number || !read_order(reader, chunk.order)) return false;
    if (!read_bound(reader, chunk.order.size(), chunk.from)) return false;
    if (!read_bound(reader, chunk.order.size(), chunk.to)) return false;
    chunk.row_count = reader.u32();
    chunk.rows = reader.bytes(reader.left());
    const bool is_mark = chunk.opens || chunk.cancelled;
    if (is_mark && (chunk.opens == chunk.cancelled || chunk.first || chunk.last || chunk.row_count > 0))
        return false;
    if (chunk.verify && (is_mark || chunk.first || chunk.repair || chunk.partial || chunk.row_count == 0))
        return false;
    if (chunk.partial && !chunk.repair) return false;
    return reader.ok() && are_rows(chunk.rows, chunk.row_count);
}

/// They become C strings.
bool read_text(ByteReader& reader, ByteView& text) {
    text = reader.counted();
    return reader.ok() && std::find(text.begin(), text.end(), 0) == text.end();
}

bool read_settings(ByteReader& reader, std::vector<Setting>& settings) {
    constexpr std::size_t least_size = 8;
    const std::size_t count = reader.u16();
    if (!reader.ok() || count > reader.left() / least_size) return false;
    settings.resize(count);
    for (Setting& setting : settings)
        if (!read_text(reader, setting.name) || !read_text(reader, setting.value)) return false;
    return true;
}

bool read_statement(ByteReader& reader, std::uint8_t flags, Record& record) {
    Statement& statement = record.statement;
    statement.captured = (flags & flag_captured) != 0;
    statement.dropped = (flags & flag_dropped) != 0;
    if ((flags & ~(flag_captured | flag_dropped)) != 0) return false;
    if (statement.captured != (record.description != 0)) return false;
    if (!read_text(reader, statement.encoding) || !read_text(reader, statement.search_path)) return false;
    if (!read_settings(reader, statement.settings) || !read_text(reader, statement.text)) return false;
    return statement.dropped ? statement.captured && statement.text.empty() : !statement.text.empty();
}

bool read_sequence(ByteReader& reader, SequenceState& sequence) {
    const bool good = read_text(reader, sequence.schema) && read_text(reader, sequence.name);
    sequence.last_value = static_cast<std::int64_t>(reader.u64());
    const std::uint8_t called = reader.u8();
    sequence.is_called = called == 1;
    return good && reader.ok() && called <= 1;
}

bool read_sequences(ByteReader& reader, std::uint8_t flags, Record& record) {
    constexpr std::size_t least_size = 17;
    if ((flags & ~flag_complete) != 0 || record.description != 0) return false;
    record.sequences_complete = flags != 0;
    if (!read_text(reader, record.sequence_encoding)) return false;
    const std::size_t count = reader.u32();
    if (!reader.ok() || count > reader.left() / least_size) return false;
    record.sequences.resize(count);
    for (SequenceState& sequence : record.sequences)
        if (!read_sequence(reader, sequence)) return false;
    return true;
}

bool read_old_key(ByteReader& reader, Record& record) {
    if (!record.old_key) record.old_key.emplace();
    return read_values(reader, *record.old_key);
}

bool read_update(ByteReader& reader, std::uint8_t flags, Record& record) {
    if ((flags & ~flag_old_key) != 0) return false;
    if (flags == 0) {
        record.old_key.reset();
    } else if (!read_old_key(reader, record)) {
        return false;
    }
    return read_values(reader, record.row);
}

bool read_truncate(std::uint8_t flags, Record& record) {
    record.truncate_cascade = (flags & flag_cascade) != 0;
    record.truncate_restart_identity = (flags & flag_restart_identity) != 0;
    return (flags & ~(flag_cascade | flag_restart_identity)) == 0;
}

/// The id in front of a description is the description's own. Whether the rest of it can be read is not asked
/// here.
bool describes_itself(const Record& record) {
    ByteReader reader(record.table);
    const std::uint64_t id = reader.u64();
    return !reader.ok() || id == record.description;
}

/// Everything after the description's id.
bool read_change(ByteReader& reader, std::uint8_t flags, Record& record) {
    switch (record.operation) {
        case Operation::insert:
        case Operation::update:
        case Operation::remove:
            record.too_large = (flags & flag_too_large) != 0;
            flags &= static_cast<std::uint8_t>(~flag_too_large);
            break;
        default:
            break;
    }
    switch (record.operation) {
        case Operation::insert:
            return flags == 0 && read_values(reader, record.row);
        case Operation::update:
            return read_update(reader, flags, record);
        case Operation::remove:
            return flags == 0 && read_old_key(reader, record);
        case Operation::truncate:
            return read_truncate(flags, record);
        case Operation::describe:
            record.table = reader.bytes(reader.left());
            return flags == 0 && describes_itself(record);
        case Operation::chunk:
            return read_chunk(reader, flags, record.chunk);
        case Operation::statement:
            return read_statement(reader, flags, record);
        case Operation::sequences:
            return read_sequences(reader, flags, record);
        case Operation::skip:
            break;
    }
    return false;
}

/// Empties what the operation does not have, and keeps the memory of what it has.
void prepare(Record& record) {
    const bool has_row = record.operation == Operation::insert || record.operation == Operation::update;
    const bool has_key = record.operation == Operation::update || record.operation == Operation::remove;
    if (!has_row) record.row.clear();
    if (!has_key) record.old_key.reset();
    record.description = 0;
    record.too_large = false;
    record.table = {};
    record.truncate_cascade = false;
    record.truncate_restart_identity = false;
    if (record.operation != Operation::chunk) record.chunk = {};
    record.statement = {};
    record.sequences_complete = false;
    record.sequence_encoding = {};
    record.sequences.clear();
}

}  // namespace

bool ChunkRows::next(std::vector<Value>& row) {
    ByteReader reader(left_);
    if (left_.empty() || !read_values(reader, row)) return false;
    left_ = left_.last(reader.left());
    return true;
}

const char* name_of(Operation operation) {
    switch (operation) {
        case Operation::insert:
            return "insert";
        case Operation::update:
            return "update";
        case Operation::remove:
            return "delete";
        case Operation::truncate:
            return "truncate";
        case Operation::describe:
            return "describe";
        case Operation::chunk:
            return "refresh";
        case Operation::statement:
            return "statement";
        case Operation::sequences:
            return "sequences";
        case Operation::skip:
            return "skip";
    }
    return "unknown";
}

void encode_record(const Record& record, Bytes& out) {
    ByteWriter writer(out);
    writer.u8(static_cast<std::uint8_t>(record.operation));
    writer.u8(flags_of(record));
    if (record.operation == Operation::skip) return;
    writer.u64(record.description);
    switch (record.operation) {
        case Operation::insert:
            return write_values(writer, record.row);
        case Operation::update:
            if (record.old_key) write_values(writer, *record.old_key);
            return write_values(writer, record.row);
        case Operation::remove:
            return write_values(writer, record.old_key ? *record.old_key : std::vector<Value>{});
        case Operation::describe:
            return writer.bytes(record.table);
        case Operation::chunk:
            return write_chunk(writer, record.chunk);
        case Operation::statement:
            return write_statement(writer, record.statement);
        case Operation::sequences:
            return write_sequences(writer, record);
        case Operation::truncate:
        case Operation::skip:
            return;
    }
}

bool decode_record(ByteView in, Record& record) {
    ByteReader reader(in);
    record.operation = Operation{reader.u8()};
    const std::uint8_t flags = reader.u8();
    prepare(record);
    bool good = false;
    if (record.operation == Operation::skip) {
        good = flags == 0;
    } else {
        record.description = reader.u64();
        good = record.description <= largest_number && read_change(reader, flags, record);
    }
    return good && reader.ok() && reader.left() == 0;
}

std::optional<Record> decode_record(ByteView in) {
    std::optional<Record> record(std::in_place);
    if (!decode_record(in, *record)) record.reset();
    return record;
}

}  // namespace onerepl
