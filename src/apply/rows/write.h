// Rows into a table: at once, or buffered until something looks at it. Plain (table.h).
#pragma once

#include "apply/rows/table.h"

namespace onerepl::apply {

/// Inserts the row in table->fresh, maybe later (`flush`). With xact.incoming_wins, rows that are in its way are
/// deleted.
void insert_row(ApplyTransaction& xact, Table* table);
/// Replaces the row in table->found by table->fresh. False: somebody else changed it meanwhile, find it
/// again.
bool update_row(ApplyTransaction& xact, Table* table);
enum class Deletion : std::uint8_t {
    done,
    changed,  // somebody else changed the row meanwhile, find it again
    kept,     // a BEFORE trigger wants it to stay
};
/// Deletes the row in table->found.
Deletion delete_row(ApplyTransaction& xact, Table* table);
/// P22, 27000: a trigger keeps a row, or brings it back, that has to go before the incoming one can be
/// written.
[[noreturn]] void report_kept(Oid table);
/// Writes the buffered rows and then the pending updates of one table, or of all.
void flush(ApplyTransaction& xact, Table* table);
void flush_all(ApplyTransaction& xact);
/// The smallest number that is still buffered or pending; 0: none.
Number oldest_buffered(const ApplyTransaction& xact);
/// Value of column `attribute` (from 1) for rows that do not bring one.
Datum default_of(Table* table, AttrNumber attribute, bool* is_null);

}  // namespace onerepl::apply
