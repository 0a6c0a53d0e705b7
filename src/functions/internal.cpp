// SQL functions that the administrator's SQL functions are made of: the journal, and waking workers.
#include "functions/arguments.h"
#include "pg/error_boundary.h"
#include "pg/journal_buffer.h"
#include "pg/spi.h"
#include "shared/memory.h"

extern "C" {
PG_FUNCTION_INFO_V1(onerepl_wake_at_commit);
PG_FUNCTION_INFO_V1(onerepl_write_journal);
PG_FUNCTION_INFO_V1(onerepl_set_capture_stopped);
}

namespace onerepl {

namespace {

void write_journal(FunctionCallInfo fcinfo) {
    const std::string rule = text_argument(fcinfo, 2);
    const int level = PG_ARGISNULL(0) ? 0 : PG_GETARG_INT32(0);
    if (level < 0 || level > 2) throw pg::Error("22023", "a journal entry's level is 0, 1 or 2");
    JournalEntry entry;
    entry.level = static_cast<Level>(level);
    entry.rule = rule.c_str();
    entry.message = text_argument(fcinfo, 3);
    entry.hint = text_argument(fcinfo, 4);
    if (!PG_ARGISNULL(5) && !PG_ARGISNULL(6))
        entry.numbers = {static_cast<Number>(PG_GETARG_INT64(5)), static_cast<Number>(PG_GETARG_INT64(6))};
    pg::SpiConnection spi;
    pg::write_journal_entry(PG_ARGISNULL(1) ? 0 : PG_GETARG_INT32(1), entry);
    spi.finish();
}

}  // namespace

}  // namespace onerepl

PGDLLEXPORT Datum onerepl_wake_at_commit(PG_FUNCTION_ARGS) {
    onerepl::pg::entry([&] {
        if (PG_GETARG_BOOL(0)) onerepl::shared::invalidate_sender();
        if (PG_GETARG_BOOL(1)) onerepl::shared::invalidate_receivers();
        // There may be no worker yet that could be woken.
        onerepl::shared::wake_launcher();
    });
    PG_RETURN_VOID();
}

PGDLLEXPORT Datum onerepl_write_journal(PG_FUNCTION_ARGS) {
    onerepl::pg::entry([&] { onerepl::write_journal(fcinfo); });
    PG_RETURN_VOID();
}

PGDLLEXPORT Datum onerepl_set_capture_stopped(PG_FUNCTION_ARGS) {
    onerepl::pg::entry([&] { onerepl::shared::set_capture_stopped(PG_GETARG_BOOL(0)); });
    PG_RETURN_VOID();
}
