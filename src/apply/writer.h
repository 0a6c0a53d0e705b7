// Writes records one after the other within B transactions: what the strategies of applier.cpp are made of.
#pragma once

#include "apply/applier.h"
#include "apply/copy/refresh_windows.h"
#include "apply/rows/relation_map.h"
#include "apply/told_statement.h"
#include "apply/tables/partition_of_remote.h"
#include "apply/tables/relation_maps.h"

#include <map>

namespace onerepl::apply {

/// A record refers to a description that B lacks (P17).
struct LackingDescription {
    std::uint64_t id;
};

class Writer {
  public:
    explicit Writer(int link) : link_(link), maps_(link), windows_(link) {}

    /// In a fresh transaction with SPI connected. `memory_holds` and `untold`: see Options.
    void begin(bool memory_holds, const std::vector<std::uint64_t>& untold);
    /// After a rollback of the transaction.
    void abandon();

    /// Writes one record, maybe later. Throws pg::Error or LackingDescription. One that is resolved by `skip`
    /// is left out, whatever is wrong with it (P13): then transient errors only.
    void write(const IncomingRecord& incoming, const Resolutions* resolutions);
    /// Everything that was written so far reaches its tables and is checked against deferrable constraints.
    void finish();
    /// Like finish, but keeps the deferred checks for later, and closes all tables.
    void settle();
    /// Rows that are still kept back begin with this number; 0: none are.
    Number oldest_pending() const;
    /// The number that the latest error belongs to, as far as known.
    Number current() const { return xact_.n; }

    /// For subtransactions: begins (after settle) and, if it was rolled back, forgets what it opened.
    std::size_t mark() const { return xact_.check_count; }
    void roll_back_to(std::size_t mark);
    /// Makes the deferred checks from number `i` on; the caller handles errors and goes on with the next.
    std::size_t check_count() const { return xact_.check_count; }
    void run_check(std::size_t i);
    void forget_checks() { xact_.check_count = 0; }

    RelationMaps& maps() { return maps_; }

  private:
    struct PendingTruncate {
        Oid relation;
        bool restart_identity;
        Number n;
        std::optional<PartitionOfRemote> partition;
        std::string branch;  // the condition of its rows; empty: all are
    };
    RelationMap& find_relation_map(std::uint64_t id);
    void match(RelationMap& target);
    void guard(RelationMap& target);
    void write_row_record();
    bool is_left_to_copy(const RelationMap& target) const;
    void write_chunk_record();
    void leave_out(const IncomingRecord& incoming);
    void skip_chunk();
    void report_if_ahead();
    bool may_be_ahead(Oid relation);
    [[noreturn]] void lack(std::uint64_t description) const;
    RelationMap& described(std::uint64_t description);
    void verify();
    void describe();
    void write_statement();
    void note_sequences();
    void forget_sequences();
    void set_sequences();
    void add_truncate();
    void run_truncates();
    void truncate_partition(const PendingTruncate& truncate, std::vector<Oid>& relations);

    int link_;
    RelationMaps maps_;
    ApplyTransaction xact_;
    Record record_;
    Record row_of_chunk_;
    RefreshWindows windows_;
    std::vector<PendingTruncate> truncates_;
    struct SequenceAt {
        std::int64_t last_value;
        bool is_called;
    };
    /// By schema and name; set when the B transaction ends, so that each is set once.
    std::map<std::pair<std::string, std::string>, SequenceAt> sequences_;
    bool sequences_were_reset_ = false;
    bool sequences_are_complete_ = false;
    bool schema_was_renamed_ = false;
    ToldStatement told_;
    std::vector<std::uint64_t> untold_;
};

}  // namespace onerepl::apply
