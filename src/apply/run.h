// One call of Applier::apply: how transactions of A become transactions of B, and what happens when one fails
// (P13).
#pragma once

#include "apply/read_only_guard.h"
#include "apply/writer.h"

#include <algorithm>

namespace onerepl::apply {

/// pg::is_transient, but for 08P01: here that is what a type's receive function says of bytes that it cannot
/// read.
inline bool is_transient(const pg::ErrorReport& report) {
    return report.sqlstate != "08P01" && pg::is_transient(report.sqlstate);
}

/// P22: how many of A's transactions share a commit. After a transient error half as many are tried, down to
/// one, since it may be their number that cannot be written (locks, memory, disk); each commit that holds
/// lets it grow again.
class Piece {
  public:
    bool is_full(std::size_t transactions) const { return transactions >= most_; }
    void shrink(std::size_t tried) { most_ = std::max<std::size_t>(std::min(most_, tried) / 2, 1); }
    void grow() {
        if (most_ < unlimited) most_ += most_ / 8 + 1;
    }

  private:
    static constexpr std::size_t unlimited = 1'000'000;
    std::size_t most_ = unlimited;
};

class Run {
  public:
    Run(Writer& writer, Piece& piece, RecordSource& source, Number written_before,
        const std::function<void(Number)>& before_commit, const Options& options);
    Outcome run();

  private:
    /// Why a B transaction was rolled back.
    struct Problem {
        pg::ErrorReport report;
        std::optional<std::uint64_t> lacking;
        Number n = 0;            // the record at hand
        Number suspect = 0;      // the error can come from here on; 0: from anywhere
        bool at_commit = false;  // only COMMIT showed it
    };
    enum class Mode { many, single };

    /// One B transaction: A's transactions up to `limit`, a time's worth of them, or a single one. nullopt:
    /// committed.
    std::optional<Problem> step(Mode mode, Number limit);
    /// write_transactions and what completes it; an error leaves `suspect_`.
    void write_and_note(Mode mode, Number limit);
    void write_transactions(Mode mode, Number limit);
    /// False: the source is at its end.
    bool write_transaction();
    bool next(IncomingRecord& record);
    void rewind(Number n);
    Problem problem_of(const pg::ErrorReport& report);
    /// Goes on after `problem` if it can. False: the outcome is final.
    bool overcome(const Problem& problem);
    void fail(const Problem& problem);

    Writer& writer_;
    Piece& piece_;
    RecordSource& source_;
    const std::function<void(Number)>& before_commit_;
    const Options& options_;
    WritingAllowed allowed_;
    Outcome outcome_;            // .written: committed
    Number written_ = 0;         // in the current transaction
    std::uint64_t records_ = 0;  // in the current transaction
    std::vector<Number> ends_;   // of A's transactions in the current one
    Number suspect_ = 0;
    bool source_ended_ = false;
    bool must_rewind_ = true;
    bool first_step_ = true;
    bool foreign_ = false;  // code of the caller runs: its exceptions are not ours
    bool committing_ = false;
};

/// An error and the record that it belongs to; 0: the transaction's last.
struct KnownError {
    pg::ErrorReport report;
    Number n = 0;
};

struct DryRunResult {
    std::vector<Failure> failures;
    Number transaction_last = 0;
    bool more_failures = false;
};

/// Writes the transaction that begins after `written` record by record, rolls it back, and gives what failed:
/// `known`, if nothing fails in it. Throws pg::Error only for transient errors, and what `source` throws.
DryRunResult dry_run(Writer& writer, RecordSource& source, Number written, const Options& options,
                     const KnownError& known);

}  // namespace onerepl::apply
