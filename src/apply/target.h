// A table of A as its description tells, matched to the table of B that its records are written to.
#pragma once

#include "apply/table.h"
#include "core/record.h"

#include <memory>
#include <unordered_map>

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
    /// Binary values can not be read: B lacks the described type, or it has no binary form there.
    bool unknown_type = false;
    const char* described_type = nullptr;
};

struct Target {
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

    // Found by match_target; forgotten when the catalog changes.
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

    /// Open in the batch of this generation.
    Table* table = nullptr;
    std::uint64_t generation = 0;

    bool has_key() const { return !key.empty(); }
    /// Key columns that the remote knows of: the branch is the last one of all.
    int remote_key_count() const { return key_count - (has_branch ? 1 : 0); }
    /// Columns that the remote knows of.
    int remote_column_count() const { return column_count - (has_branch ? 1 : 0); }
    /// Where in a record's old key the k-th key column stands.
    int old_place(int k) const { return has_key() ? k : key_places[k]; }

    ~Target() {
        if (memory != nullptr) MemoryContextDelete(memory);
    }
};

/// Text of the remote in B's encoding. Throws pg::Error.
std::string to_server(ByteView text, int encoding);

/// Sets where the administrator wants the rows of the described table: schema, name and branch. With SPI
/// connected.
void find_place(int link, Target& target);

/// Plain: finds B's table and plans the columns. 42P01: B lacks the table; 42703: it lacks a column; 42804: a
/// column is generated on one side only in a way that can not work; 40001: the name means another table than
/// `reach` has found. Locks the table for writing.
void match_target(Target& target);

/// Plain: the table of the target's name, whether the link may write it or not; InvalidOid when there is
/// none.
Oid find_relation(const Target& target, LOCKMODE lock);

/// Adds the branch to the row and the old key of a record.
void add_branch(const Target& target, Record& record);

/// Which rows of the table `t` are this remote's, in SQL; empty: all are.
std::string branch_condition(const Target& target);

/// Plain: the value as B's column takes it, in the current memory context.
Datum convert_value(const Target& target, const ColumnPlan& plan, const Value& value, bool* is_null);

/// The descriptions of one link, by id.
class Targets {
  public:
    explicit Targets(int link);
    ~Targets();
    Targets(const Targets&) = delete;
    Targets& operator=(const Targets&) = delete;

    /// Null: onerepl.remote_description lacks it. In a transaction with SPI connected.
    Target* find(std::uint64_t id);
    /// Stores the description and forgets what was known under its id. 22P03 if it can not be read.
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
        std::unique_ptr<Target> changed;  // null: it is the row that is known
    };
    Found read(std::uint64_t id, const Target* known) const;

    int link_;
    /// What is in it is whole: `invalidate` may be called while anything is read, and goes through all.
    std::unordered_map<std::uint64_t, std::unique_ptr<Target>> targets_;
    Target* last_ = nullptr;
    std::uint64_t transaction_ = 0;
};

}  // namespace onerepl::apply
