// A failing record as the administrator reads it (P13).
#pragma once

#include "pg/pg.h"
#include "apply/applier.h"

namespace onerepl::apply {

/// Fills relation, operation, key and row of `failure` from the record. In a transaction; never throws for
/// what the record holds: a value that cannot be shown appears as hexadecimal. `description`: null if B
/// lacks it.
void describe_record(const Record& record, const TableDescription* description, Failure& failure);

/// Adds to the hint of an error that speaks of an unknown name where B looks for names while it writes: the
/// message does not tell, and the name is there for everybody else. Not for told statements, which bring
/// their own search path.
void explain_search_path(pg::ErrorReport& error);

}  // namespace onerepl::apply
