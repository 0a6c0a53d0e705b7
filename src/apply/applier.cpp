// The strategy: many transactions of A in one of B; after an error one by one up to the failing one; that one
// is tried.
#include "apply/run.h"
#include "apply/session.h"
#include "pg/error_boundary.h"
#include "pg/rights.h"
#include "pg/transaction.h"

extern "C" {
#include "mb/pg_wchar.h"
#include "utils/timestamp.h"
}

#include <utility>

namespace onerepl::apply {

Run::Run(Writer& writer, Piece& piece, RecordSource& source, Number written_before,
         const std::function<void(Number)>& before_commit, const Options& options)
    : writer_(writer), piece_(piece), source_(source), before_commit_(before_commit), options_(options) {
    outcome_.written = written_before;
}

Outcome Run::run() {
    while (!source_ended_) {
        const std::optional<Problem> problem = step(Mode::many, 0);
        if (problem && !overcome(*problem)) break;
    }
    return std::move(outcome_);
}

bool Run::next(IncomingRecord& record) {
    foreign_ = true;
    const bool more = source_.next(record);
    foreign_ = false;
    return more;
}

void Run::rewind(Number n) {
    foreign_ = true;
    source_.rewind(n);
    foreign_ = false;
}

std::optional<Run::Problem> Run::step(Mode mode, Number limit) {
    std::optional<Problem> problem;
    committing_ = false;
    try {
        pg::in_transaction([&] {
            prepare_session();
            writer_.begin(options_.memory_holds && std::exchange(first_step_, false), options_.untold);
            write_and_note(mode, limit);
            if (written_ == outcome_.written) return;
            foreign_ = true;
            before_commit_(written_);
            foreign_ = false;
            committing_ = true;
            pg::call([] { pg::fire_deferred_triggers(); });
        });
    } catch (const LackingDescription& lacking) {
        problem = problem_of({});
        problem->lacking = lacking.id;
    } catch (const pg::Error& error) {
        if (foreign_) throw;
        problem = problem_of(error.report());
    } catch (const std::logic_error& error) {
        if (foreign_) throw;
        problem = problem_of(pg::Error("22P03", error.what()).report());
    } catch (const std::bad_alloc&) {
        if (foreign_) throw;
        problem = problem_of(pg::Error("53200", "out of memory").report());
    }
    writer_.abandon();
    must_rewind_ = problem.has_value();
    if (!problem) {
        piece_.grow();
        outcome_.commits += written_ > outcome_.written;
        outcome_.written = written_;
        outcome_.records += records_;
    } else {
        pg::call([] { SetClientEncoding(GetDatabaseEncoding()); });
        source_ended_ = false;
    }
    return problem;
}

Run::Problem Run::problem_of(const pg::ErrorReport& report) {
    Problem problem;
    problem.report = report;
    problem.n = writer_.current();
    problem.at_commit = committing_;
    if (!committing_) problem.suspect = suspect_;
    return problem;
}

void Run::write_and_note(Mode mode, Number limit) {
    try {
        write_transactions(mode, limit);
        if (written_ > outcome_.written) writer_.finish();
    } catch (...) {
        // Now, before the rollback takes away what is known.
        const Number pending = writer_.oldest_pending();
        suspect_ = pending != 0 && pending < writer_.current() ? pending : writer_.current();
        throw;
    }
}

void Run::write_transactions(Mode mode, Number limit) {
    written_ = outcome_.written;
    records_ = 0;
    ends_.clear();
    if (must_rewind_) rewind(outcome_.written + 1);
    const TimestampTz deadline = GetCurrentTimestamp() + options_.commit_after;
    while (write_transaction()) {
        if (mode == Mode::single || written_ == limit || piece_.is_full(ends_.size())) return;
        if (limit == 0 && GetCurrentTimestamp() >= deadline) return;
    }
}

bool Run::write_transaction() {
    IncomingRecord record;
    for (bool first = true;; first = false) {
        if (!next(record)) {
            source_ended_ = true;
            foreign_ = !first;
            if (foreign_) throw pg::Error("XX000", "the records end within a transaction");
            return false;
        }
        writer_.write(record, options_.resolutions);
        records_++;
        if (!record.last_of_transaction) continue;
        written_ = record.n;
        ends_.push_back(record.n);
        return true;
    }
}

bool Run::overcome(const Problem& problem) {
    if (!problem.lacking && is_transient(problem.report)) {
        piece_.shrink(ends_.size());
        outcome_.transient = problem.report;
        return false;
    }
    // Only one transaction was at work: trying it alone would give the same.
    if (ends_.empty() || (ends_.size() == 1 && problem.n <= ends_.front())) return fail(problem), false;
    // Everything that ended before the first suspicious record may be committed together.
    Number safe = 0;
    for (const Number end : ends_)
        if (end < problem.suspect) safe = end;
    std::optional<Problem> another;
    if (safe > outcome_.written) another = step(Mode::many, safe);
    while (!source_ended_ && outcome_.written < problem.n) {
        another = step(Mode::single, 0);
        if (!another) continue;
        fail(*another);
        return false;
    }
    return true;
}

void Run::fail(const Problem& problem) {
    if (problem.lacking) {
        outcome_.lacking_description = problem.lacking;
        outcome_.lacking_at = problem.n;
        return;
    }
    if (is_transient(problem.report)) {
        outcome_.transient = problem.report;
        return;
    }
    try {
        const KnownError known{problem.report, problem.at_commit ? 0 : problem.n};
        DryRunResult result = dry_run(writer_, source_, outcome_.written, options_, known);
        outcome_.failures = std::move(result.failures);
        outcome_.more_failures = result.more_failures;
        for (Failure& failure : outcome_.failures) {
            failure.transaction_first = outcome_.written + 1;
            failure.transaction_last = result.transaction_last;
        }
        outcome_.failed_at = outcome_.failures.front().n;
    } catch (const pg::Error& error) {
        if (!is_transient(error.report())) throw;
        outcome_.transient = error.report();
    }
}

class Applier::Implementation {
  public:
    explicit Implementation(int link) : writer(link) {}
    Writer writer;
    Piece piece;
};

Applier::Applier(int link) : implementation_(std::make_unique<Implementation>(link)) {}

Applier::~Applier() = default;

Outcome Applier::apply(RecordSource& source, Number written_before,
                       const std::function<void(Number)>& before_commit, const Options& options) {
    return Run(implementation_->writer, implementation_->piece, source, written_before, before_commit,
               options)
        .run();
}

void Applier::forget() {
    implementation_->writer.maps().forget();
}

}  // namespace onerepl::apply
