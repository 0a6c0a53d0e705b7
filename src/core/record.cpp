// Records and table descriptions: the data of object transfers. The layout is PROTOCOL.md, "Records".
#include "core/record.h"

#include "core/bytes.h"

#include <limits>
#include <stdexcept>

namespace onerepl {
namespace {

constexpr std::uint8_t flag_old_key = 1;
constexpr std::uint8_t flag_cascade = 2;
constexpr std::uint8_t flag_restart_identity = 4;
constexpr std::uint8_t flag_generated = 1;

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

std::uint8_t flags_of(const Record& record) {
    std::uint8_t flags = 0;
    if (record.operation == Operation::update && record.old_key) flags |= flag_old_key;
    if (record.operation == Operation::truncate && record.truncate_cascade) flags |= flag_cascade;
    if (record.operation == Operation::truncate && record.truncate_restart_identity)
        flags |= flag_restart_identity;
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

bool read_old_key(ByteReader& reader, Record& record) {
    if (!record.old_key) record.old_key.emplace();
    return read_values(reader, *record.old_key);
}

bool read_skip(ByteReader& reader, std::uint8_t flags, Record& record) {
    record.skip_count = reader.u64();
    return flags == 0 && record.skip_count >= 1 && record.skip_count <= largest_number;
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

/// Everything behind the description's id.
bool read_change(ByteReader& reader, std::uint8_t flags, Record& record) {
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
            return flags == 0;
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
    record.table = {};
    record.truncate_cascade = false;
    record.truncate_restart_identity = false;
    record.skip_count = 1;
}

bool read_name(ByteReader& reader, std::string& name) {
    const ByteView bytes = reader.counted();
    name.assign(bytes.begin(), bytes.end());
    // Names become C strings; one with a zero byte would be another one then.
    return reader.ok() && name.find('\0') == std::string::npos;
}

bool read_column(ByteReader& reader, ColumnDescription& column) {
    bool good = read_name(reader, column.name) && read_name(reader, column.type_schema);
    good = good && read_name(reader, column.type_name);
    column.typmod = static_cast<std::int32_t>(reader.u32());
    column.key_position = reader.u16();
    const std::uint8_t flags = reader.u8();
    column.generated = (flags & flag_generated) != 0;
    return good && reader.ok() && (flags & ~flag_generated) == 0;
}

/// The key's positions are 1, 2, ... without gap or repetition.
bool is_key_sound(const std::vector<ColumnDescription>& columns) {
    std::vector<bool> taken(columns.size() + 1, false);
    std::size_t count = 0;
    for (const ColumnDescription& column : columns) {
        if (column.key_position == 0) continue;
        if (column.key_position > columns.size() || taken[column.key_position]) return false;
        taken[column.key_position] = true;
        ++count;
    }
    for (std::size_t position = 1; position <= count; ++position)
        if (!taken[position]) return false;
    return true;
}

}  // namespace

void encode_record(const Record& record, Bytes& out) {
    ByteWriter writer(out);
    writer.u8(static_cast<std::uint8_t>(record.operation));
    writer.u8(flags_of(record));
    if (record.operation == Operation::skip) return writer.u64(record.skip_count);
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
        good = read_skip(reader, flags, record);
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

std::vector<std::size_t> TableDescription::key() const {
    std::vector<std::size_t> indexes;
    for (const ColumnDescription& column : columns)
        if (column.key_position > 0) indexes.push_back(0);
    for (std::size_t i = 0; i < columns.size(); ++i) {
        const std::size_t position = columns[i].key_position;
        if (position > 0 && position <= indexes.size()) indexes[position - 1] = i;
    }
    return indexes;
}

void encode_description(const TableDescription& table, Bytes& out) {
    ByteWriter writer(out);
    writer.u64(table.id);
    writer.counted(view(table.schema));
    writer.counted(view(table.name));
    writer.counted(view(table.encoding));
    writer.u16(count16(table.columns.size()));
    for (const ColumnDescription& column : table.columns) {
        writer.counted(view(column.name));
        writer.counted(view(column.type_schema));
        writer.counted(view(column.type_name));
        writer.u32(static_cast<std::uint32_t>(column.typmod));
        writer.u16(column.key_position);
        writer.u8(column.generated ? flag_generated : 0);
    }
}

std::optional<TableDescription> decode_description(ByteView in) {
    constexpr std::size_t smallest_column = 19;
    ByteReader reader(in);
    TableDescription table;
    table.id = reader.u64();
    bool good =
        table.id <= largest_number && read_name(reader, table.schema) && read_name(reader, table.name);
    good = good && read_name(reader, table.encoding);
    const std::size_t count = reader.u16();
    if (!good || !reader.ok() || count > reader.left() / smallest_column) return std::nullopt;
    table.columns.resize(count);
    for (ColumnDescription& column : table.columns)
        if (!read_column(reader, column)) return std::nullopt;
    if (reader.left() != 0 || !is_key_sound(table.columns)) return std::nullopt;
    return table;
}

}  // namespace onerepl
