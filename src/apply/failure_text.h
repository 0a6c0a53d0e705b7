// A failing record as the administrator reads it (P13).
#pragma once

#include "pg/pg.h"
#include "apply/applier.h"

namespace onerepl::apply {

/// Fills relation, operation, key and row of `failure` from the record. In a transaction; never throws for
/// what the record holds: a value that can not be shown appears as hexadecimal. `description`: null if B
/// lacks it.
void describe_record(const Record& record, const TableDescription* description, Failure& failure);

}  // namespace onerepl::apply
