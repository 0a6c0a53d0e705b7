// Hook on utility statements: what must happen before a database is dropped, and after COMMIT PREPARED; and
// which statement runs, for the event triggers.
#pragma once

#include "pg/pg.h"

extern "C" {
#include "nodes/nodes.h"
}

namespace onerepl::hooks {

/// A statement that makes or changes a table and runs now.
struct Ddl {
    const Node* statement;
    const char* text;
    std::size_t size;
    char* search_path;        // as it was when it began
    bool conforming_strings;  // standard_conforming_strings, as it was when the text was lexed
    bool recorded;            // is in the log: other event triggers may ask for it again
};
/// The innermost one; null: none. Event triggers are not told its text.
Ddl* running_ddl();

/// The schemas that search_path leads to now, as a search_path: what "$user" means, and what is not there,
/// differs elsewhere. Plain.
char* effective_search_path();

/// From _PG_init when preloaded.
void install();

}  // namespace onerepl::hooks
