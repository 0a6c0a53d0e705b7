// What a statement of the remote that is executed here may touch (P18). Whatever its text says, it is held to
// the link's reach: before it, by the tables that it gives other names, joins with others or drops; after
// each of its commands, by what the command has done (64_reach.sql).
#pragma once

#include "pg/pg.h"

#include <string>

namespace onerepl::apply {

/// While an object of it lives, a statement of this link is executed.
class TellingBy {
  public:
    explicit TellingBy(int link);
    ~TellingBy();
    TellingBy(const TellingBy&) = delete;
    TellingBy& operator=(const TellingBy&) = delete;
};

/// Throws pg::Error: 22023 if a statement changes rows or settings, decides about the transaction, or is DO
/// or CALL; 42501 if one gives another name, schema, parent or part to a table, or drops one, that the link
/// may not write, or to a schema of which it may not write everything; if one grants rights on such a table,
/// or cascades from what is no table; and, `captured`, for kinds that no remote captures. Under the search_path given.
void check_told(int link, const std::string& text, const std::string& search_path, bool captured);

}  // namespace onerepl::apply
