// Writing a chunk of a refresh (Part III).
#pragma once

#include "apply/rows/relation_map.h"

namespace onerepl::apply {

/// Writes the rows of `record`, a chunk, to its matched target, and removes what the remote does not have.
/// `row` is scratch memory. With SPI connected; throws pg::Error.
void write_chunk(ApplyTransaction& xact, RelationMap& target, const Record& record, Record& row);

}  // namespace onerepl::apply
