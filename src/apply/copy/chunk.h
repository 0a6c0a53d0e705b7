// Writing a chunk of a refresh (Part III).
#pragma once

#include "apply/rows/target.h"

namespace onerepl::apply {

/// Writes the rows of `record`, a chunk, to its matched target, and removes what the remote does not have.
/// `row` is scratch memory. With SPI connected; throws pg::Error.
void write_chunk(Batch& batch, Target& target, const Record& record, Record& row);

}  // namespace onerepl::apply
