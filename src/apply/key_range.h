// A chunk's range of keys as conditions on this table's rows.
#pragma once

#include "apply/target.h"

#include "pg/guard.h"
#include "pg/spi.h"

extern "C" {
#include "utils/guc.h"
}

namespace onerepl::apply {

struct KeyColumn {
    std::string name;  // quoted
    Oid type;
    KeyOrder order;
};

/// Our columns of the key, in its order. 22P03 if the chunk has another one.
std::vector<KeyColumn> key_columns(const Target& target, const Chunk& chunk);

/// Whether our own column has the order that the remote went by.
bool has_order(const KeyColumn& column);

/// Condition on rows of the table `t`; its parameters $1 and $2 are `bounds_of`.
std::string range_condition(const std::vector<KeyColumn>& columns, const Chunk& chunk);
std::vector<pg::Param> bounds_of(const Target& target, const Chunk& chunk);

/// `work` without sequential scans: the planner does not know how little of the table a chunk is.
template <class Work>
void by_index(Work&& work) {
    const int level = NewGUCNestLevel();
    pg::call([] {
        set_config_option("enable_seqscan", "off", PGC_USERSET, PGC_S_SESSION, GUC_ACTION_SAVE, true, 0,
                          false);
    });
    work();
    pg::call([&] { AtEOXact_GUC(true, level); });
}

}  // namespace onerepl::apply
