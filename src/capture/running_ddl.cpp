#include "capture/running_ddl.h"

extern "C" {
#include "catalog/namespace.h"
#include "catalog/pg_namespace.h"
#include "lib/stringinfo.h"
#include "nodes/parsenodes.h"
#include "parser/parser.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
}

namespace onerepl::capture {

namespace {

Ddl* running = nullptr;
Given given_now{};

/// Whether the text, lexed with this standard_conforming_strings, is the statement. Parsing is pure: an error
/// of it leaves nothing.
bool is_read_so(const char* text, const Node* statement, bool conforming_strings) {
    const bool before = standard_conforming_strings;
    MemoryContext const memory = CurrentMemoryContext;
    volatile bool same = false;
    standard_conforming_strings = conforming_strings;
    PG_TRY();
    {
        List* const parsed = raw_parser(text, RAW_PARSE_DEFAULT);
        same = list_length(parsed) == 1 && equal(linitial_node(RawStmt, parsed)->stmt, statement);
    }
    PG_CATCH();
    {
        MemoryContextSwitchTo(memory);
        FlushErrorState();
    }
    PG_END_TRY();
    standard_conforming_strings = before;
    return same;
}

/// A text is lexed as a whole before its first statement acts, and the statements of a function when they are
/// first executed: the setting may have changed since. Only a backslash is read in two ways.
bool were_strings_conforming(const char* text, std::size_t size, const Node* statement) {
    if (memchr(text, '\\', size) == nullptr) return true;
    char* const copy = pnstrdup(text, size);
    const bool other = !standard_conforming_strings;
    const bool is_other =
        !is_read_so(copy, statement, standard_conforming_strings) && is_read_so(copy, statement, other);
    pfree(copy);
    return is_other ? other : standard_conforming_strings;
}

}  // namespace

bool is_ddl(const Node* statement) {
    return IsA(statement, AlterTableStmt) || IsA(statement, RenameStmt) || IsA(statement, CreateStmt) ||
           IsA(statement, AlterObjectSchemaStmt);
}

Ddl ddl_of(const PlannedStmt* planned, const char* query) {
    const char* const text = query + (planned->stmt_location > 0 ? planned->stmt_location : 0);
    const std::size_t size =
        planned->stmt_len > 0 ? static_cast<std::size_t>(planned->stmt_len) : strlen(text);
    return {planned->utilityStmt,
            text,
            size,
            effective_search_path(),
            were_strings_conforming(text, size, planned->utilityStmt),
            false};
}

Ddl* running_ddl() {
    return running;
}

Ddl* set_running_ddl(Ddl* ddl) {
    Ddl* const before = running;
    running = ddl;
    return before;
}

Given& given() {
    return given_now;
}

char* effective_search_path() {
    // Temporary schemas are not in it. fetch_search_path() might make one.
    const int count = fetch_search_path_array(nullptr, 0);
    auto* const schemas = static_cast<Oid*>(palloc(sizeof(Oid) * static_cast<std::size_t>(count)));
    fetch_search_path_array(schemas, count);
    StringInfoData path;
    initStringInfo(&path);
    // PostgreSQL's own comes first by itself.
    for (int i = count > 0 && schemas[0] == PG_CATALOG_NAMESPACE ? 1 : 0; i < count; i++)
        if (const char* const name = get_namespace_name(schemas[i]))
            appendStringInfo(&path, "%s%s", path.len > 0 ? ", " : "", quote_identifier(name));
    return path.data;
}

}  // namespace onerepl::capture
