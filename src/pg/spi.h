// SQL from C++ with typed parameters. SPI must be connected (pg::in_transaction does it; in a SQL function
// use pg::SpiConnection). Plans are cached per session by query text.
#pragma once

#include "core/types.h"
#include "pg/error_boundary.h"

extern "C" {
#include "executor/spi.h"
}

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace onerepl::pg {

/// One parameter. Built from the C++ type: bool, int32_t, int64_t/uint64_t (int8), double, string (text),
/// Bytes/ByteView (bytea), Uuid (uuid), oid(Oid), std::nullopt-able by Param::null(type).
class Param {
  public:
    Param(bool from);
    Param(std::int32_t from);
    Param(std::int64_t from);
    Param(std::uint64_t from);
    Param(double from);
    Param(const char* from);
    Param(std::string_view from);
    Param(const std::string& from) : Param(std::string_view(from)) {}
    Param(ByteView from);
    Param(const Bytes& from) : Param(ByteView(from)) {}
    static Param uuid(const Uuid& from);
    static Param oid(Oid from);
    static Param datum(Oid type_oid, Datum from);
    static Param null(Oid type_oid);

    Oid type;
    Datum value;
    bool is_null = false;

  private:
    Param() = default;
};

/// One row of a result; valid inside query's `each`. Column numbers from 0. A null gives nullopt from
/// the optional_ forms and the type's zero from the others.
class Row {
  public:
    Row(HeapTuple tuple, TupleDesc description) : tuple_(tuple), description_(description) {}
    bool is_null(int column) const;
    bool boolean(int column) const;
    std::int32_t int4(int column) const;
    std::int64_t int8(int column) const;
    Number number(int column) const { return static_cast<Number>(int8(column)); }
    double float8(int column) const;
    /// text, name or any type of theirs; other types through their output function.
    std::string text(int column) const;
    Bytes bytea(int column) const;
    Uuid uuid(int column) const;
    Oid oid(int column) const;
    Datum datum(int column, bool* is_null) const;

  private:
    HeapTuple tuple_;
    TupleDesc description_;
};

/// Runs one statement, returns the number of rows processed. Read-write.
std::uint64_t execute(const char* sql, const std::vector<Param>& params = {});

/// Runs a query and hands each Row to `each`; `limit` 0: all. Values must be copied out inside `each`, which
/// may run further statements.
template <class Each>
std::uint64_t query(const char* sql, const std::vector<Param>& params, Each&& each, std::uint64_t limit = 0);

/// The first row's first column as int8, if there is a row and it is not null.
std::optional<std::int64_t> query_int8(const char* sql, const std::vector<Param>& params = {});
std::optional<std::string> query_text(const char* sql, const std::vector<Param>& params = {});

/// SPI_connect for code that SQL called; `finish` at its end. There is no destructor's work: an error path
/// leaves the end to the abort of the transaction.
class SpiConnection {
  public:
    SpiConnection();
    void finish();
};

namespace detail {
/// Runs the statement; the result table is the caller's to free. `processed` may be null.
SPITupleTable* run(const char* sql, const std::vector<Param>& params, std::uint64_t limit,
                   std::uint64_t* processed);
void free_result(SPITupleTable* table);
}  // namespace detail

template <class Each>
std::uint64_t query(const char* sql, const std::vector<Param>& params, Each&& each, std::uint64_t limit) {
    SPITupleTable* const table = detail::run(sql, params, limit, nullptr);
    if (table == nullptr) return 0;
    const std::uint64_t count = table->numvals;
    for (std::uint64_t i = 0; i < count; i++) each(Row(table->vals[i], table->tupdesc));
    detail::free_result(table);
    return count;
}

}  // namespace onerepl::pg
