// Statements of SQL in the log (P17): what changes a tracked table, and what the administrator wants to be
// executed on both sides.
#pragma once

#include "pg/pg.h"

namespace onerepl::capture {

/// What becomes of statements in the log.
enum class Recording {
    all,      // they are recorded as the administrator's, to be executed at the centrals, too
    none,     // they are not
    changes,  // what they do to tracked tables is, as if somebody had sent them
};

/// Error 22023 for what is not executed on both sides: statements that change rows, decide about the
/// transaction, or are DO or CALL. Plain.
void check_statements(const char* text);

/// Executes statements under a search_path and with the present rights. Texts are in this database's
/// encoding. Plain; may ereport.
void execute_statements(const char* search_path, const char* text, Recording recording);

}  // namespace onerepl::capture
