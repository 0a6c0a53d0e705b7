// A statement that takes a secret is told by the functions' names, in its text or in the context of the
// error. Plain C in here: what it calls may longjmp.
#include "pg/pg.h"

#include "worker/secret_log.h"

extern "C" {
#include "tcop/tcopprot.h"
#include "utils/elog.h"
}

#include <cstring>
#include <initializer_list>

namespace onerepl::secret_log {

namespace {

emit_log_hook_type previous = nullptr;

bool takes_secret(const char* text) {
    if (!text) return false;
    for (const char* name : {"onerepl_add_central", "onerepl_add_remote", "onerepl_change_link"})
        if (strcasestr(text, name)) return true;
    return false;
}

/// Texts of an ErrorData are freed one by one.
void replace(char** text, const char* by) {
    if (!*text) return;
    pfree(*text);
    *text = by ? pstrdup(by) : nullptr;
}

/// What log_statement and the durations write has the statement in its message and the parameters in its
/// detail.
void cut_message(ErrorData* error) {
    const char* statement = error->message ? strstr(error->message, debug_query_string) : nullptr;
    if (!statement) return;
    const int kept = static_cast<int>(statement - error->message);
    char* shown = psprintf("%.*s(not shown: a secret may be in it)", kept, error->message);
    pfree(error->message);
    error->message = shown;
    replace(&error->detail, nullptr);
}

void write_without_secret(ErrorData* error) {
    if (error->output_to_server) {
        const bool statement = takes_secret(debug_query_string);
        if (statement || takes_secret(error->context) || takes_secret(error->internalquery)) {
            error->hide_stmt = true;
            error->hide_ctx = true;
            replace(&error->internalquery, nullptr);
            replace(&error->detail_log, nullptr);
            if (statement && error->elevel == LOG) cut_message(error);
        }
    }
    if (previous) previous(error);
}

}  // namespace

void install() {
    previous = emit_log_hook;
    emit_log_hook = write_without_secret;
}

}  // namespace onerepl::secret_log
