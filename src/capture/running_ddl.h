// Which statement runs now, for the event triggers: they are not told its text. Plain.
#pragma once

#include "pg/pg.h"

extern "C" {
#include "nodes/nodes.h"
#include "nodes/plannodes.h"
}

namespace onerepl::capture {

/// A statement that makes or changes a table and runs now.
struct Ddl {
    const Node* statement;
    const char* text;
    std::size_t size;
    char* search_path;        // as it was when it began
    bool conforming_strings;  // standard_conforming_strings, as it was when the text was lexed
    bool recorded;            // is in the log: other event triggers may ask for it again
};

/// Whether it is of those whose text is wanted.
bool is_ddl(const Node* statement);

/// What is known of a statement before it runs. `query`: the text that it is a part of.
Ddl ddl_of(const PlannedStmt* planned, const char* query);

/// The innermost one; null: none.
Ddl* running_ddl();
/// Gives the former one, to be set again when this one ends, whichever way.
Ddl* set_running_ddl(Ddl* ddl);

/// Statements that the administrator gives to both sides are in the log before they run. What event triggers do
/// about one is not: it is recorded as if somebody had sent it (P21).
struct Given {
    bool expected;  // the next statement that begins is one
    bool running;   // the innermost one that runs is
};
Given& given();

/// The schemas that search_path leads to now, as a search_path: what "$user" means, and what is not there,
/// differs elsewhere.
char* effective_search_path();

}  // namespace onerepl::capture
