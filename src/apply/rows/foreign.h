// Partitions that are foreign tables of postgres_fdw: rows on other PostgreSQL servers, each written exactly
// once.
//
// postgres_fdw commits on the other server before B commits, so after a crash between the two the records
// come again while that server has them. Therefore each server keeps, for every link and table, the number
// up to which it has the table's records (its *position*), in the same transaction as the rows. What comes
// again is left out there, and only there.
//
// Plain in all but spelling, as table.h.
#pragma once

#include "apply/rows/table.h"

namespace onerepl::apply {

/// One table's rows on one server, in this B transaction: there they are all in one transaction, too.
struct ForeignPlace {
    ForeignPlace* next;
    Oid server;
    Oid table;      // the topmost one that the partitions belong to
    Oid user;       // owner of the partitions; the user mapping, and so the transaction there, is his
    Oid positions;  // our foreign table of the server's positions
    /// Up to here the server has the table's records. It is locked there to the transaction's end.
    Number held;
    /// The last record that was written there by now, if it is after `held`.
    Number written;
};

/// Whether `relation` has partitions that are foreign tables, at any depth. Quick if asked again.
bool has_foreign_partitions(Oid relation);

/// Whether a foreign table is one of postgres_fdw.
bool is_of_postgres(Oid relation);

/// 42809 if the foreign table is not one of postgres_fdw; 42501 if it is not `owner`'s.
void check_foreign_partition(Relation partition, Oid owner);

/// Where a foreign partition's rows are. The first time in a transaction it asks the server for its position,
/// and makes the foreign table by which that is seen. 55000 if the server has lost records.
ForeignPlace* place_of(ApplyTransaction& xact, Oid partition);

/// Whether the record at hand has reached this server already, so that what it does there is left out.
inline bool has_record(const ApplyTransaction& xact, const ForeignPlace* place) {
    return place->held >= xact.n;
}

/// The same for a partition of any kind.
bool is_left_out(ApplyTransaction& xact, Table* partition);

/// What a statement about all rows of `relation` is to be executed on, so that it reaches those that the
/// record at hand has not reached yet: `relation` itself, or its partitions if some of them are foreign.
List* parts_to_write(ApplyTransaction& xact, Oid relation);

/// Moves the positions of all servers that were written to. When all records are written.
void move_positions(ApplyTransaction& xact);

}  // namespace onerepl::apply
