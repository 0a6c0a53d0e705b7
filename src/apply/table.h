// One table of B, open in the current B transaction: its executor state, its buffered inserts, how rows are
// found in it. Plain C in all but spelling: everything here may ereport and is called inside pg::call;
// nothing has a destructor, all memory belongs to the transaction. So an abort needs no cleaning up: the
// pointers are simply forgotten.
#pragma once

#include "apply/executor_compat.h"
#include "core/types.h"
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
struct Target;
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
    Target* target = nullptr;         // theirs, or the one that was asked about last
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
    bool overwrite;
    const char* branch_column;  // of the batch, then; in its memory
    Number n;
};

/// What one B transaction has open. Reset by `begin_batch`, or by forgetting it after an abort.
struct Batch {
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
    Number n = 0;            // the record at hand
    bool overwrite = false;  // how it was resolved
    /// With `overwrite`: rows with another value in this column are other remotes', and stay. Null: all may
    /// go.
    const char* branch_column = nullptr;
    /// The table is being filled by a refresh: `overwrite`, and an update that can not make the missing row
    /// whole is left to the copy.
    bool tolerant = false;
    /// The record is a chunk of a refresh: its rows do not clash with each other, and with `overwrite` a row
    /// that is the same already is left alone.
    bool copying = false;
    bool told_ahead = false;  // that a foreign server has what is skipped here
    bool uncounted = false;   // something was written under the current command id
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

// ---------------------------------------------------------------- the batch (table.cpp)

/// In a fresh transaction of the worker's own user: nothing is open.
void begin_batch(Batch& batch, int link);
/// After an abort of the transaction: nothing is open any more.
void forget_batch(Batch& batch);
/// After the rollback of a subtransaction in which everything open was opened.
void forget_tables(Batch& batch);
/// 42809 if it is neither a table nor a partitioned table.
void check_is_table(Relation relation);
/// Opens `relation` for writing. 42809 if it is no table and no foreign partition.
Table* open_table(Batch& batch, Oid relation);
/// Takes the rights of the table's owner, for all that may run his code (P19); `pg::return_from` gives them
/// back.
pg::Rights become_owner(const Table* table);
/// Writes what is buffered and closes every table.
void close_tables(Batch& batch);
/// Makes what was written visible to the following commands.
void count_command(Batch& batch);

// ---------------------------------------------------------------- writing (write.cpp)

/// Inserts the row in table->fresh, maybe later (`flush`). With batch.overwrite, rows that are in its way are
/// deleted.
void insert_row(Batch& batch, Table* table);
/// Replaces the row in table->found by table->fresh. False: somebody else changed it meanwhile, find it
/// again.
bool update_row(Batch& batch, Table* table);
enum class Deletion : std::uint8_t {
    done,
    changed,  // somebody else changed the row meanwhile, find it again
    kept,     // a BEFORE trigger wants it to stay
};
/// Deletes the row in table->found.
Deletion delete_row(Batch& batch, Table* table);
/// P22, 27000: a trigger keeps a row, or brings it back, that has to go before the incoming one can be
/// written.
[[noreturn]] void report_kept(Oid table);
/// Writes the buffered rows and then the pending updates of one table, or of all.
void flush(Batch& batch, Table* table);
void flush_all(Batch& batch);
/// The smallest number that is still buffered or pending; 0: none.
Number oldest_buffered(const Batch& batch);
/// Value of column `attribute` (from 1) for rows that do not bring one.
Datum default_of(Table* table, AttrNumber attribute, bool* is_null);

// ---------------------------------------------------------------- pending updates (pending.cpp)

/// Whether updates of `target` that do not change the key may wait: then nothing tells in which order they
/// are written.
bool may_wait(Batch& batch, Table* table, Target& target);
/// Adds a copy of an update. Whatever touches the table next flushes it, but for inserts and further updates
/// like it.
void add_pending(Batch& batch, Table* table, const PendingUpdate& update);
/// Writes them; for `flush`.
void write_pending(Batch& batch, Table* table);

// ---------------------------------------------------------------- finding (search.cpp)

/// The index by which rows with these `columns` are found; null: none.
Relation index_for(Table* table, int count, const AttrNumber* columns);

/// Finds the row whose `columns` equal `values` (nulls equal nulls) and leaves it in table->found.
/// `by_image`: columns make up the whole row; among equal rows one with the same bytes is preferred. What is
/// buffered is flushed before.
bool find_row(Batch& batch, Table* table, int count, const AttrNumber* columns, const Datum* values,
              const bool* nulls, bool by_image);
/// 0: written before this transaction; else its command's number and one.
std::uint64_t age_of(TupleTableSlot* slot);
/// Closes the search's index scan.
void end_search(Table* table);

// ---------------------------------------------------------------- overwriting (conflict.cpp)

/// Deletes all rows but `self` (may be null) that clash with the row in `slot` in any unique index or
/// exclusion constraint that is checked at once; or only in `only_index`, whatever it is. 23505 if one is
/// another remote's (batch.branch_column). Changes table->best, not table->found.
void remove_conflicts(Batch& batch, Table* table, TupleTableSlot* slot, const ItemPointerData* self,
                      Oid only_index);

// ---------------------------------------------------------------- deferred constraints (deferred.cpp)

void defer_check(Batch& batch, Table* table, List* indexes, ItemPointer tid, Number n);
/// Notes every deferrable index of the table.
void defer_all_checks(Batch& batch, Table* table, ItemPointer tid, Number n);
/// Makes the check number `i`; a violation is an error. Everything must be flushed.
void run_check(Batch& batch, std::size_t i);
/// Flushes, makes all checks and forgets them. An error leaves batch.n at the record that violates.
void run_checks(Batch& batch);

// ---------------------------------------------------------------- partitions (partition.cpp)

/// The partition of `root` that takes the row in `slot` (root's layout), and with has_foreign has it in
/// `fresh`. 23514 if there is none.
Table* route_row(Batch& batch, Table* root, TupleTableSlot* slot);
/// Whether the columns alone say which partition takes a row. False if its partitions are partitioned
/// themselves, unless it has foreign ones.
bool is_routed_by(Batch& batch, Table* root, int count, const AttrNumber* columns);
/// Puts a row of the root into the partition's `fresh` slot, in its layout.
void to_partition(Table* partition, TupleTableSlot* slot);
/// The root's layout of the row in partition->found, in root's `found`.
void to_root(Table* partition, Table* root);
/// The columns of `root` that decide which partition takes a row; for tables with has_foreign.
const Bitmapset* routing_columns(Batch& batch, Table* root);
/// Finds a row of a partitioned table as `find_row`; gives the partition whose `found` it is, or null.
/// Partitions on servers that have the record already are not looked at.
Table* find_partitioned(Batch& batch, Table* root, int count, const AttrNumber* columns, const Datum* values,
                        const bool* nulls, bool by_image, Table* likely);
/// The same in one partition.
bool find_in_partition(Batch& batch, Table* partition, int count, const AttrNumber* columns,
                       const Datum* values, const bool* nulls, bool by_image);
/// Whether the row that was not found may be on a server that has the record already.
bool may_be_left_out(Batch& batch, Table* root, int count, const AttrNumber* columns, Table* likely);

}  // namespace onerepl::apply
