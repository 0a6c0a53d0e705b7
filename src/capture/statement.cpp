// Statements of SQL in the log. The event triggers of 61_schema_changes.sql and onerepl_execute_ddl() come
// here.
#include "capture/statement.h"

#include "capture/captured_table.h"
#include "capture/description_store.h"
#include "capture/running_ddl.h"
#include "capture/transaction_log.h"
#include "log/layout.h"
#include "pg/compat.h"
#include "pg/error_boundary.h"
#include "pg/fixed_settings.h"

extern "C" {
#include "access/table.h"
#include "catalog/pg_inherits.h"
#include "commands/extension.h"
#include "executor/spi.h"
#include "lib/stringinfo.h"
#include "libpq/pqformat.h"
#include "mb/pg_wchar.h"
#include "optimizer/optimizer.h"
#include "rewrite/rewriteHandler.h"
#include "storage/bufmgr.h"
#include "storage/lmgr.h"
#include "tcop/tcopprot.h"
#include "tcop/utility.h"
#include "parser/parser.h"
#include "port/pg_bswap.h"
#include "utils/builtins.h"
#include "utils/guc.h"

PG_FUNCTION_INFO_V1(onerepl_record_running_statement);
PG_FUNCTION_INFO_V1(onerepl_record_cascade);
PG_FUNCTION_INFO_V1(onerepl_has_other_values);
PG_FUNCTION_INFO_V1(onerepl_record_description);
PG_FUNCTION_INFO_V1(onerepl_record_drop);
PG_FUNCTION_INFO_V1(onerepl_execute_ddl);
}

