// What keeps this central from taking what a remote sends, for the status.
#include "pg/guard.h"
#include "receiver/shared_link.h"
#include "worker/shared.h"

extern "C" {
#include "utils/builtins.h"

PG_FUNCTION_INFO_V1(onerepl_trouble);
}

/// From shared memory, so that it can be seen when no table can be written.
PGDLLEXPORT Datum onerepl_trouble(PG_FUNCTION_ARGS) {
    char told[sizeof onerepl::receiver::SharedLink::trouble] = "";
    if (const void* memory = onerepl::shared::link_memory(PG_GETARG_INT32(0), false))
        strlcpy(told, static_cast<const onerepl::receiver::SharedLink*>(memory)->trouble, sizeof told);
    if (told[0] == '\0') PG_RETURN_NULL();
    PG_RETURN_TEXT_P(cstring_to_text(told));
}
