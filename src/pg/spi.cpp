// SQL from C++: parameters, cached plans, rows.
#include "pg/spi.h"

extern "C" {
#include "catalog/pg_type.h"
#include "utils/snapmgr.h"
#include "utils/uuid.h"
}

#include <cstring>
#include <map>

namespace onerepl::pg {

namespace {

Datum copy_varlena(const void* bytes, std::size_t size) {
    auto* copy = static_cast<varlena*>(palloc(VARHDRSZ + size));
    SET_VARSIZE(copy, VARHDRSZ + size);
    if (size > 0) std::memcpy(VARDATA(copy), bytes, size);
    return PointerGetDatum(copy);
}

using PlanKey = std::pair<std::string, std::vector<Oid>>;  // text and types of the parameters

SPIPlanPtr plan_for(const char* sql, const std::vector<Oid>& types) {
    static std::map<PlanKey, SPIPlanPtr> plans;
    PlanKey key{sql, types};
    if (auto known = plans.find(key); known != plans.end()) return known->second;
    SPIPlanPtr plan = call([&] {
        SPIPlanPtr made = SPI_prepare(sql, static_cast<int>(types.size()), const_cast<Oid*>(types.data()));
        if (made == nullptr)
            elog(ERROR, "could not prepare \"%s\": %s", sql, SPI_result_code_string(SPI_result));
        SPI_keepplan(made);
        return made;
    });
    plans.emplace(std::move(key), plan);
    return plan;
}

}  // namespace

Param::Param(bool from) : type(BOOLOID), value(BoolGetDatum(from)) {}
Param::Param(std::int32_t from) : type(INT4OID), value(Int32GetDatum(from)) {}
Param::Param(std::int64_t from) : type(INT8OID), value(Int64GetDatum(from)) {}
Param::Param(std::uint64_t from) : Param(static_cast<std::int64_t>(from)) {}
Param::Param(double from) : type(FLOAT8OID), value(Float8GetDatum(from)) {}
Param::Param(const char* from) : Param(std::string_view(from)) {}
Param::Param(std::string_view from)
    : type(TEXTOID), value(call([&] { return copy_varlena(from.data(), from.size()); })) {}
Param::Param(ByteView bytes)
    : type(BYTEAOID), value(call([&] { return copy_varlena(bytes.data(), bytes.size()); })) {}

Param Param::uuid(const Uuid& from) {
    return datum(UUIDOID, call([&] {
                     void* copy = palloc(UUID_LEN);
                     std::memcpy(copy, from.data(), UUID_LEN);
                     return PointerGetDatum(copy);
                 }));
}

Param Param::oid(Oid from) {
    return datum(OIDOID, ObjectIdGetDatum(from));
}

Param Param::datum(Oid type_oid, Datum from) {
    Param param;
    param.type = type_oid;
    param.value = from;
    return param;
}

Param Param::null(Oid type_oid) {
    Param param = datum(type_oid, 0);
    param.is_null = true;
    return param;
}

Datum Row::datum(int column, bool* is_null) const {
    return call([&] { return SPI_getbinval(tuple_, description_, column + 1, is_null); });
}

bool Row::is_null(int column) const {
    bool null = true;
    datum(column, &null);
    return null;
}

bool Row::boolean(int column) const {
    bool null = true;
    const Datum value = datum(column, &null);
    return !null && DatumGetBool(value);
}

std::int32_t Row::int4(int column) const {
    bool null = true;
    const Datum value = datum(column, &null);
    return null ? 0 : DatumGetInt32(value);
}

std::int64_t Row::int8(int column) const {
    bool null = true;
    const Datum value = datum(column, &null);
    return null ? 0 : DatumGetInt64(value);
}

double Row::float8(int column) const {
    bool null = true;
    const Datum value = datum(column, &null);
    return null ? 0 : DatumGetFloat8(value);
}

Oid Row::oid(int column) const {
    bool null = true;
    const Datum value = datum(column, &null);
    return null ? InvalidOid : DatumGetObjectId(value);
}

std::string Row::text(int column) const {
    char* value = call([&] { return SPI_getvalue(tuple_, description_, column + 1); });
    std::string result = value ? value : "";
    if (value) pfree(value);
    return result;
}

Bytes Row::bytea(int column) const {
    bool null = true;
    const Datum value = datum(column, &null);
    if (null) return {};
    varlena* const detoasted =
        call([&] { return reinterpret_cast<varlena*>(PG_DETOAST_DATUM_PACKED(value)); });
    const auto* first = reinterpret_cast<const std::uint8_t*>(VARDATA_ANY(detoasted));
    Bytes result(first, first + VARSIZE_ANY_EXHDR(detoasted));
    if (PointerGetDatum(detoasted) != value) pfree(detoasted);
    return result;
}

Uuid Row::uuid(int column) const {
    bool null = true;
    const Datum value = datum(column, &null);
    Uuid result{};
    if (!null) std::memcpy(result.data(), DatumGetUUIDP(value)->data, UUID_LEN);
    return result;
}

namespace detail {

SPITupleTable* run(const char* sql, const std::vector<Param>& params, std::uint64_t limit,
                   std::uint64_t* processed) {
    std::vector<Oid> types;
    std::vector<Datum> values;
    std::vector<char> nulls;
    for (const Param& param : params) {
        types.push_back(param.type);
        values.push_back(param.value);
        nulls.push_back(param.is_null ? 'n' : ' ');
    }
    SPIPlanPtr plan = plan_for(sql, types);
    return call([&] {
        const int code = SPI_execute_plan(plan, values.data(), nulls.data(), false, static_cast<long>(limit));
        if (code < 0) elog(ERROR, "could not run \"%s\": %s", sql, SPI_result_code_string(code));
        if (processed) *processed = SPI_processed;
        return SPI_tuptable;
    });
}

void free_result(SPITupleTable* table) {
    call([&] { SPI_freetuptable(table); });
}

}  // namespace detail

std::uint64_t execute(const char* sql, const std::vector<Param>& params) {
    std::uint64_t processed = 0;
    SPITupleTable* const table = detail::run(sql, params, 0, &processed);
    if (table != nullptr) detail::free_result(table);
    return processed;
}

std::optional<std::int64_t> query_int8(const char* sql, const std::vector<Param>& params) {
    std::optional<std::int64_t> result;
    query(
        sql, params,
        [&](const Row& row) {
            if (!row.is_null(0)) result = row.int8(0);
        },
        1);
    return result;
}

std::optional<std::string> query_text(const char* sql, const std::vector<Param>& params) {
    std::optional<std::string> result;
    query(
        sql, params,
        [&](const Row& row) {
            if (!row.is_null(0)) result = row.text(0);
        },
        1);
    return result;
}

SpiConnection::SpiConnection() {
    call([] {
        if (SPI_connect() != SPI_OK_CONNECT) elog(ERROR, "could not connect to SPI");
    });
}

void SpiConnection::finish() {
    call([] { SPI_finish(); });
}

}  // namespace onerepl::pg
