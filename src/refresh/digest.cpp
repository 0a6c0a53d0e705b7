// SHA-256 of each row's text, the first 64 bits of it summed up.
#include "refresh/digest.h"

#include "refresh/key_order.h"

namespace onerepl::refresh {

std::string digest_of(const std::vector<std::string>& columns) {
    const std::string row = "CAST(ROW" + row_of(columns) + " AS pg_catalog.text)";
    const std::string hash = "pg_catalog.encode(pg_catalog.substr(pg_catalog.sha256(pg_catalog.convert_to(" +
                             row + ", 'UTF8')), 1, 8), 'hex')";
    return "CAST(coalesce(pg_catalog.sum(CAST(CAST('x' || " + hash +
           " AS pg_catalog.bit(64)) AS pg_catalog.int8)), 0) AS pg_catalog.text)";
}

}  // namespace onerepl::refresh
