// Images of rows for the log: the stored bytes as they are where possible, else formed anew. Plain C-like
// code; results are in CurrentMemoryContext (the trigger's, reset after each row) or in the tuple. Everything
// may ereport.
#pragma once

#include "capture/captured_table.h"
#include "log/pack.h"

extern "C" {
#include "access/htup_details.h"
}

namespace onerepl::capture {

/// A row change's tuples. Null: there is none.
struct RowVersions {
    Relation relation;
    HeapTuple old_row;
    HeapTuple new_row;
};

/// The old image that the change needs (P6): nothing for an update of a keyed table that leaves the key and
/// all unique columns alone.
void set_old_image(const CapturedTable& table, const RowVersions& row, log::RowChange& change);
/// The new image, and which columns kept their TOAST value.
void set_new_image(const CapturedTable& table, const RowVersions& row, log::RowChange& change);

/// Bytes of the values out of line that the change would have to carry, uncompressed; of those that are
/// rendered as text, what that may come to.
std::uint64_t large_values_size(const CapturedTable& table, const RowVersions& row);
/// Instead of the images: the key, if there is one. Sets `too_large`.
void set_key_images(const CapturedTable& table, const RowVersions& row, log::RowChange& change);

/// What names the row: its key columns, or all of it in a table without a key.
log::StoredRow identity_image(const CapturedTable& table, Relation relation, HeapTuple tuple);

}  // namespace onerepl::capture
