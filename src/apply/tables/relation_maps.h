// The descriptions of one link's remote, cached, and where the administrator wants their rows.
#pragma once

#include "apply/rows/relation_map.h"

#include <memory>
#include <string>
#include <unordered_map>

namespace onerepl::apply {

/// Text of the remote in B's encoding. Throws pg::Error.
std::string to_server(ByteView text, int encoding);

/// Sets where the administrator wants the rows of the described table: schema, name and branch. With SPI
/// connected.
void find_place(int link, RelationMap& target);

/// Adds the branch to the row and the old key of a record.
void add_branch(const RelationMap& target, Record& record);

/// Which rows of the table `t` are this remote's, in SQL; empty: all are.
std::string branch_condition(const RelationMap& target);

/// The descriptions of one link, by id.
class RelationMaps {
  public:
    explicit RelationMaps(int link);
    ~RelationMaps();
    RelationMaps(const RelationMaps&) = delete;
    RelationMaps& operator=(const RelationMaps&) = delete;

    /// Null: onerepl.remote_description lacks it. In a transaction with SPI connected.
    RelationMap* find(std::uint64_t id);
    /// Stores the description and forgets what was known under its id. 22P03 if it cannot be read.
    TableDescription store(ByteView encoded);
    void forget();
    /// A transaction begins: another process may have started the link anew, with other descriptions under
    /// the same ids.
    void begin_transaction() { transaction_++; }

    /// Catalog changes: relation InvalidOid: anything may have changed.
    void invalidate(Oid relation);

  private:
    struct Found {
        bool there = false;
        std::unique_ptr<RelationMap> changed;  // null: it is the row that is known
    };
    Found read(std::uint64_t id, const RelationMap* known) const;

    int link_;
    /// What is in it is whole: `invalidate` may be called while anything is read, and goes through all.
    std::unordered_map<std::uint64_t, std::unique_ptr<RelationMap>> maps_;
    RelationMap* last_ = nullptr;
    std::uint64_t transaction_ = 0;
};

}  // namespace onerepl::apply
