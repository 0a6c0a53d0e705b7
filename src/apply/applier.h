// Writes records of A into B's tables: whole transactions of A, in order, with the position moved in the same
// commit (P5, P13). One Applier per link, kept for the worker's life because of what it caches. For
// background workers only: it begins and ends transactions. The worker has set session_replication_role =
// replica.
#pragma once

#include "core/ranges.h"
#include "core/record.h"
#include "pg/error.h"

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace onerepl::apply {

struct IncomingRecord {
    Number n = 0;
    bool last_of_transaction = false;
    ByteView record;  // core/record.h
};

/// Where the records come from: a body in memory or onerepl.waiting. In order, without a gap, whole
/// transactions only. Both functions are called inside a transaction of the Applier with SPI connected;
/// transactions end (also by abort) between calls, so a source keeps no cursor or snapshot. What they throw
/// passes through Applier::apply.
class RecordSource {
  public:
    virtual ~RecordSource() = default;
    /// False at the end. The views stay valid until the next call of either function.
    virtual bool next(IncomingRecord& record) = 0;
    /// The next record is the one that begins at number `n`: one that was given before, and never before
    /// `written`.
    virtual void rewind(Number n) = 0;
};

/// What the administrator decided about a record in F (P13); `retry` is the absence of a resolution.
enum class Resolution : std::uint8_t {
    /// The incoming row wins: it replaces rows that hold its key or a value of a unique index or exclusion
    /// constraint; an
    /// update of a missing row inserts it if the record has the whole row; a delete of a missing row does
    /// nothing.
    overwrite,
    /// The record is left out and counts as written.
    skip,
};
struct Resolutions {
    std::map<Number, Resolution> records;
    /// Transactions that only their COMMIT has refused, and that are left out as a whole.
    RangeSet skipped_transactions;

    bool empty() const { return records.empty() && skipped_transactions.empty(); }
    std::optional<Resolution> of(Number n) const {
        if (skipped_transactions.contains(n)) return Resolution::skip;
        const auto record = records.find(n);
        return record == records.end() ? std::nullopt : std::optional(record->second);
    }
};

/// A record in F, as onerepl.failure shows it.
struct Failure {
    Number n = 0;
    Number transaction_first = 0;
    Number transaction_last = 0;
    std::string relation;   // as A calls it, quoted: schema.table
    std::string operation;  // "insert", "update", "delete", "truncate", "describe" ...; "unknown" if the
                            // record cannot be read
    std::string key;        // "(id)=(17)"; empty if the record has none
    std::string row;        // "(a, b)=(1, two)", cut after 4 kB
    pg::ErrorReport error;
    /// Only COMMIT has shown it: the record is the transaction's last, whichever is to blame.
    bool at_commit = false;
    std::int64_t failed_at = 0;  // TimestampTz
};

struct Outcome {
    /// The largest number that is written and committed: the position after this call.
    Number written = 0;
    /// The first failing number, if a transaction failed; everything before that transaction is committed.
    std::optional<Number> failed_at;
    /// All failing records of that transaction, in order; at most Options::max_failures.
    std::vector<Failure> failures;
    /// The transaction has more failures than were collected.
    bool more_failures = false;
    /// A transient error (pg::is_transient) stopped the work: nothing is wrong with the records, try again
    /// later.
    std::optional<pg::ErrorReport> transient;
    /// A record needs this description and onerepl.remote_description lacks it: it is to be asked for (P17).
    /// `lacking_at` is the record's number.
    std::optional<std::uint64_t> lacking_description;
    Number lacking_at = 0;
    /// What was done, for statistics: records written and B transactions committed.
    std::uint64_t records = 0;
    std::uint64_t commits = 0;
};

struct Options {
    /// A B transaction is committed at the end of the first A transaction that ends after this much work.
    std::int64_t commit_after = 1'000'000;  // microseconds
    std::size_t max_failures = 1000;
    const Resolutions* resolutions = nullptr;
    /// Descriptions that the remote does not tell: a record that lacks one fails (P22).
    std::vector<std::uint64_t> untold;
    /// The last call went well, and since then nobody else has changed the link's descriptions or refreshes:
    /// what is known of them need not be read again.
    bool memory_holds = false;
};

class Applier {
  public:
    /// `link`: id in onerepl.link. Outside a transaction or inside, no matter.
    explicit Applier(int link);
    ~Applier();
    Applier(const Applier&) = delete;
    Applier& operator=(const Applier&) = delete;

    /// Writes what `source` gives, beginning after `written_before`, which is committed already. Must be
    /// called outside a transaction. `before_commit` is called inside each B transaction just before it
    /// commits, with SPI connected, as the worker's own user, with the last number written: it moves the
    /// position. What `source` and `before_commit` throw passes through (the current transaction is aborted);
    /// everything else is told by the outcome.
    Outcome apply(RecordSource& source, Number written_before,
                  const std::function<void(Number written)>& before_commit, const Options& options = {});

    /// Drops the cached descriptions: the link was started anew.
    void forget();

  private:
    class Implementation;
    std::unique_ptr<Implementation> implementation_;
};

}  // namespace onerepl::apply