namespace onerepl::capture {

namespace {

// ---------------------------------------------------------------- which statements

bool changes_shape(AlterTableType part) {
    switch (part) {
        case AT_AddColumn:
        case AT_DropColumn:
        case AT_AlterColumnType:
        case AT_ColumnDefault:
        case AT_DropNotNull:
        case AT_SetNotNull:
        case AT_DropExpression:
        case AT_AddIdentity:
        case AT_SetIdentity:
        case AT_DropIdentity:
        case AT_AddConstraint:
        case AT_AlterConstraint:
        case AT_ValidateConstraint:
        case AT_DropConstraint:
        case AT_AddIndexConstraint:
        case AT_ReplicaIdentity:
        // What it gets and loses with another table or type from now on.
        case AT_AddInherit:
        case AT_DropInherit:
        case AT_AddOf:
        case AT_DropOf:
            return true;
        default:
            return compat::sets_expression(part);
    }
}

bool changes_shape(const AlterTableStmt* statement) {
    ListCell* cell;
    foreach (cell, statement->cmds)
        if (changes_shape(static_cast<const AlterTableCmd*>(lfirst(cell))->subtype)) return true;
    return false;
}

/// A statement that is captured by itself: it makes a table, or changes its name, schema, columns, key or
/// constraints. What concerns one database only (triggers, storage, owner, rights, partitions) is not.
bool changes_shape(const Node* statement) {
    switch (nodeTag(statement)) {
        case T_AlterTableStmt:
            return changes_shape(reinterpret_cast<const AlterTableStmt*>(statement));
        case T_RenameStmt:
        case T_AlterObjectSchemaStmt:
        case T_CreateStmt:
            return true;
        default:
            return false;
    }
}

/// Statements whose effect on rows is captured, that decide about the transaction, or that change what the
/// names in the next one mean.
bool is_refused(const Node* statement) {
    switch (nodeTag(statement)) {
        case T_SelectStmt:
        case T_InsertStmt:
        case T_UpdateStmt:
        case T_DeleteStmt:
        case T_MergeStmt:
        case T_TruncateStmt:
        case T_CopyStmt:
        case T_DoStmt:
        case T_CallStmt:
        case T_ExecuteStmt:
        case T_ExplainStmt:
        case T_TransactionStmt:
        case T_VariableSetStmt:
            return true;
        default:
            return false;
    }
}

// ---------------------------------------------------------------- recording

void put_text(StringInfo out, const char* text, std::size_t size) {
    pq_sendint32(out, static_cast<uint32>(size));
    appendBinaryStringInfo(out, text, static_cast<int>(size));
}

/// A statement and how it was read.
struct Text {
    const char* search_path;
    bool conforming_strings;
    const char* text;
    std::size_t size;
};

/// The settings that it depends on, where they are not the usual ones (pg/fixed_settings.h).
void put_settings(StringInfo out, bool conforming_strings) {
    const int at = out->len;
    std::uint16_t count = 0;
    pq_sendint16(out, 0);
    for (const pg::FixedSetting& setting : pg::fixed_settings()) {
        if (!setting.is(pg::Settings::of_statements)) continue;
        const bool is_of_strings = strcmp(setting.name, "standard_conforming_strings") == 0;
        if (is_of_strings ? conforming_strings : setting.holds()) continue;
        const char* const value = is_of_strings ? "off" : GetConfigOption(setting.name, false, false);
        put_text(out, setting.name, strlen(setting.name));
        put_text(out, value, strlen(value));
        count++;
    }
    const std::uint16_t sent = pg_hton16(count);
    memcpy(out->data + at, &sent, sizeof sent);
}

/// As on the wire, after the description's id.
void record(std::uint64_t description, bool dropped, const Text& statement) {
    StringInfoData out;
    initStringInfo(&out);
    const char* const encoding = GetDatabaseEncodingName();
    put_text(&out, encoding, strlen(encoding));
    put_text(&out, statement.search_path, strlen(statement.search_path));
    put_settings(&out, statement.conforming_strings);
    put_text(&out, statement.text, statement.size);
    record_statement(description, description != 0, dropped, out.data, static_cast<std::size_t>(out.len));
    pfree(out.data);
}

/// The text of the statement, of all that was sent with it.
Text cut_out(const Ddl& ddl) {
    Text cut{ddl.search_path, ddl.conforming_strings, ddl.text, ddl.size};
    while (cut.size > 0 && isspace(static_cast<unsigned char>(*cut.text))) {
        cut.text++;
        cut.size--;
    }
    return cut;
}

bool is_of_schema(const Node* statement) {
    return IsA(statement, RenameStmt) &&
           reinterpret_cast<const RenameStmt*>(statement)->renameType == OBJECT_SCHEMA;
}

/// PostgreSQL lets writers of a schema's tables go on while the schema gets another name. What they have
/// captured under the old one must come before it (P4), so they end first; and what comes later has to wait.
/// Plain.
void wait_for_writers(Oid relation) {
    LockRelationOid(relation, ShareRowExclusiveLock);
    find_all_inheritors(relation, ShareRowExclusiveLock, nullptr);
}

/// Whether the table is as its newest description says.
bool is_as_described(Relation table, const FoundDescription& newest) {
    return pg::entry([&] {
        const Bytes now = log::encode_layout(log::layout_of(table));
        return now.size() == newest.size && memcmp(now.data(), newest.layout, newest.size) == 0;
    });
}

/// Whether rows have got a value in the attribute, which is new, that is not the same wherever and whenever
/// its default is evaluated.
bool gave_other_values(Relation table, int number) {
    const Form_pg_attribute attribute = TupleDescAttr(RelationGetDescr(table), number - 1);
    if (attribute->attisdropped || !attribute->atthasdef || attribute->attgenerated != '\0') return false;
    if (table->rd_rel->relkind == RELKIND_RELATION &&
        (!attribute->atthasmissing || RelationGetNumberOfBlocks(table) == 0))
        return false;
    return contain_mutable_functions(build_column_default(table, number));
}

/// Attributes that the description has; all there can be if it cannot be read.
int described_attributes(const FoundDescription& description) {
    return pg::entry([&] {
        const auto* const bytes = reinterpret_cast<const std::uint8_t*>(description.layout);
        const auto layout = log::decode_layout(ByteView(bytes, description.size), description.id);
        return layout ? static_cast<int>(layout->columns.size()) : MaxHeapAttributeNumber;
    });
}

/// Plain.
bool has_other_values(Oid relation) {
    const FoundDescription newest = newest_description(relation);
    if (creating_extension || newest.id == 0) return false;
    Relation table = table_open(relation, AccessShareLock);
    bool other = false;
    for (int i = described_attributes(newest); i < RelationGetDescr(table)->natts; i++)
        other |= gave_other_values(table, i + 1);
    table_close(table, NoLock);
    return other;
}

/// A statement that changes this tracked table, and has done it: it is recorded under the table's old
/// description, and the new one after it. Plain.
void record_statement(Relation table, const FoundDescription& newest, const Text& statement) {
    // One that was never described, because no row has changed, is told as it is now.
    const std::uint64_t before = newest.id != 0 ? newest.id : captured_table(table).description;
    if (!given().running) record(before, false, statement);
    captured_table(table);
}

/// One that changes several schemas' tables' names is recorded for each of them, others once. Plain.
bool is_to_be_recorded(const Ddl* ddl) {
    return ddl != nullptr && changes_shape(ddl->statement) &&
           (!ddl->recorded || is_of_schema(ddl->statement));
}

/// What an extension's script does is the extension's (P21). Plain.
void record_running(Oid relation, bool direct) {
    if (creating_extension || !begin_capture()) return;
    Ddl* const ddl = running_ddl();
    const bool to_be_recorded = is_to_be_recorded(ddl);
    if (to_be_recorded && is_of_schema(ddl->statement)) wait_for_writers(relation);
    const FoundDescription newest = newest_description(relation);
    Relation table = table_open(relation, AccessShareLock);
    if (to_be_recorded && (direct || !is_as_described(table, newest))) {
        record_statement(table, newest, cut_out(*ddl));
        ddl->recorded = true;
    } else if (newest.id != 0) {
        captured_table(table);
    }
    table_close(table, NoLock);
}

/// Plain.
void record_cascade(Oid relation, const char* text) {
    if (creating_extension || !begin_capture()) return;
    Relation table = table_open(relation, AccessShareLock);
    record_statement(table, newest_description(relation), {"", true, text, strlen(text)});
    table_close(table, NoLock);
}

/// Records the table's description, whether it is new or not.
void record_description_of(Oid relation) {
    if (!begin_capture()) return;
    const std::uint64_t before = newest_description(relation).id;
    Relation table = table_open(relation, AccessShareLock);
    const std::uint64_t now = captured_table(table).description;
    if (now == before) record_description(now);
    table_close(table, NoLock);
}

// ---------------------------------------------------------------- the administrator's statements

void execute_ddl(const char* text, const char* search_path) {
    check_statements(text);
    if (!begin_capture())
        ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                        errmsg("capture is stopped: the statement would not reach the centrals")));
    execute_statements(search_path, text, Recording::all);
}

}  // namespace

