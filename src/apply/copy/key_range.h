// A chunk's range of keys as conditions on this table's rows.
#pragma once

#include "apply/rows/relation_map.h"

#include "pg/error_boundary.h"
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

/// Text that A sent, in our encoding.
std::string text_from_remote(const RelationMap& target, ByteView bytes);

/// Our columns of the remote's key, in its order. 22P03 if the chunk has another one.
std::vector<KeyColumn> key_columns(const RelationMap& target, const Chunk& chunk);

/// Whether our own column has the order that the remote went by.
bool has_order(const KeyColumn& column);

/// Condition on rows of the table `t`, this remote's only; its parameters $1 and $2 are `bounds_of`.
std::string range_condition(const RelationMap& target, const std::vector<KeyColumn>& columns,
                            const Chunk& chunk);
std::vector<pg::Param> bounds_of(const RelationMap& target, const Chunk& chunk);

/// Keys that are given as parameters from number `first` on, an array of texts for each column (k1, k2 ...,
/// and those that `more` names): the FROM item `alias`, and the condition that it is the key of a row of the
/// table `t`. search_path must be pg_catalog.
std::string listed_keys(const std::vector<KeyColumn>& columns, int first,
                        const std::vector<std::string>& more = {}, const std::string& alias = "k");
std::string is_listed(const std::vector<KeyColumn>& columns);
/// The condition that rows of two such items, `t` and `k`, have the same key.
std::string are_same_listed(const std::vector<KeyColumn>& columns);

/// A key column's value as text of our type.
std::string key_text(const RelationMap& target, const KeyColumn& column, int place, const Value& value);

/// Whether the key of a record's `row` is after `from` and not after `to` (texts of arrays; "{}": no
/// bound), in the order that a repair goes by. With SPI connected.
bool is_in_range(const RelationMap& target, const std::vector<Value>& row, const std::string& from,
                 const std::string& to);

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
