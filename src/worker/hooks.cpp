// Our workers are connected to their databases and use the extension's tables. DROP EXTENSION, DROP DATABASE,
// ALTER DATABASE ... RENAME / SET TABLESPACE and CREATE DATABASE ... TEMPLATE want nobody there: the workers
// make way. Plain C in here: standard_ProcessUtility may longjmp.
#include "worker/hooks.h"

#include "pg/compat.h"
#include "pg/rights.h"
#include "worker/shared.h"

extern "C" {
#include "access/htup_details.h"
#include "catalog/namespace.h"
#include "catalog/pg_authid.h"
#include "catalog/pg_database.h"
#include "catalog/pg_namespace.h"
#include "catalog/pg_type.h"
#include "commands/dbcommands.h"
#include "commands/defrem.h"
#include "commands/event_trigger.h"
#include "commands/extension.h"
#include "executor/spi.h"
#include "lib/stringinfo.h"
#include "nodes/nodeFuncs.h"
#include "nodes/parsenodes.h"
#include "nodes/value.h"
#include "parser/parser.h"
#include "tcop/utility.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"
}

namespace onerepl::hooks {

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

namespace {

ProcessUtility_hook_type previous = nullptr;
Ddl* running = nullptr;

bool moves_tablespace(const AlterDatabaseStmt* statement) {
    ListCell* cell;
    foreach (cell, statement->options)
        if (strcmp(static_cast<DefElem*>(lfirst(cell))->defname, "tablespace") == 0) return true;
    return false;
}

const char* template_of(const CreatedbStmt* statement) {
    ListCell* cell;
    foreach (cell, statement->options) {
        auto* option = static_cast<DefElem*>(lfirst(cell));
        if (strcmp(option->defname, "template") == 0 && option->arg) return defGetString(option);
    }
    return nullptr;
}

/// The database that the statement wants for itself, or null.
const char* wanted_alone(const Node* statement) {
    switch (nodeTag(statement)) {
        case T_DropdbStmt:
            return reinterpret_cast<const DropdbStmt*>(statement)->dbname;
        case T_AlterDatabaseStmt: {
            const auto* alter = reinterpret_cast<const AlterDatabaseStmt*>(statement);
            return moves_tablespace(alter) ? alter->dbname : nullptr;
        }
        case T_RenameStmt: {
            const auto* rename = reinterpret_cast<const RenameStmt*>(statement);
            return rename->renameType == OBJECT_DATABASE ? rename->subname : nullptr;
        }
        case T_CreatedbStmt:
            return template_of(reinterpret_cast<const CreatedbStmt*>(statement));
        default:
            return nullptr;
    }
}

/// Dropping the extension locks its tables in an order of its own: with a worker at work that could end in a
/// deadlock.
bool drops_extension(const Node* statement) {
    if (!IsA(statement, DropStmt)) return false;
    const auto* drop = reinterpret_cast<const DropStmt*>(statement);
    if (drop->removeType != OBJECT_EXTENSION) return false;
    ListCell* cell;
    foreach (cell, drop->objects)
        if (strcmp(strVal(lfirst(cell)), "onerepl") == 0) return true;
    return false;
}

bool may_create_databases() {
    if (superuser()) return true;
    HeapTuple tuple = SearchSysCache1(AUTHOID, ObjectIdGetDatum(GetUserId()));
    if (!HeapTupleIsValid(tuple)) return false;
    const bool may = reinterpret_cast<Form_pg_authid>(GETSTRUCT(tuple))->rolcreatedb;
    ReleaseSysCache(tuple);
    return may;
}

bool is_template(Oid database) {
    HeapTuple tuple = SearchSysCache1(DATABASEOID, ObjectIdGetDatum(database));
    if (!HeapTupleIsValid(tuple)) return false;
    const bool is = reinterpret_cast<Form_pg_database>(GETSTRUCT(tuple))->datistemplate;
    ReleaseSysCache(tuple);
    return is;
}

/// PostgreSQL checks rights, and that nobody drops the database that he is in, after the workers have made
/// way. They must not for a statement that is refused: anybody could keep them away.
bool will_be_refused(const Node* statement, Oid database) {
    if (IsA(statement, CreatedbStmt))
        return !may_create_databases() || !(is_template(database) || compat::owns_database(database));
    return database == MyDatabaseId || !compat::owns_database(database);
}

/// The database whose workers have to make way for the statement; InvalidOid: none.
Oid database_to_clear(const Node* statement) {
    if (!shared::available()) return InvalidOid;
    if (drops_extension(statement)) {
        const Oid extension = get_extension_oid("onerepl", true);
        return OidIsValid(extension) && compat::owns_extension(extension) ? MyDatabaseId : InvalidOid;
    }
    const char* const name = wanted_alone(statement);
    const Oid database = name ? get_database_oid(name, true) : InvalidOid;
    return OidIsValid(database) && !will_be_refused(statement, database) ? database : InvalidOid;
}

bool is_commit_prepared(const Node* statement) {
    return IsA(statement, TransactionStmt) &&
           reinterpret_cast<const TransactionStmt*>(statement)->kind == TRANS_STMT_COMMIT_PREPARED;
}

bool is_ddl(const Node* statement) {
    return IsA(statement, AlterTableStmt) || IsA(statement, RenameStmt) || IsA(statement, CreateStmt) ||
           IsA(statement, AlterObjectSchemaStmt);
}

/// A statement that our event triggers do not see, although it, or what it makes possible, may change a
/// tracked table: none fires for statements about event triggers, nor for any under event_triggers = off.
bool goes_unwatched(Node* statement) {
#if PG_VERSION_NUM >= 170000
    if (!event_triggers && command_tag_event_trigger_ok(CreateCommandTag(statement))) return true;
#endif
    return IsA(statement, AlterEventTrigStmt) ||
           (IsA(statement, RenameStmt) &&
            reinterpret_cast<const RenameStmt*>(statement)->renameType == OBJECT_EVENT_TRIGGER);
}

/// Tells of it at once: when its transaction ends all may be right again (P21).
void note_unwatched(Node* statement) {
    const Oid extension = creating_extension ? InvalidOid : get_extension_oid("onerepl", true);
    if (!OidIsValid(extension)) return;
    const pg::Rights caller = pg::become(pg::owner_of_schema("onerepl"), 0, false);
    Oid types[] = {TEXTOID};
    Datum values[] = {CStringGetTextDatum(GetCommandTagName(CreateCommandTag(statement)))};
    SPI_connect();
    if (SPI_execute_with_args("SELECT onerepl.note_unwatched($1)", 1, types, values, nullptr, false, 0) < 0)
        elog(ERROR, "could not note a statement that no event trigger sees");
    SPI_finish();
    pg::return_from(caller);
}

void next(PlannedStmt* planned, const char* query, bool read_only, ProcessUtilityContext context,
          ParamListInfo params, QueryEnvironment* environment, DestReceiver* receiver,
          QueryCompletion* completion) {
    Node* const statement = planned->utilityStmt;
    const bool unwatched = goes_unwatched(statement);
    (previous ? previous : standard_ProcessUtility)(planned, query, read_only, context, params, environment,
                                                    receiver, completion);
    if (unwatched) note_unwatched(statement);
}

/// Whether the text, lexed with this standard_conforming_strings, is the statement. Parsing is pure: an error
/// of it leaves nothing behind.
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

void process_ddl(PlannedStmt* planned, const char* query, bool read_only, ProcessUtilityContext context,
                 ParamListInfo params, QueryEnvironment* environment, DestReceiver* receiver,
                 QueryCompletion* completion) {
    Ddl* const outer = running;
    Ddl ddl = ddl_of(planned, query);
    running = &ddl;
    PG_TRY();
    { next(planned, query, read_only, context, params, environment, receiver, completion); }
    PG_FINALLY();
    { running = outer; }
    PG_END_TRY();
}

void process(PlannedStmt* planned, const char* query, bool read_only, ProcessUtilityContext context,
             ParamListInfo params, QueryEnvironment* environment, DestReceiver* receiver,
             QueryCompletion* completion) {
    const Node* statement = planned->utilityStmt;
    const bool prepared = is_commit_prepared(statement);
    const Oid database = database_to_clear(statement);
    if (is_ddl(statement) && !OidIsValid(database))
        return process_ddl(planned, query, read_only, context, params, environment, receiver, completion);
    if (!OidIsValid(database)) {
        next(planned, query, read_only, context, params, environment, receiver, completion);
        if (prepared) shared::wake_sender();
        return;
    }
    shared::suspend_database(database);
    PG_TRY();
    { next(planned, query, read_only, context, params, environment, receiver, completion); }
    PG_FINALLY();
    { shared::resume_database(database); }
    PG_END_TRY();
}

}  // namespace

Ddl* running_ddl() {
    return running;
}

void install() {
    previous = ProcessUtility_hook;
    ProcessUtility_hook = process;
}

}  // namespace onerepl::hooks
