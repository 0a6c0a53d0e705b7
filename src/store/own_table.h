// Reading onerepl's own tables without SPI, permissions or search_path. Plain C-like code; everything may
// ereport.
#pragma once

#include "pg/pg.h"

extern "C" {
#include "access/genam.h"
#include "access/skey.h"
#include "utils/rel.h"
}

#include <cstdint>

namespace onerepl::store {

/// An ordered scan of one of onerepl's tables. It sees what is committed at this moment and what this
/// transaction has made, this command included. That is exact where rows are only inserted, and no MVCC
/// snapshot, so that it adds no serialization conflicts to the application's transaction, whatever its
/// isolation level.
class OwnScan {
  public:
    /// `keys` name columns of the table, which must be the index's first ones.
    OwnScan(const char* table, const char* index, ScanKeyData* keys, int key_count);
    /// The next row, from the largest to the smallest in the index's order; null at the end.
    HeapTuple previous();
    Datum get(HeapTuple row, const char* column, bool* is_null) const;
    /// ereports if it is null.
    Datum get(HeapTuple row, const char* column) const;
    AttrNumber column(const char* name) const;
    /// To be called before the transaction goes on; an error's rollback does it too.
    void close();

  private:
    Relation table_;
    Relation index_;
    SysScanDesc scan_;
};

/// A key for OwnScan: column `number`, compared by the btree strategy with the function given.
ScanKeyData scan_key(AttrNumber number, StrategyNumber strategy, RegProcedure function, Datum value);

}  // namespace onerepl::store
