// Entry of the shared library.
#include "http/listener.h"
#include "pg/error_boundary.h"
#include "pg/settings.h"
#include "shared/memory.h"
#include "worker/hooks.h"
#include "worker/launcher.h"
#include "worker/secret_log.h"

extern "C" {
PG_MODULE_MAGIC;
PGDLLEXPORT void _PG_init(void);  // NOLINT(bugprone-reserved-identifier): PostgreSQL's name for it
}

void _PG_init(void) {  // NOLINT(bugprone-reserved-identifier)
    using namespace onerepl;
    pg::entry([] {
        settings::define([](const char* value) { return http::is_readable_listen(value); });
        if (!process_shared_preload_libraries_in_progress) return;
        shared::install();
        launcher::install();
        hooks::install();
        secret_log::install();
    });
}
