// Orders of keys, and SQL for them. Operators and types are named in full: search_path means nothing here.
#include "keys/key_order.h"

#include "pg/error_boundary.h"

extern "C" {
#include "catalog/pg_type.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
}

namespace onerepl::keys {

bool has_natural_order(Oid base_type) {
    switch (base_type) {
        case BOOLOID:
        case BYTEAOID:
        case CHAROID:
        case DATEOID:
        case FLOAT4OID:
        case FLOAT8OID:
        case INETOID:
        case INT2OID:
        case INT4OID:
        case INT8OID:
        case INTERVALOID:
        case MACADDROID:
        case MACADDR8OID:
        case NUMERICOID:
        case OIDOID:
        case TIMEOID:
        case TIMESTAMPOID:
        case TIMESTAMPTZOID:
        case UUIDOID:
            return true;
        default:
            return false;
    }
}

bool is_string(Oid base_type) {
    return base_type == TEXTOID || base_type == VARCHAROID || base_type == BPCHAROID;
}

KeyOrder order_of(Oid type, bool compared) {
    const Oid base = pg::call([&] { return getBaseType(type); });
    if (has_natural_order(base)) return KeyOrder::natural;
    if (is_string(base)) return compared ? KeyOrder::collate_c : KeyOrder::natural;
    return KeyOrder::text;
}

std::string ordered(const std::string& column, KeyOrder order) {
    switch (order) {
        case KeyOrder::natural:
            return column;
        case KeyOrder::collate_c:
            return column + " COLLATE pg_catalog.\"C\"";
        case KeyOrder::text:
            break;
    }
    return "CAST(" + column + " AS pg_catalog.text) COLLATE pg_catalog.\"C\"";
}

std::string ordered_bound(const std::string& text, Oid type, KeyOrder order) {
    if (order == KeyOrder::text) return text + " COLLATE pg_catalog.\"C\"";
    // With a type modifier of -1, since "character" alone would mean character(1).
    const std::string name = pg::call([&] {
        return static_cast<const char*>(format_type_extended(
            getBaseType(type), -1, FORMAT_TYPE_TYPEMOD_GIVEN | FORMAT_TYPE_FORCE_QUALIFY));
    });
    return ordered("CAST(" + text + " AS " + name + ")", order);
}

std::string list_of(const std::vector<std::string>& expressions) {
    std::string list;
    for (const std::string& expression : expressions) list += (list.empty() ? "" : ", ") + expression;
    return list;
}

std::string row_of(const std::vector<std::string>& expressions) {
    return "(" + list_of(expressions) + ")";
}

std::string name_of(Oid relation) {
    return pg::call([&] {
        char* const name = get_rel_name(relation);
        if (name == nullptr) elog(ERROR, "relation %u does not exist", relation);
        return static_cast<const char*>(
            quote_qualified_identifier(get_namespace_name(get_rel_namespace(relation)), name));
    });
}

}  // namespace onerepl::keys
