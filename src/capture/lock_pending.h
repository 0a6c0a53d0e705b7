// The lock rule of the state table (P6) for tables that ask for it: an object with a record that is not
// confirmed by all links may be changed only while no record of another object follows.
//
// The writers of all such tables of a database take turns, so their records have one order: that of
// onerepl.pending, where each record's object is noted. An object whose record is not the last one there, and
// not confirmed, is locked. Everything may ereport.
#pragma once

#include "capture/captured_table.h"
#include "capture/row_image.h"

namespace onerepl::capture {

/// Waits until this transaction is the only writer of such tables, to its end.
void take_turn();

/// Takes the turn; 55006 if the row may not be changed now; notes the record.
void check_lock_rule(const CapturedTable& table, const RowVersions& row);
/// The same for TRUNCATE, which changes all objects of the table.
void check_lock_rule_for_truncate(const CapturedTable& table, Relation relation);

}  // namespace onerepl::capture
