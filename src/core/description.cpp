// Table descriptions: what the values of records are. The layout is docs/protocol/wire.md, "Table
// descriptions".
#include "core/record.h"

#include "core/bytes.h"

#include <limits>
#include <stdexcept>

namespace onerepl {
namespace {

constexpr std::uint8_t flag_generated = 1;

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
    if (table.columns.size() > std::numeric_limits<std::uint16_t>::max())
        throw std::length_error("too many columns");
    writer.u16(static_cast<std::uint16_t>(table.columns.size()));
    for (const ColumnDescription& column : table.columns) {
        writer.counted(view(column.name));
        writer.counted(view(column.type_schema));
        writer.counted(view(column.type_name));
        writer.u32(static_cast<std::uint32_t>(column.typmod));
        writer.u16(column.key_position);
        writer.u8(column.generated ? flag_generated : 0);
    }
    writer.counted(view(table.partition_schema));
    writer.counted(view(table.partition_name));
    writer.counted(view(table.partition_condition));
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
    good = read_name(reader, table.partition_schema) && read_name(reader, table.partition_name);
    if (!good || !read_name(reader, table.partition_condition)) return std::nullopt;
    if (reader.left() != 0 || !is_key_sound(table.columns)) return std::nullopt;
    return table;
}

}  // namespace onerepl
