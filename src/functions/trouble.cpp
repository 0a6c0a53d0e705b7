// What the receivers of this central know of a link at the moment, for the status: from shared memory, so
// that it can be seen when no table can be written.
#include "pg/clock.h"
#include "pg/error_boundary.h"
#include "receiver/shared_link.h"
#include "shared/memory.h"

extern "C" {
#include "funcapi.h"
#include "utils/builtins.h"
#include "utils/timestamp.h"

PG_FUNCTION_INFO_V1(onerepl_trouble);
PG_FUNCTION_INFO_V1(onerepl_writing);
PG_FUNCTION_INFO_V1(onerepl_stop_reason);
}

/// Why the last body could not be taken.
PGDLLEXPORT Datum onerepl_trouble(PG_FUNCTION_ARGS) {
    char told[sizeof onerepl::receiver::SharedLink::trouble] = "";
    if (const void* memory = onerepl::shared::link_memory(PG_GETARG_INT32(0), false))
        strlcpy(told, static_cast<const onerepl::receiver::SharedLink*>(memory)->trouble, sizeof told);
    if (told[0] == '\0') PG_RETURN_NULL();
    PG_RETURN_TEXT_P(cstring_to_text(told));
}

/// What is written, or was last, as process, first, last, since, until.
PGDLLEXPORT Datum onerepl_writing(PG_FUNCTION_ARGS) {
    using namespace onerepl;
    const auto* memory =
        static_cast<const receiver::SharedLink*>(shared::link_memory(PG_GETARG_INT32(0), false));
    TupleDesc description = nullptr;
    if (get_call_result_type(fcinfo, nullptr, &description) != TYPEFUNC_COMPOSITE)
        elog(ERROR, "onerepl.writing() gives a row");
    const receiver::Writing writing = memory != nullptr ? memory->writing : receiver::Writing{};
    const bool goes_on = receiver::is_writing(writing);
    // One that was ended in the middle of it tells nothing.
    if (writing.process == 0 || (!goes_on && writing.until == 0)) PG_RETURN_NULL();
    const TimestampTz now = GetCurrentTimestamp();
    const Time clock = pg::now();
    Datum values[] = {Int32GetDatum(writing.process), UInt64GetDatum(writing.first),
                      UInt64GetDatum(writing.last), TimestampTzGetDatum(now - (clock - writing.since)),
                      TimestampTzGetDatum(now - (clock - writing.until))};
    bool nulls[] = {false, false, false, false, goes_on};
    PG_RETURN_DATUM(HeapTupleGetDatum(heap_form_tuple(BlessTupleDesc(description), values, nulls)));
}

/// P9: the text of a number that a link stopped with.
PGDLLEXPORT Datum onerepl_stop_reason(PG_FUNCTION_ARGS) {
    PG_RETURN_TEXT_P(cstring_to_text(onerepl::describe(static_cast<onerepl::Stop>(PG_GETARG_INT16(0)))));
}
