// onerepl_wait: until the central has written what this session committed.
#include "functions/arguments.h"
#include "pg/error_boundary.h"
#include "pg/spi.h"
#include "shared/memory.h"

extern "C" {
#include "storage/latch.h"
#include "utils/snapmgr.h"
#include "utils/timestamp.h"
#include "utils/wait_event.h"

PG_FUNCTION_INFO_V1(onerepl_wait);
}

namespace onerepl {

namespace {

constexpr long poll_interval = 20;  // ms

/// The newest committed state, also in a REPEATABLE READ transaction, while an object of it lives. An
/// exception leaves the snapshot to the abort.
template <class Work>
auto with_latest_snapshot(Work&& work) {
    pg::call([] { PushActiveSnapshot(GetLatestSnapshot()); });
    auto result = work();
    pg::call([] { PopActiveSnapshot(); });
    return result;
}

/// The first column of the first row under the active snapshot, if there is one and it is not null. With at
/// most one parameter. pg::query takes the transaction's snapshot instead.
struct Value {
    Oid type = InvalidOid;
    Datum datum = 0;
    bool is_null = true;
};
Value value_of(const char* sql, pg::Param parameter) {
    return pg::call([&] {
        const int code = SPI_execute_with_args(sql, 1, &parameter.type, &parameter.value,
                                               parameter.is_null ? "n" : " ", true, 1);
        if (code != SPI_OK_SELECT) elog(ERROR, "could not run \"%s\": %s", sql, SPI_result_code_string(code));
        Value value;
        if (SPI_processed == 0) return value;
        value.type = SPI_gettypeid(SPI_tuptable->tupdesc, 1);
        value.datum = SPI_getbinval(SPI_tuptable->vals[0], SPI_tuptable->tupdesc, 1, &value.is_null);
        return value;
    });
}

/// For columns of type int8.
std::optional<std::int64_t> int8_of(const char* sql, const pg::Param& parameter) {
    const Value value = value_of(sql, parameter);
    pg::call([] { SPI_freetuptable(SPI_tuptable); });
    if (value.is_null) return std::nullopt;
    return DatumGetInt64(value.datum);
}

class Wait {
  public:
    Wait(std::string name, std::int64_t timeout) : name_(std::move(name)), timeout_(timeout) {}

    bool run() {
        pg::SpiConnection spi;
        link_ = static_cast<std::int32_t>(
            pg::query_int8("SELECT (onerepl.get_link($1, 'remote')).id::int8", {name_}).value_or(0));
        const pg::Param snapshot = current_snapshot();
        const TimestampTz start = GetCurrentTimestamp();
        shared::wake_sender();
        bool done = false;
        while (!(done = with_latest_snapshot([&] { return arrived(snapshot); }))) {
            const std::int64_t left =
                timeout_ < 0 ? poll_interval : timeout_ - (GetCurrentTimestamp() - start) / 1000;
            if (left <= 0) break;
            sleep(std::min<std::int64_t>(left, poll_interval));
        }
        spi.finish();
        return done;
    }

  private:
    /// What had been committed when the function was called.
    static pg::Param current_snapshot() {
        return with_latest_snapshot([] {
            // Lives as long as this call's SPI connection.
            const Value snapshot =
                value_of("SELECT pg_catalog.pg_current_snapshot() WHERE $1", pg::Param(true));
            return pg::Param::datum(snapshot.type, snapshot.datum);
        });
    }

    bool arrived(const pg::Param& snapshot) {
        if (!target_) target_ = int8_of("SELECT onerepl.number_covering($1)", snapshot);
        const auto stop = int8_of("SELECT stop::int8 FROM onerepl.link WHERE id = $1", link_);
        if (!stop) throw pg::Error("42704", "link \"" + name_ + "\" was removed meanwhile");
        if (*stop != 0)
            throw pg::Error("55000", "link \"" + name_ + "\" is stopped",
                            "onerepl_status() tells why, and what to do.");
        return target_ && int8_of("SELECT onerepl.confirmed_to($1)", link_).value_or(0) >= *target_;
    }

    static void sleep(std::int64_t milliseconds) {
        pg::call([&] {
            const int events = WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH,
                                         static_cast<long>(milliseconds), PG_WAIT_EXTENSION);
            if (events & WL_LATCH_SET) ResetLatch(MyLatch);
            CHECK_FOR_INTERRUPTS();
        });
    }

    std::string name_;
    std::int64_t timeout_;  // ms; negative: none
    std::int32_t link_ = 0;
    std::optional<std::int64_t> target_;
};

/// Milliseconds; -1: none.
std::int64_t timeout_of(FunctionCallInfo fcinfo) {
    if (PG_ARGISNULL(1)) return -1;
    const Interval* const interval = PG_GETARG_INTERVAL_P(1);
    const std::int64_t days = interval->month * std::int64_t{DAYS_PER_MONTH} + interval->day;
    const std::int64_t milliseconds = days * SECS_PER_DAY * 1000 + interval->time / 1000;
    return std::max<std::int64_t>(milliseconds, 0);
}

bool wait(FunctionCallInfo fcinfo) {
    if (PG_ARGISNULL(0)) throw pg::Error("22004", "a link must be named");
    if (TransactionIdIsValid(GetTopTransactionIdIfAny()))
        throw pg::Error("25001", "onerepl_wait cannot run in a transaction that has changed data",
                        "Call it after COMMIT.", "What is not committed is not sent.");
    return Wait(text_argument(fcinfo, 0), timeout_of(fcinfo)).run();
}

}  // namespace

}  // namespace onerepl

PGDLLEXPORT Datum onerepl_wait(PG_FUNCTION_ARGS) {
    PG_RETURN_BOOL(onerepl::pg::entry([&] { return onerepl::wait(fcinfo); }));
}
