// What a statement that the remote captured makes of names.
#pragma once

#include <string>

namespace onerepl::apply {

struct Rename {
    std::string schema;      // where the table is now, or what the schema is called now; empty: as it was
    std::string table;       // empty: as it was
    std::string old_schema;  // of a whole schema that got another name; empty: the statement is about a table
    std::string made;        // the table that it makes, no partition; empty: none
    bool empty() const { return schema.empty() && table.empty(); }
};

/// `text` is in this database's encoding. A statement that cannot be parsed here, since the remote is of a
/// newer version of PostgreSQL, gives no other name: those that do can be parsed by all.
Rename rename_in(const std::string& text);

}  // namespace onerepl::apply
