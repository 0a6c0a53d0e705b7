// A table of A as its description tells, matched to the table of B that its records are written to.
#pragma once

#include "apply/rows/table.h"
#include "core/record.h"

namespace onerepl::apply {

/// How the values of one described column become B's.
struct ColumnPlan {
    const char* name = nullptr;
    AttrNumber attribute = 0;  // on B
    /// Not written from the record: B computes it, or A does and B has no such column.
    bool ignored = false;
    /// The binary value is of another type than B's column: it goes through its text form.
    bool by_text = false;
    bool is_domain = false;
    std::int32_t typmod = -1;  // B's
    FmgrInfo receive;          // of B's type; by_text: of the described type
    Oid receive_parameter = InvalidOid;
    std::int32_t receive_typmod = -1;
    FmgrInfo output;  // by_text: of the described type
    FmgrInfo input;   // of B's type
    Oid input_parameter = InvalidOid;
    /// Binary values cannot be read: B lacks the described type, or it has no binary form there.
    bool unknown_type = false;
    const char* described_type = nullptr;
};

struct RelationMap {
    TableDescription description;                  // names in B's encoding; the branch is its last column
    std::vector<std::size_t> key;                  // of the description
    int encoding = -1;                             // A's
    bool converts = false;                         // A's encoding is not B's
    TransactionId version = InvalidTransactionId;  // of the row that it was read from
    std::uint64_t checked_in = 0;                  // the transaction in which that was still so

    /// B's table (onerepl.target): of the description's name if nothing else is said.
    std::string schema;
    std::string name;
    /// The administrator has said so (onerepl_set_target).
    bool has_place = false;
    /// A table for several remotes: every row has this in the description's last column. In A's encoding.
    bool has_branch = false;
    std::string branch;

    /// The table of that name that the link may write (reach.h); no other is matched.
    Oid reached = InvalidOid;

    // Found by map_columns; forgotten when the catalog changes.
    bool matched = false;
    bool holds = false;  // what is being matched: the catalog has not changed since it was begun
    MemoryContext memory = nullptr;
    Oid relation = InvalidOid;
    int columns_of_table = 0;  // natts of B's table
    int column_count = 0;
    ColumnPlan* columns = nullptr;
    /// Key columns: their place in the description, and on B. Without a key: every column that is compared.
    int key_count = 0;
    int* key_places = nullptr;
    AttrNumber* key_attributes = nullptr;
    /// B's columns that no record brings and that are not generated.
    int missing_count = 0;
    AttrNumber* missing = nullptr;

    /// Open in the transaction of this generation.
    Table* table = nullptr;
    std::uint64_t generation = 0;

    bool has_key() const { return !key.empty(); }
    /// Key columns that the remote knows of: the branch is the last one of all.
    int remote_key_count() const { return key_count - (has_branch ? 1 : 0); }
    /// Columns that the remote knows of.
    int remote_column_count() const { return column_count - (has_branch ? 1 : 0); }
    /// Where in a record's old key the k-th key column stands.
    int old_place(int k) const { return has_key() ? k : key_places[k]; }

    ~RelationMap() {
        if (memory != nullptr) MemoryContextDelete(memory);
    }
};

}  // namespace onerepl::apply
