// Our workers are connected to their databases and use the extension's tables. DROP EXTENSION, DROP DATABASE,
// ALTER DATABASE ... RENAME / SET TABLESPACE and CREATE DATABASE ... TEMPLATE want nobody there: the workers
// make way. Plain C in here: standard_ProcessUtility may longjmp.
#include "worker/hooks.h"

#include "capture/running_ddl.h"
#include "pg/compat.h"
#include "pg/rights.h"
#include "shared/memory.h"

extern "C" {
#include "access/htup_details.h"
#include "catalog/pg_authid.h"
#include "catalog/pg_database.h"
#include "catalog/pg_type.h"
#include "commands/dbcommands.h"
#include "commands/defrem.h"
#include "commands/event_trigger.h"
#include "commands/extension.h"
#include "commands/trigger.h"
#include "catalog/namespace.h"
#include "executor/spi.h"
#include "nodes/parsenodes.h"
#include "nodes/value.h"
#include "storage/lmgr.h"
#include "tcop/utility.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"
}

namespace onerepl::hooks {

namespace {

ProcessUtility_hook_type previous = nullptr;
constexpr const char* capture_trigger = "!onerepl_capture";

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

/// A statement that our event triggers do not see, although it, or what it makes possible, may change a
/// tracked table: none fires for statements about event triggers, nor for any under event_triggers = off.
bool goes_unwatched(Node* statement) {
    return compat::event_triggers_are_off(statement) || IsA(statement, AlterEventTrigStmt) ||
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

void make_way_for_attach(const RangeVar* parent_name, const RangeVar* child_name) {
    const Oid parent = RangeVarGetRelid(parent_name, NoLock, true);
    const Oid child = RangeVarGetRelid(child_name, NoLock, true);
    // PostgreSQL refuses the statement with its own words otherwise; and nobody may make a table of somebody
    // else's untracked, or wait for its lock, by a statement that is refused.
    if (!OidIsValid(parent) || !OidIsValid(child) || !compat::owns_table(parent, GetUserId()) ||
        !compat::owns_table(child, GetUserId()) || !OidIsValid(get_trigger_oid(child, capture_trigger, true)))
        return;
    LockRelationOid(parent, ShareUpdateExclusiveLock);  // as the statement does, in its order
    const pg::Rights caller = pg::become(pg::owner_of_schema("onerepl"), 0, false);
    Oid types[] = {REGCLASSOID, REGCLASSOID};
    Datum values[] = {ObjectIdGetDatum(parent), ObjectIdGetDatum(child)};
    SPI_connect();
    if (SPI_execute_with_args("SELECT onerepl.make_way_for_attach($1, $2)", 2, types, values, nullptr, false,
                              0) < 0)
        elog(ERROR, "could not make way for ATTACH PARTITION");
    SPI_finish();
    pg::return_from(caller);
}

/// Nothing that works without onerepl fails with it: a tracked table can become a partition of a tracked one.
void make_way_for_attach(const Node* statement) {
    if (!IsA(statement, AlterTableStmt)) return;
    const auto* alter = reinterpret_cast<const AlterTableStmt*>(statement);
    ListCell* cell;
    foreach (cell, alter->cmds) {
        const auto* command = static_cast<const AlterTableCmd*>(lfirst(cell));
        if (command->subtype == AT_AttachPartition && command->def && IsA(command->def, PartitionCmd))
            make_way_for_attach(alter->relation, reinterpret_cast<const PartitionCmd*>(command->def)->name);
    }
}

void process_ddl(PlannedStmt* planned, const char* query, bool read_only, ProcessUtilityContext context,
                 ParamListInfo params, QueryEnvironment* environment, DestReceiver* receiver,
                 QueryCompletion* completion) {
    capture::Ddl ddl = capture::ddl_of(planned, query);
    capture::Ddl* const outer = capture::set_running_ddl(&ddl);
    PG_TRY();
    {
        make_way_for_attach(planned->utilityStmt);
        next(planned, query, read_only, context, params, environment, receiver, completion);
    }
    PG_FINALLY();
    { capture::set_running_ddl(outer); }
    PG_END_TRY();
}

void process_any(PlannedStmt* planned, const char* query, bool read_only, ProcessUtilityContext context,
                 ParamListInfo params, QueryEnvironment* environment, DestReceiver* receiver,
                 QueryCompletion* completion) {
    const Node* statement = planned->utilityStmt;
    const bool prepared = is_commit_prepared(statement);
    const Oid database = database_to_clear(statement);
    if (capture::is_ddl(statement) && !OidIsValid(database))
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

void process(PlannedStmt* planned, const char* query, bool read_only, ProcessUtilityContext context,
             ParamListInfo params, QueryEnvironment* environment, DestReceiver* receiver,
             QueryCompletion* completion) {
    capture::Given& given = capture::given();
    const capture::Given before = given;
    // A part of a statement is what the statement is.
    if ((!before.expected && !before.running) || context == PROCESS_UTILITY_SUBCOMMAND)
        return process_any(planned, query, read_only, context, params, environment, receiver, completion);
    given = {false, before.expected};
    PG_TRY();
    { process_any(planned, query, read_only, context, params, environment, receiver, completion); }
    PG_FINALLY();
    { given = before; }
    PG_END_TRY();
}

}  // namespace

void install() {
    previous = ProcessUtility_hook;
    ProcessUtility_hook = process;
}

}  // namespace onerepl::hooks
