// SQL text that is to be one expression, and is going to be a part of a longer text.
#pragma once

#include "pg/pg.h"

extern "C" {
#include "nodes/pg_list.h"
}

namespace onerepl::pg {

/// What the text is as the parser gives it; null: it is an expression and more than that (another clause, a
/// second value, a name), or several. Between "(" and "\n)" (it may end in a comment) it means just this.
/// 42601 if it is no SQL. Plain.
Node* parse_expression(const char* text);

}  // namespace onerepl::pg
