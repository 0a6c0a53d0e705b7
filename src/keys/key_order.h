// In which order a refresh walks through the keys of a table, so that remote and central see the same ranges.
#pragma once

#include "pg/pg.h"

#include "core/record.h"

#include <string>

namespace onerepl::keys {

/// Plain: whether all servers order the values of this base type alike.
bool has_natural_order(Oid base_type);
/// Plain: a type whose values are strings under a collation.
bool is_string(Oid base_type);

/// The order that a refresh uses for a key column of this type. `compared`: the central compares keys too, so
/// that the order of the remote's collation will not do.
KeyOrder order_of(Oid type, bool compared);

/// SQL for a column in that order; `column` is quoted.
std::string ordered(const std::string& column, KeyOrder order);
/// SQL for a bound: `text` is an expression of type text, `type` the column's.
std::string ordered_bound(const std::string& text, Oid type, KeyOrder order);

/// "a, b" and "(a, b)" of SQL expressions.
std::string list_of(const std::vector<std::string>& expressions);
std::string row_of(const std::vector<std::string>& expressions);
/// A qualified, quoted name of a table.
std::string name_of(Oid relation);

}  // namespace onerepl::keys
