// Layouts: their encoding, their form on the wire, and the tuple descriptor that reads their rows.
#include "log/layout.h"

#include "core/bytes.h"
#include "pg/compat.h"
#include "pg/error_boundary.h"

extern "C" {
#include "mb/pg_wchar.h"
}

#include <cstring>

namespace onerepl::log {

namespace {

constexpr std::uint8_t layout_version = 4;

enum ColumnFlag : std::uint8_t {
    flag_column_dropped = 1,
    flag_generated = 2,
    flag_rendered = 4,
    flag_unique = 8,
    flag_by_value = 16,
};

std::uint8_t flags_of(const LayoutColumn& column) {
    std::uint8_t flags = 0;
    if (column.dropped) flags |= flag_column_dropped;
    if (column.generated) flags |= flag_generated;
    if (column.rendered) flags |= flag_rendered;
    if (column.unique) flags |= flag_unique;
    if (column.by_value) flags |= flag_by_value;
    return flags;
}

void put_text(ByteWriter& out, const std::string& text) {
    out.counted(view(text));
}

std::string get_text(ByteReader& in) {
    const ByteView bytes = in.counted();
    return std::string(bytes.begin(), bytes.end());
}

void put_column(ByteWriter& out, const LayoutColumn& column) {
    out.u16(static_cast<std::uint16_t>(column.number));
    out.u8(flags_of(column));
    out.u32(column.type);
    out.u16(static_cast<std::uint16_t>(column.length));
    out.u8(static_cast<std::uint8_t>(column.align));
    out.u8(static_cast<std::uint8_t>(column.storage));
    out.u32(static_cast<std::uint32_t>(column.typmod));
    out.u16(column.key_position);
    put_text(out, column.name);
    put_text(out, column.type_schema);
    put_text(out, column.type_name);
}

LayoutColumn get_column(ByteReader& in) {
    LayoutColumn column;
    column.number = static_cast<std::int16_t>(in.u16());
    const std::uint8_t flags = in.u8();
    column.dropped = flags & flag_column_dropped;
    column.generated = flags & flag_generated;
    column.rendered = flags & flag_rendered;
    column.unique = flags & flag_unique;
    column.by_value = flags & flag_by_value;
    column.type = in.u32();
    column.length = static_cast<std::int16_t>(in.u16());
    column.align = static_cast<char>(in.u8());
    column.storage = static_cast<char>(in.u8());
    column.typmod = static_cast<std::int32_t>(in.u32());
    column.key_position = in.u16();
    column.name = get_text(in);
    column.type_schema = get_text(in);
    column.type_name = get_text(in);
    return column;
}

void put_sets(ByteWriter& out, const std::vector<std::vector<std::uint16_t>>& sets) {
    out.u16(static_cast<std::uint16_t>(sets.size()));
    for (const std::vector<std::uint16_t>& set : sets) {
        out.u16(static_cast<std::uint16_t>(set.size()));
        for (std::uint16_t column : set) out.u16(column);
    }
}

bool get_sets(ByteReader& in, std::size_t columns, std::vector<std::vector<std::uint16_t>>& sets) {
    for (std::uint16_t left = in.u16(); left > 0 && in.ok(); left--) {
        std::vector<std::uint16_t>& set = sets.emplace_back();
        for (std::uint16_t members = in.u16(); members > 0 && in.ok(); members--) {
            set.push_back(in.u16());
            if (set.back() >= columns) return false;
        }
    }
    return in.ok();
}

void fill_attribute(Form_pg_attribute attribute, const LayoutColumn& column) {
    attribute->atttypid = column.type;
    attribute->attlen = column.length;
    attribute->attnum = column.number;
    attribute->attbyval = column.by_value;
    attribute->attalign = column.align;
    attribute->attstorage = column.storage;
    attribute->atttypmod = column.typmod;
    attribute->attisdropped = column.dropped;
    attribute->attislocal = true;
    const std::size_t size = column.name.size() < NAMEDATALEN ? column.name.size() : NAMEDATALEN - 1;
    std::memcpy(NameStr(attribute->attname), column.name.data(), size);
}

}  // namespace

bool Layout::same_as(const Layout& other) const {
    return relation == other.relation && schema == other.schema && table == other.table &&
           columns == other.columns && unique_sets == other.unique_sets && root == other.root &&
           root_schema == other.root_schema && root_table == other.root_table &&
           partition_condition == other.partition_condition;
}

bool Layout::has_key() const {
    for (const LayoutColumn& column : columns)
        if (column.key_position > 0) return true;
    return false;
}

std::vector<std::size_t> Layout::key() const {
    std::vector<std::size_t> indexes;
    for (std::size_t position = 1;; position++) {
        const std::size_t before = indexes.size();
        for (std::size_t i = 0; i < columns.size(); i++)
            if (columns[i].key_position == position) indexes.push_back(i);
        if (indexes.size() == before) return indexes;
    }
}

std::vector<std::size_t> Layout::wire_columns() const {
    std::vector<std::size_t> indexes;
    for (std::size_t i = 0; i < columns.size(); i++)
        if (!columns[i].dropped && !columns[i].hidden) indexes.push_back(i);
    return indexes;
}

TableDescription Layout::describe() const {
    TableDescription description;
    description.id = id;
    const bool is_partition = !root_table.empty();
    description.schema = is_partition ? root_schema : schema;
    description.name = is_partition ? root_table : table;
    if (is_partition) {
        description.partition_schema = schema;
        description.partition_name = table;
        description.partition_condition = partition_condition;
    }
    description.encoding = GetDatabaseEncodingName();
    for (std::size_t i : wire_columns()) {
        const LayoutColumn& from = columns[i];
        ColumnDescription& to = description.columns.emplace_back();
        to.name = from.name;
        to.type_schema = from.type_schema;
        to.type_name = from.type_name;
        to.typmod = from.typmod;
        to.key_position = from.key_position;
        to.generated = from.generated;
    }
    return description;
}

TupleDesc Layout::tuple_descriptor() const {
    TupleDesc descriptor =
        pg::call([&] { return CreateTemplateTupleDesc(static_cast<int>(columns.size())); });
    for (std::size_t i = 0; i < columns.size(); i++) {
        Form_pg_attribute attribute = TupleDescAttr(descriptor, static_cast<int>(i));
        std::memset(attribute, 0, ATTRIBUTE_FIXED_PART_SIZE);
        fill_attribute(attribute, columns[i]);
        compat::complete_attribute(descriptor, static_cast<int>(i));
    }
    return descriptor;
}

Bytes encode_layout(const Layout& layout) {
    Bytes bytes;
    ByteWriter out(bytes);
    out.u8(layout_version);
    out.u32(layout.relation);
    put_text(out, layout.schema);
    put_text(out, layout.table);
    out.u16(static_cast<std::uint16_t>(layout.columns.size()));
    for (const LayoutColumn& column : layout.columns) put_column(out, column);
    put_sets(out, layout.unique_sets);
    out.u32(layout.root);
    put_text(out, layout.root_schema);
    put_text(out, layout.root_table);
    put_text(out, layout.partition_condition);
    out.u64(layout.rules);
    return bytes;
}

std::optional<Layout> decode_layout(ByteView bytes, std::uint64_t id) {
    ByteReader in(bytes);
    if (in.u8() != layout_version) return std::nullopt;
    Layout layout;
    layout.id = id;
    layout.relation = in.u32();
    layout.schema = get_text(in);
    layout.table = get_text(in);
    for (std::uint16_t left = in.u16(); left > 0 && in.ok(); left--) {
        layout.columns.push_back(get_column(in));
        if (layout.columns.back().number != static_cast<std::int16_t>(layout.columns.size())) in.fail();
    }
    if (!get_sets(in, layout.columns.size(), layout.unique_sets)) return std::nullopt;
    layout.root = in.u32();
    layout.root_schema = get_text(in);
    layout.root_table = get_text(in);
    layout.partition_condition = get_text(in);
    layout.rules = in.u64();
    if (!in.ok() || in.left() > 0) return std::nullopt;
    return layout;
}

}  // namespace onerepl::log
