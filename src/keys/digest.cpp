// SHA-256 of each row's text, the first 64 bits of it summed up.
#include "keys/digest.h"

#include "keys/key_order.h"

namespace onerepl::keys {

namespace {

/// The first 64 bits of a text's SHA-256, as hexadecimal digits.
std::string hash_of(const std::string& text) {
    return "pg_catalog.encode(pg_catalog.substr(pg_catalog.sha256(pg_catalog.convert_to(" + text +
           ", 'UTF8')), 1, 8), 'hex')";
}

}  // namespace

std::string digest_of(const std::vector<std::string>& columns) {
    const std::string row = "CAST(ROW" + row_of(columns) + " AS pg_catalog.text)";
    return "CAST(coalesce(pg_catalog.sum(CAST(CAST('x' || " + hash_of(row) +
           " AS pg_catalog.bit(64)) AS pg_catalog.int8)), 0) AS pg_catalog.text)";
}

std::string digests_of(const std::vector<std::string>& columns) {
    const std::string none = "'" + std::string(digits_of_column, '-') + "'";
    std::string sql = "''";
    for (const std::string& column : columns) {
        const std::string text = "CAST(" + column + " AS pg_catalog.text)";
        sql.append(" || coalesce(").append(hash_of(text)).append(", ").append(none).append(")");
    }
    return sql;
}

}  // namespace onerepl::keys
