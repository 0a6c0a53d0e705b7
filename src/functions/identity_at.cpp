// SQL functions about A's log: where it can be read from, and its identity there (P9).
#include "log/reader.h"
#include "pg/spi.h"

extern "C" {
PG_FUNCTION_INFO_V1(onerepl_first_number);
PG_FUNCTION_INFO_V1(onerepl_identity_at);
}

namespace onerepl {

namespace {

Number first_number() {
    pg::SpiConnection spi;
    const Number first = log::first_number();
    spi.finish();
    return first;
}

/// Null if the number has not been given, or was purged.
bytea* identity_or_null(Number n) {
    pg::SpiConnection spi;
    const std::optional<Identity> identity = log::identity_at(n);
    spi.finish();
    if (!identity) return nullptr;
    return pg::call([&] {
        auto* bytes = static_cast<bytea*>(palloc(VARHDRSZ + identity->size()));
        SET_VARSIZE(bytes, VARHDRSZ + identity->size());
        memcpy(VARDATA(bytes), identity->data(), identity->size());
        return bytes;
    });
}

}  // namespace

}  // namespace onerepl

PGDLLEXPORT Datum onerepl_first_number(PG_FUNCTION_ARGS) {
    (void)fcinfo;
    return onerepl::pg::entry([] { return Int64GetDatum(static_cast<int64>(onerepl::first_number())); });
}

PGDLLEXPORT Datum onerepl_identity_at(PG_FUNCTION_ARGS) {
    const auto n = static_cast<onerepl::Number>(PG_GETARG_INT64(0));
    bytea* const identity = onerepl::pg::entry([&] { return onerepl::identity_or_null(n); });
    if (identity == nullptr) PG_RETURN_NULL();
    PG_RETURN_BYTEA_P(identity);
}
