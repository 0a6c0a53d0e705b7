// One table of B, open in the current B transaction: its executor state, its buffered inserts, how rows are
// found in it. Plain C in all but spelling: everything here may ereport and is called inside pg::call;
// nothing has a destructor, all memory belongs to the transaction. So an abort needs no cleaning up: the
// pointers are simply forgotten.
#pragma once

#include "core/types.h"
#include "pg/executor_compat.h"
#include "pg/rights.h"

extern "C" {
#include "access/skey.h"
#include "access/table.h"
#include "access/tupconvert.h"
#include "executor/execPartition.h"
#include "executor/nodeModifyTable.h"
#include "utils/snapmgr.h"
#include "utils/hsearch.h"
}

namespace onerepl::apply {

struct Table;
struct RelationMap;
struct ForeignPlace;       // foreign.h
struct ForeignStatements;  // foreign_row.cpp

/// How rows are found by equality of some columns.
struct RowSearch {
    MemoryContext memory = nullptr;
    int count = 0;                  // columns searched by
    AttrNumber* columns = nullptr;  // of this table, in the caller's order
    FmgrInfo** equal = nullptr;     // per column; null: the type has no equality, compare images
    Relation index = nullptr;       // null: sequential scan only
    /// The index is unique over exactly these columns and checked at once: what it finds is the row.
    bool index_decides = false;
    int key_count = 0;     // columns of the index that are searched by
    int* order = nullptr;  // the index's i-th column is the caller's order[i]-th
    ScanKeyData* keys = nullptr;
    IndexScanDesc scan = nullptr;
};

/// An update by the key, which it does not change. By number of the table's column - 1. In one piece of
/// memory, but for values by reference.
struct PendingUpdate {
    Number n;
    Datum* values;
    bool* nulls;
    bool* given;  // the record brings it
    Datum* key;
    bool* key_nulls;
};

/// Updates that wait to be written in the order of their keys: so the pages of index and table are each
/// visited once, and not once for each row.
struct PendingUpdates {
    MemoryContext memory = nullptr;   // of `all` and what it points to
    MemoryContext writing = nullptr;  // not null: they are being written; reset with every row
    TupleTableSlot* fresh = nullptr;  // for them: the table's own may hold the row at hand
    RelationMap* target = nullptr;    // theirs, or the one that was asked about last
    bool may_wait = false;            // those of `target`
    PendingUpdate* all = nullptr;
    int count = 0;
    int capacity = 0;
    Size bytes = 0;
    Number oldest = 0;
};

/// A possible violation of a deferrable constraint, to be looked at when the transaction ends.
struct DeferredCheck {
    Oid table;
    Oid index;
    ItemPointerData tid;
    bool incoming_wins;
    const char* branch_column;  // of the transaction, then; in its memory
    Number n;
};

/// What one B transaction has open. Reset by `begin_apply`, or by forgetting it after an abort.
struct ApplyTransaction {
    int link = 0;                           // id in onerepl.link
    Oid user = InvalidOid;                  // the worker's own
    ForeignPlace* places = nullptr;         // servers that partitions are on, as far as asked
    MemoryContext memory = nullptr;         // of the transaction
    MemoryContext tables_memory = nullptr;  // child: all that is open
    MemoryContext record_memory = nullptr;  // child: reset with every record
    HTAB* tables = nullptr;                 // Oid -> Table*
    Table* first = nullptr;                 // list of all
    int open_count = 0;
    /// Changes when `tables` is emptied: pointers to Table kept elsewhere are valid for one generation only.
    std::uint64_t generation = 0;
    DeferredCheck* checks = nullptr;
    std::size_t check_count = 0;
    std::size_t check_capacity = 0;
    Size buffered_bytes = 0;
    Number n = 0;                // the record at hand
    bool incoming_wins = false;  // how it was resolved
    /// With `incoming_wins`: rows with another value in this column are other remotes', and stay. Null: all may
    /// go.
    const char* branch_column = nullptr;
    /// The table is being filled by a refresh: `incoming_wins`, and an update that cannot make the missing row
    /// whole is left to the copy.
    bool missing_is_left_to_copy = false;
    /// The record is a chunk of a refresh: its rows do not clash with each other, and with `incoming_wins` a row
    /// that is the same already is left alone.
    bool copying = false;
    bool reported_ahead = false;  // that a foreign server has what is skipped here
    bool uncounted = false;       // something was written under the current command id
};

struct Table {
    Table* next = nullptr;
    Relation relation = nullptr;
    Oid oid = InvalidOid;
    Oid owner = InvalidOid;
    int restriction = 0;  // security context of its owner's code
    MemoryContext memory = nullptr;
    EState* estate = nullptr;
    ResultRelInfo* result = nullptr;  // indexes are open
    EPQState recheck;                 // for triggers
    /// It has row triggers that fire under session_replication_role = replica.
    bool has_triggers = false;
    /// Inserts are collected: there are no such triggers, or just our own that captures changes for a further
    /// central.
    bool buffers_inserts = false;
    /// Its expressions, constraints, types or triggers may run code of its owner. (Defaults see to it
    /// themselves.)
    bool runs_user_code = false;
    bool is_partitioned = false;
    bool has_deferrable = false;
    bool identity_checked = false;
    SnapshotData dirty;
    TupleTableSlot* found = nullptr;  // the row found last
    TupleTableSlot* best = nullptr;   // a second one while searching
    TupleTableSlot* fresh = nullptr;  // the row to be written
    RowSearch search;
    ItemPointerData latest;  // the version that the last update made
    int times_again = 0;     // how often, in a row, the row that was found is that one

    ExprState** defaults = nullptr;  // by column - 1, as far as prepared
    bool* default_prepared = nullptr;

    TupleTableSlot** buffered = nullptr;
    Number* buffered_numbers = nullptr;
    int buffered_count = 0;
    int buffered_slots = 0;  // made so far
    Size buffered_bytes = 0;
    PendingUpdates updates;

    // A partitioned table.
    ModifyTableState* route_state = nullptr;
    PartitionTupleRouting* route = nullptr;
    /// Whether partitions are partitioned themselves, once it is known.
    bool depth_known = false;
    bool is_deep = false;
    // A partition, reached from `root`.
    Oid root = InvalidOid;
    TupleConversionMap* from_root = nullptr;  // null: same layout
    TupleConversionMap* to_root = nullptr;

    // A partitioned table with partitions on other servers: all its partitions, and the columns that decide
    // between them.
    bool has_foreign = false;
    Table** leaves = nullptr;
    int leaf_count = 0;
    Bitmapset* routing_columns = nullptr;
    // Such a partition.
    bool is_foreign = false;
    bool is_unwritable = false;     // its wrapper is not postgres_fdw
    ForeignPlace* place = nullptr;  // once it was asked for
    ForeignStatements* statements = nullptr;
};

}  // namespace onerepl::apply
