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
    const char* query;  // the text that it is in
    int location;       // where it begins there; -1: not known
    int length;         // 0: to the end
    char* search_path;  // as it was when it began
};
/// The innermost one; null: none. Event triggers are not told its text.
const Ddl* running_ddl();

/// From _PG_init when preloaded.
void install();

}  // namespace onerepl::hooks
