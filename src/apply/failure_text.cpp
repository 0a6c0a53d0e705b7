// Key and row of a failing record as text. Binary values are shown by their type's own output function; they
// are read in a subtransaction, since the value itself may be what is wrong.
#include "apply/failure_text.h"

#include "pg/error_boundary.h"
#include "pg/transaction.h"

extern "C" {
#include "access/transam.h"
#include "catalog/namespace.h"
#include "catalog/pg_type.h"
#include "lib/stringinfo.h"
#include "mb/pg_wchar.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"
}

namespace onerepl::apply {

namespace {

constexpr std::size_t longest_text = 4096;
constexpr std::size_t longest_value = 512;

/// Cuts at a character's end.
std::string cut(std::string text, std::size_t limit) {
    if (text.size() <= limit) return text;
    text.resize(static_cast<std::size_t>(
        pg_mbcliplen(text.data(), static_cast<int>(text.size()), static_cast<int>(limit))));
    return text + "...";
}

std::string hexadecimal(const Value& value) {
    return "\\x" + to_hex(value.bytes.first(std::min(value.bytes.size(), longest_value / 2)));
}

/// Plain. In the current memory context.
const char* output_of(const ColumnDescription& column, const Value& value) {
    const Oid schema = get_namespace_oid(column.type_schema.c_str(), false);
    const Oid type = GetSysCacheOid2(TYPENAMENSP, Anum_pg_type_oid, CStringGetDatum(column.type_name.c_str()),
                                     ObjectIdGetDatum(schema));
    // A domain's checks are its user's code (P19). Values of such types travel as text.
    if (type >= FirstNormalObjectId) elog(ERROR, "type %u is not PostgreSQL's own", type);
    Oid function;
    Oid parameter;
    bool is_varlena;
    getTypeBinaryInputInfo(type, &function, &parameter);
    StringInfoData buffer;
    initStringInfo(&buffer);
    appendBinaryStringInfo(&buffer, reinterpret_cast<const char*>(value.bytes.data()),
                           static_cast<int>(value.bytes.size()));
    const Datum datum = OidReceiveFunctionCall(function, &buffer, parameter, -1);
    getTypeOutputInfo(type, &function, &is_varlena);
    return OidOutputFunctionCall(function, datum);
}

std::string binary_text(const ColumnDescription& column, const Value& value) {
    if (value.bytes.size() > (1 << 20)) return hexadecimal(value) + "...";
    std::string text;
    try {
        pg::in_aborted_subtransaction([&] { text = pg::call([&] { return output_of(column, value); }); });
    } catch (const pg::Error&) {
        text = hexadecimal(value);
    }
    return text;
}

std::string text_of(const ColumnDescription& column, const Value& value) {
    switch (value.kind) {
        case ValueKind::null:
            return "null";
        case ValueKind::unchanged:
            return "(unchanged)";
        case ValueKind::text:
            return std::string(reinterpret_cast<const char*>(value.bytes.data()),
                               std::min(value.bytes.size(), longest_value * 2));
        case ValueKind::binary:
            return binary_text(column, value);
    }
    return {};
}

/// "(a, b)=(1, two)"
std::string list_of(const TableDescription& description, const std::vector<std::size_t>& columns,
                    const std::vector<const Value*>& values) {
    std::string names;
    std::string texts;
    for (std::size_t i = 0; i < columns.size() && texts.size() < longest_text; i++) {
        const ColumnDescription& column = description.columns[columns[i]];
        names += (i > 0 ? ", " : "") + column.name;
        texts += (i > 0 ? ", " : "") + cut(text_of(column, *values[i]), longest_value);
    }
    return cut("(" + names + ")=(" + texts + ")", longest_text);
}

std::vector<std::size_t> all_columns(const TableDescription& description) {
    std::vector<std::size_t> columns(description.columns.size());
    for (std::size_t i = 0; i < columns.size(); i++) columns[i] = i;
    return columns;
}

std::vector<const Value*> pointers(const std::vector<Value>& values) {
    std::vector<const Value*> all;
    all.reserve(values.size());
    for (const Value& value : values) all.push_back(&value);
    return all;
}

std::string row_text(const Record& record, const TableDescription& description) {
    const std::vector<Value>& values = record.row.empty() && record.old_key ? *record.old_key : record.row;
    if (values.empty() || values.size() != description.columns.size()) return {};
    return list_of(description, all_columns(description), pointers(values));
}

std::string bound_text(const std::vector<ByteView>& key) {
    std::string text;
    for (const ByteView value : key)
        text += (text.empty() ? "" : ", ") +
                cut(std::string(reinterpret_cast<const char*>(value.data()), value.size()), longest_value);
    return text.empty() ? "..." : "(" + text + ")";
}

std::string key_text(const Record& record, const TableDescription& description) {
    if (record.operation == Operation::chunk)
        return "after " + bound_text(record.chunk.from) + " to " + bound_text(record.chunk.to);
    const std::vector<std::size_t> key = description.key();
    if (key.empty()) return {};
    if (record.old_key && record.old_key->size() == key.size())
        return list_of(description, key, pointers(*record.old_key));
    if (record.row.size() != description.columns.size()) return {};
    std::vector<const Value*> values;
    values.reserve(key.size());
    for (const std::size_t column : key) values.push_back(&record.row[column]);
    return list_of(description, key, values);
}

std::string relation_text(const TableDescription& description) {
    return pg::call([&] {
        return static_cast<const char*>(
            quote_qualified_identifier(description.schema.c_str(), description.name.c_str()));
    });
}

constexpr const char* search_path_hint =
    "Functions that are called while the central writes (by checks, domains, triggers, indexes, generated "
    "columns) run under "
    "search_path = pg_catalog alone: name the schema in them, or call ALTER FUNCTION ... SET search_path = "
    "..., then resolve with 'retry'.";

/// Bytes of another encoding must not reach our tables.
void make_valid(std::string& text) {
    for (char& c : text)
        if (c == '\0') c = '?';
    if (pg_verify_mbstr(GetDatabaseEncoding(), text.data(), static_cast<int>(text.size()), true)) return;
    for (char& c : text)
        if ((c & 0x80) != 0) c = '?';
}

}  // namespace

void describe_record(const Record& record, const TableDescription* description, Failure& failure) {
    failure.operation = name_of(record.operation);
    if (record.operation == Operation::statement) {
        const ByteView text = record.statement.text;
        failure.row = cut(std::string(text.begin(), text.end()), longest_text);
        make_valid(failure.row);
        if (description != nullptr) failure.relation = relation_text(*description);
        return;
    }
    if (description == nullptr) return;
    failure.relation = relation_text(*description);
    failure.key = key_text(record, *description);
    failure.row = row_text(record, *description);
    make_valid(failure.key);
    make_valid(failure.row);
}

void explain_search_path(pg::ErrorReport& error) {
    const bool unknown_name =
        error.sqlstate == "42704" || error.sqlstate == "42883" || error.sqlstate == "42P01";
    if (!unknown_name || error.context.empty()) return;  // only functions have a context
    if (!error.hint.empty()) error.hint += ' ';
    error.hint += search_path_hint;
}

}  // namespace onerepl::apply
