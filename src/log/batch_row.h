// A row of onerepl.batch as the chain of identities needs it.
#pragma once

#include "core/history.h"
#include "pg/spi.h"

namespace onerepl::log {

/// Of a row (first, last, identity_before, random, ...). Throws pg::Error: XX001 if it is damaged.
Batch batch_from(const pg::Row& row);

}  // namespace onerepl::log
