// Writing rows of schema onerepl by hand: no SPI, no search_path, no permission check, invisible to logical
// decoding. Plain C-like code: everything here may ereport.
#pragma once

#include "pg/pg.h"

extern "C" {
#include "access/transam.h"
}

#include <cstdint>

namespace onerepl::store {

/// OID of a relation in schema onerepl; ereports if there is none.
Oid own_relation(const char* name);

/// Inserts one row and its index entries (plain columns only, no uniqueness check: keys are unique as made).
/// The table's RowExclusiveLock is kept to the end of the transaction, so that a log table is not purged
/// under it. `nulls`: which columns are null; null pointer: none. No trigger fires, so no foreign key is
/// checked.
void insert_row(Oid table, const Datum* values, const bool* nulls = nullptr);

/// How many tables the log has: onerepl.change_0 and so on.
constexpr std::uint32_t log_tables = 4;

/// One tuple of onerepl.change_N.
struct PackRow {
    FullTransactionId xid;
    std::int32_t seq = 0;
    bool last = false;
    std::int32_t flags = 0;
    std::uint64_t commit_lsn = 0;
    std::uint64_t count = 0;
    const char* data = nullptr;  // a varlena
};
void insert_pack(int log_table, const PackRow& row);

}  // namespace onerepl::store