void check_statements(const char* text) {
    List* const statements = pg_parse_query(text);
    if (statements == NIL)
        ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("there is no statement")));
    ListCell* cell;
    foreach (cell, statements) {
        const Node* const statement = static_cast<const RawStmt*>(lfirst(cell))->stmt;
        if (is_refused(statement))
            ereport(
                ERROR,
                (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                 errmsg("%s is not executed on both sides",
                        GetCommandTagName(CreateCommandTag(const_cast<Node*>(statement)))),
                 errhint("Give statements that define objects. Changes of rows of tracked tables go to the "
                         "centrals by themselves.")));
    }
}

void execute_statements(const char* search_path, const char* text, Recording recording) {
    const int level = NewGUCNestLevel();
    set_config_option("search_path", search_path, PGC_USERSET, PGC_S_SESSION, GUC_ACTION_SAVE, true, 0,
                      false);
    if (recording == Recording::all && begin_capture())
        record(0, false, {effective_search_path(), standard_conforming_strings, text, strlen(text)});
    SPI_connect();
    const Given before = given();
    given() = {recording != Recording::changes, false};
    PG_TRY();
    { SPI_execute(text, false, 0); }
    PG_FINALLY();
    { given() = before; }
    PG_END_TRY();
    SPI_finish();
    AtEOXact_GUC(false, level);
}

}  // namespace onerepl::capture

extern "C" {

PGDLLEXPORT Datum onerepl_record_running_statement(PG_FUNCTION_ARGS) {
    onerepl::capture::record_running(PG_GETARG_OID(0), PG_GETARG_BOOL(1));
    PG_RETURN_VOID();
}

PGDLLEXPORT Datum onerepl_has_other_values(PG_FUNCTION_ARGS) {
    PG_RETURN_BOOL(onerepl::capture::has_other_values(PG_GETARG_OID(0)));
}

PGDLLEXPORT Datum onerepl_record_cascade(PG_FUNCTION_ARGS) {
    onerepl::capture::record_cascade(PG_GETARG_OID(0), text_to_cstring(PG_GETARG_TEXT_PP(1)));
    PG_RETURN_VOID();
}

PGDLLEXPORT Datum onerepl_record_description(PG_FUNCTION_ARGS) {
    onerepl::capture::record_description_of(PG_GETARG_OID(0));
    PG_RETURN_VOID();
}

PGDLLEXPORT Datum onerepl_record_drop(PG_FUNCTION_ARGS) {
    using namespace onerepl::capture;
    const std::uint64_t description = newest_description(PG_GETARG_OID(0)).id;
    if (description != 0 && begin_capture()) record(description, true, {"", true, "", 0});
    PG_RETURN_VOID();
}

PGDLLEXPORT Datum onerepl_execute_ddl(PG_FUNCTION_ARGS) {
    onerepl::capture::execute_ddl(text_to_cstring(PG_GETARG_TEXT_PP(0)),
                                  text_to_cstring(PG_GETARG_TEXT_PP(1)));
    PG_RETURN_VOID();
}

}  // extern "C"
