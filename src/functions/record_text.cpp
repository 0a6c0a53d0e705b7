// Records as text. Values that travelled in binary go through the type's receive and output functions of this
// database.
#include "functions/record_text.h"

#include "pg/error_boundary.h"

extern "C" {
#include "access/transam.h"
#include "catalog/namespace.h"
#include "catalog/pg_type.h"
#include "lib/stringinfo.h"
#include "mb/pg_wchar.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"
}

namespace onerepl {

namespace {

std::string hexadecimal(ByteView bytes) {
    return "\\x" + to_hex(bytes);
}

/// InvalidOid if this database has no such type.
Oid type_of(const ColumnDescription& column) {
    return pg::call([&] {
        const Oid schema = get_namespace_oid(column.type_schema.c_str(), true);
        if (!OidIsValid(schema)) return InvalidOid;
        return GetSysCacheOid2(TYPENAMENSP, Anum_pg_type_oid, CStringGetDatum(column.type_name.c_str()),
                               ObjectIdGetDatum(schema));
    });
}

std::string text_of_binary(ByteView bytes, const ColumnDescription& column) {
    const Oid type = type_of(column);
    // A domain's checks are its user's code (P19); values of such types travel as text.
    if (!OidIsValid(type) || type >= FirstNormalObjectId) return hexadecimal(bytes);
    char* const text = pg::call([&] {
        Oid receive, parameter, output;
        bool is_varlena;
        getTypeBinaryInputInfo(type, &receive, &parameter);
        getTypeOutputInfo(type, &output, &is_varlena);
        StringInfoData buffer;
        initStringInfo(&buffer);
        appendBinaryStringInfo(&buffer, reinterpret_cast<const char*>(bytes.data()),
                               static_cast<int>(bytes.size()));
        const Datum value = OidReceiveFunctionCall(receive, &buffer, parameter, column.typmod);
        return OidOutputFunctionCall(output, value);
    });
    std::string copy = text;
    pfree(text);
    return copy;
}

/// From A's server encoding to ours.
std::string text_of_text(ByteView bytes, const std::string& encoding) {
    char* const text = pg::call([&] {
        char* source = pnstrdup(reinterpret_cast<const char*>(bytes.data()), bytes.size());
        const int from = pg_char_to_encoding(encoding.c_str());
        return from < 0 ? source : pg_any_to_server(source, static_cast<int>(bytes.size()), from);
    });
    return text;
}

std::optional<std::string> text_of_value(const Value& value, const ColumnDescription& column,
                                         const std::string& encoding) {
    switch (value.kind) {
        case ValueKind::binary:
            return text_of_binary(value.bytes, column);
        case ValueKind::text:
            return text_of_text(value.bytes, encoding);
        default:
            return std::nullopt;
    }
}

using Texts = std::vector<std::optional<std::string>>;

/// The object before the change, as an update that changed the key and a delete carry it; empty if the record
/// does not.
Texts old_key_of(const Record& record, const TableDescription& table,
                 const std::vector<std::size_t>& columns) {
    Texts texts;
    if (!record.old_key || record.old_key->size() != columns.size()) return texts;
    for (std::size_t i = 0; i < columns.size(); i++)
        texts.push_back(text_of_value((*record.old_key)[i], table.columns[columns[i]], table.encoding));
    return texts;
}

/// The object after the change; empty for a delete.
Texts new_key_of(const Record& record, const TableDescription& table,
                 const std::vector<std::size_t>& columns) {
    Texts texts;
    if (record.row.size() != table.columns.size()) return texts;
    for (std::size_t column : columns)
        texts.push_back(text_of_value(record.row[column], table.columns[column], table.encoding));
    return texts;
}

/// The columns that name an object: the key's, or without a key all.
std::vector<std::size_t> naming_columns(const TableDescription& table) {
    std::vector<std::size_t> columns = table.key();
    if (!columns.empty()) return columns;
    for (std::size_t i = 0; i < table.columns.size(); i++) columns.push_back(i);
    return columns;
}

/// Sets what the record says of its object.
void put_object(const Record& record, const TableDescription& table, RecordText& text) {
    const std::vector<std::size_t> columns = naming_columns(table);
    const Texts before = old_key_of(record, table, columns);
    const Texts after = new_key_of(record, table, columns);
    if (!before.empty()) text.object_id = object_id_of(before);
    if (!after.empty()) (before.empty() ? text.object_id : text.moved_to) = object_id_of(after);
}

void append_quoted(std::string& out, const std::string& value) {
    const bool plain = !value.empty() && value.find_first_of("\"\\(), \t\n\r\v\f") == std::string::npos;
    if (plain) {
        out += value;
        return;
    }
    out += '"';
    for (char character : value) {
        if (character == '"' || character == '\\') out += character;
        out += character;
    }
    out += '"';
}

}  // namespace

std::string qualified_name(const TableDescription& table) {
    return pg::call([&] { return quote_qualified_identifier(table.schema.c_str(), table.name.c_str()); });
}

const TableDescription* Descriptions::find(std::uint64_t id) {
    auto known = known_.find(id);
    if (known == known_.end()) {
        const std::optional<Bytes> encoded = load_(id);
        known = known_.emplace(id, encoded ? decode_description(*encoded) : std::nullopt).first;
    }
    return known->second ? &*known->second : nullptr;
}

std::string object_id_of(const std::vector<std::optional<std::string>>& values) {
    if (values.size() == 1) return values[0].value_or("");
    std::string out = "(";
    for (std::size_t i = 0; i < values.size(); i++) {
        if (i > 0) out += ',';
        if (values[i]) append_quoted(out, *values[i]);
    }
    return out + ")";
}

RecordText text_of(const Record& record, const TableDescription* table) {
    RecordText text;
    text.operation = name_of(record.operation);
    std::optional<TableDescription> described;
    if (record.operation == Operation::describe && (described = decode_description(record.table)))
        table = &*described;
    if (table == nullptr || record.operation == Operation::skip) return text;
    text.relation = qualified_name(*table);
    if (record.operation == Operation::insert || record.operation == Operation::update ||
        record.operation == Operation::remove)
        put_object(record, *table, text);
    return text;
}

}  // namespace onerepl
