// What onerepl.tracked says of a relation, without SPI.
#pragma once

#include "pg/pg.h"

extern "C" {
#include "utils/rel.h"
}

namespace onerepl::capture {

/// Of the relation, or of a partitioned table that it is a partition of. Whoever changes that invalidates the
/// relation's relcache entry.
struct Tracked {
    bool tracked;
    bool lock_pending;  // P6
};
Tracked how_tracked(Relation relation);

}  // namespace onerepl::capture
