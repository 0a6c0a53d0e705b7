// The one list of what a worker's session does not take from ALTER DATABASE, ALTER ROLE or the configuration
// file.
#include "worker/pinned_settings.h"

#include "pg/compat.h"
#include "pg/error_boundary.h"

extern "C" {
#include "miscadmin.h"
#include "utils/guc.h"
}

namespace onerepl::worker {

namespace {

struct PinnedSetting {
    const char* name;
    const char* value;
};

// What is not here, and why. synchronous_commit: whether a standby is waited for is the administrator's
// choice; what must be on disk is flushed whatever it says. Memory, costs, temporary files, tablespaces, what
// is logged: his, too.
constexpr PinnedSetting pinned[] = {
    // Whose rights a worker has, and what names mean to it.
    {"role", "none"},
    {"search_path", "pg_catalog, pg_temp"},
    {"row_security", "on"},
    {"session_replication_role", "origin"},
    // What would end it, or a statement of it.
    {"statement_timeout", "0"},
    {"idle_in_transaction_session_timeout", "0"},
    {"idle_session_timeout", "0"},
    {"exit_on_error", "off"},
    // Every wait has a limit: other links wait too. Apply has a shorter one.
    {"lock_timeout", "10s"},
    // What would change its transactions.
    {"default_transaction_isolation", "read committed"},
    {"default_transaction_read_only", "off"},
    {"default_transaction_deferrable", "off"},
    // What would make its statements slow: its tables have indexes for all that it looks for.
    {"enable_indexscan", "on"},
    {"enable_indexonlyscan", "on"},
    {"enable_nestloop", "on"},
    {"plan_cache_mode", "auto"},
    {"jit", "off"},
};

}  // namespace

void pin_session() {
    pg::call([] {
        // session_authorization, which can be a database's setting, too.
        SetSessionAuthorization(GetAuthenticatedUserId(), true);
        for (const PinnedSetting& setting : pinned)
            SetConfigOption(setting.name, setting.value, PGC_SUSET, PGC_S_OVERRIDE);
        if (compat::has_transaction_timeout)
            SetConfigOption("transaction_timeout", "0", PGC_SUSET, PGC_S_OVERRIDE);
    });
}

}  // namespace onerepl::worker
