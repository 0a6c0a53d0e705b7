// The dry run of a failing transaction: all its failures at once, for the administrator; rolled back in the
// end (P13).
#include "apply/failure_text.h"
#include "apply/run.h"
#include "apply/session.h"
#include "apply/tables/relation_maps.h"
#include "apply/writer.h"
#include "pg/transaction.h"

extern "C" {
#include "mb/pg_wchar.h"
#include "utils/timestamp.h"
}

#include <algorithm>

namespace onerepl::apply {

namespace {

/// So many records share a subtransaction as long as none of them fails.
constexpr int records_of_chunk = 256;

/// Ends the dry run's transaction by abort.
struct DryRunOver {};

class DryRun {
  public:
    DryRun(Writer& writer, RecordSource& source, Number written, const Options& options)
        : writer_(writer), source_(source), options_(options), next_(written + 1) {}

    DryRunResult run(const KnownError& known) {
        try {
            pg::in_transaction([&] {
                prepare_session();
                writer_.begin(false, options_.untold);
                source_.rewind(next_);
                try_records();
                try_checks();
                if (result_.failures.empty()) add_known(known);
                throw DryRunOver{};
            });
        } catch (const DryRunOver&) {
        } catch (...) {
            leave();
            throw;
        }
        leave();
        std::sort(result_.failures.begin(), result_.failures.end(),
                  [](const Failure& a, const Failure& b) { return a.n < b.n; });
        return std::move(result_);
    }

  private:
    void leave() {
        writer_.abandon();
        pg::call([] { SetClientEncoding(GetDatabaseEncoding()); });
    }

    /// Reads one record and notes where the transaction ends.
    void read(IncomingRecord& record) {
        if (!source_.next(record)) throw pg::Error("XX000", "the records end within a transaction");
        ended_ = record.last_of_transaction;
        if (ended_) last_record_ = record.n;
    }

    void write(const IncomingRecord& record) {
        writer_.write(record, options_.resolutions);
        pass(record);
    }

    /// Runs `work` in a subtransaction. False: it failed and is undone; `error_` says how.
    template <class Work>
    bool attempt(Work&& work) {
        const std::size_t mark = writer_.mark();
        try {
            pg::in_subtransaction([&] {
                work();
                writer_.settle();
            });
            return true;
        } catch (const pg::Error& error) {
            if (is_transient(error.report())) throw;
            error_ = error.report();
        } catch (const std::logic_error& error) {
            // What a record says cannot be; no error of PostgreSQL, but as much one of the record.
            error_ = pg::Error("22P03", error.what()).report();
        } catch (const LackingDescription&) {
            // Not a failure of the record: it will be asked for when the others are resolved.
            error_.reset();
        }
        writer_.roll_back_to(mark);
        pg::call([] { SetClientEncoding(GetDatabaseEncoding()); });
        return false;
    }

    void try_records() {
        while (!ended_) {
            const Number start = next_;
            int count = 0;
            const bool good = attempt([&] {
                IncomingRecord record;
                for (; count < records_of_chunk && !ended_;) {
                    read(record);
                    count++;
                    write(record);
                }
            });
            if (good) continue;
            go_back(start);
            one_by_one(count);
        }
    }

    void go_back(Number n) {
        source_.rewind(n);
        next_ = n;
        ended_ = false;
    }

    void one_by_one(int count) {
        IncomingRecord record;
        for (int i = 0; i < count && !ended_; i++) {
            read(record);
            if (is_full()) {
                pass(record);
            } else if (is_truncate(record)) {
                try_truncates(record);
            } else if (!attempt([&] { write(record); })) {
                add_failure(record);
                pass(record);
            }
        }
    }

    bool is_full() {
        const bool full = result_.failures.size() >= options_.max_failures;
        result_.more_failures |= full;
        return full;
    }

    static bool is_truncate(const IncomingRecord& record) {
        return !record.record.empty() && record.record[0] == static_cast<std::uint8_t>(Operation::truncate);
    }

    /// Goes on after a record.
    void pass(const IncomingRecord& record) {
        next_ = record.n + 1;
        if (ended_) result_.transaction_last = record.n;
    }

    /// TRUNCATEs that follow each other are one statement and fail together, at the first one.
    void try_truncates(IncomingRecord record) {
        const Number start = record.n;
        const bool good = attempt([&] {
            for (;;) {
                write(record);
                if (ended_) return;
                read(record);
                if (!is_truncate(record)) break;
            }
            source_.rewind(next_);
            ended_ = false;
        });
        if (good) return;
        go_back(start);
        read(record);
        add_failure(record);
        for (;;) {
            pass(record);
            if (ended_) return;
            read(record);
            if (!is_truncate(record)) break;
        }
        go_back(next_);
    }

    void try_checks() {
        std::size_t i = 0;
        while (i < writer_.check_count() && !is_full()) {
            const bool good = attempt([&] {
                for (; i < writer_.check_count(); i++) writer_.run_check(i);
            });
            if (good) return;
            i++;
            add_failure_at(writer_.current());
        }
    }

    void add_known(const KnownError& known) {
        error_ = known.report;
        add_failure_at(known.n != 0 ? known.n : last_record_);
        if (!result_.failures.empty()) result_.failures.back().at_commit = known.n == 0;
    }

    void add_failure_at(Number n) {
        IncomingRecord record;
        source_.rewind(n);
        if (source_.next(record)) add_failure(record);
    }

    void add_failure(const IncomingRecord& incoming) {
        if (!error_) return;
        Failure failure;
        failure.n = incoming.n;
        failure.error = *error_;
        failure.failed_at = GetCurrentTimestamp();
        Record record;
        if (decode_record(incoming.record, record)) {
            if (record.operation != Operation::statement) explain_search_path(failure.error);
            RelationMap* target =
                record.operation == Operation::describe ? nullptr : writer_.maps().find(record.description);
            if (target != nullptr) add_branch(*target, record);
            describe_record(record, target == nullptr ? nullptr : &target->description, failure);
        } else {
            failure.operation = "unknown";
        }
        result_.failures.push_back(std::move(failure));
    }

    Writer& writer_;
    RecordSource& source_;
    const Options& options_;
    DryRunResult result_;
    std::optional<pg::ErrorReport> error_;
    Number next_;  // begins the next record
    Number last_record_ = 0;
    bool ended_ = false;
};

}  // namespace

DryRunResult dry_run(Writer& writer, RecordSource& source, Number written, const Options& options,
                     const KnownError& known) {
    return DryRun(writer, source, written, options).run(known);
}

}  // namespace onerepl::apply
