// Digests of rows for verification: the same on both sides if the rows are, whatever their physical order,
// the order of columns, dropped columns, collations and encodings.
#pragma once

#include <string>
#include <vector>

namespace onerepl::keys {

/// SQL of an aggregate over rows: a sum of hashes of the text of the columns given (expressions of SQL, in
/// A's order), as text. Settings that decide about text must be the fixed ones.
std::string digest_of(const std::vector<std::string>& columns);

/// SQL of a row's digests: a text of `digits_of_column` characters for each of the columns.
std::string digests_of(const std::vector<std::string>& columns);
constexpr int digits_of_column = 16;

}  // namespace onerepl::keys
