// What this backend knows about each table that it captures. A cache: the catalogue and onerepl.description
// are the truth.
#pragma once

#include "pg/pg.h"

#include "capture/render.h"

extern "C" {
#include "access/tupdesc.h"
#include "utils/rel.h"
}

#include <cstdint>

namespace onerepl::capture {

/// A set of columns in plain memory: attribute numbers, ascending or in key order.
struct ColumnSet {
    int count;
    AttrNumber* numbers;
};

/// How a column gets into an image that is formed anew.
struct ColumnWay {
    bool dropped;
    bool rendered;  // as text
    TextForm text;
};

/// Plain data, never moved or freed; its pointers are to `memory`, which is renewed when the table's layout
/// changes.
struct CapturedTable {
    Oid relation;  // hash key
    bool valid;    // false: to be checked against the catalogue before use
    /// The description is not committed yet: it goes when a (sub)transaction is rolled back.
    bool uncommitted;
    /// The table has got a new file since its last record (log/pack.h).
    bool rewritten;
    bool tracked;       // itself, or as a partition; else no trigger captures it
    bool lock_pending;  // P6
    bool whole_rows;  // of each change, as it was and as it is: a link has a row filter (log/link_filters.h)
    Oid root;         // the tracked table that it is a partition of; InvalidOid: none
    Oid file;         // the file that the last record's row versions are in
    std::uint64_t description;
    MemoryContext memory;
    TupleDesc images;  // of the stored images
    ColumnWay* ways;   // one for each attribute
    bool renders;      // any column is rendered
    ColumnSet key;     // empty: no key, old rows are stored whole
    /// Key columns and those of other unique indexes; equal to `key` (count) if there are no others.
    ColumnSet unique;
    char* layout;  // encoded
    std::size_t layout_size;
    /// Hashes (syscache TYPEOID) of the types whose change would change the layout.
    int type_count;
    std::uint32_t* types;
};

/// The entry for a relation, as it is now. If its description is new or has changed, a row of
/// onerepl.description is made and recorded in this transaction. The relation must be locked. May ereport.
CapturedTable& captured_table(Relation relation);

/// At a rollback of a (sub)transaction, or PREPARE: descriptions made in it are not there.
void forget_uncommitted_tables();
/// At COMMIT: they are.
void keep_uncommitted_tables();

}  // namespace onerepl::capture
