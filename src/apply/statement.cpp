// Executing the remote's statements, or telling of them.
#include "apply/statement.h"

#include "apply/rights.h"
#include "capture/statement.h"
#include "pg/journal.h"
#include "pg/spi.h"
#include "pg/transaction.h"

extern "C" {
#include "access/htup_details.h"
#include "catalog/namespace.h"
#include "catalog/pg_namespace.h"
#include "mb/pg_wchar.h"
#include "nodes/parsenodes.h"
#include "tcop/tcopprot.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"
}

namespace onerepl::apply {

namespace {

std::string quoted(const TableDescription& table) {
    return pg::call([&] { return quote_qualified_identifier(table.schema.c_str(), table.name.c_str()); });
}

/// Plain.
Oid owner_of_schema(const char* name) {
    const Oid schema = get_namespace_oid(name, false);
    HeapTuple tuple = SearchSysCache1(NAMESPACEOID, ObjectIdGetDatum(schema));
    if (!HeapTupleIsValid(tuple)) elog(ERROR, "schema %u is gone", schema);
    const Oid owner = reinterpret_cast<Form_pg_namespace>(GETSTRUCT(tuple))->nspowner;
    ReleaseSysCache(tuple);
    return owner;
}

/// The table's owner; that of its schema if the statement is about that, or if there is no such table, so
/// that the statement may make it.
Oid owner_of_named(const Target& target, bool whole_schema) {
    return pg::call([&] {
        const Oid relation = whole_schema ? InvalidOid : find_relation(target);
        return OidIsValid(relation) ? owner_of(relation) : owner_of_schema(target.schema.c_str());
    });
}

Oid owner_of_extension() {
    Oid owner = InvalidOid;
    pg::query("SELECT extowner FROM pg_catalog.pg_extension WHERE extname = 'onerepl'", {},
              [&](const pg::Row& row) { owner = row.oid(0); });
    return owner;
}

bool is_a_remote() {
    return pg::query_int8("SELECT 1::int8 FROM onerepl.link WHERE role = 'remote' LIMIT 1").has_value();
}

void tell(int link, Number n, Level level, std::string message, std::string hint = {}) {
    pg::write_journal_entry(link, {level, "P17", std::move(message), std::move(hint), {n, n}});
}

/// The statement's text names the remote's table.
bool is_elsewhere(const Target& target) {
    return target.has_branch || target.schema != target.description.schema ||
           target.name != target.description.name;
}

[[noreturn]] void refuse_elsewhere(const Target& target, const std::string& text) {
    throw pg::Error("0A000",
                    "the remote changed its table " + quoted(target.description) + ", which is " +
                        target.schema + "." + target.name + " here",
                    "Make the same change here, and resolve this record with 'skip'.", text);
}

struct PlainName {
    const char* schema;  // null: as it was
    const char* table;
    bool whole_schema;
};

/// Plain: what the statement makes of its table's name.
PlainName plain_new_name(const char* text) {
    PlainName name{nullptr, nullptr, false};
    ListCell* cell;
    foreach (cell, pg_parse_query(text)) {
        const Node* const statement = static_cast<const RawStmt*>(lfirst(cell))->stmt;
        if (IsA(statement, RenameStmt)) {
            const auto* rename = reinterpret_cast<const RenameStmt*>(statement);
            if (rename->renameType == OBJECT_TABLE) name.table = rename->newname;
            name.whole_schema = rename->renameType == OBJECT_SCHEMA;
            if (name.whole_schema) name.schema = rename->newname;
        } else if (IsA(statement, AlterObjectSchemaStmt)) {
            name.schema = reinterpret_cast<const AlterObjectSchemaStmt*>(statement)->newschema;
        }
    }
    return name;
}

struct Name {
    std::string schema;  // empty: as it was
    std::string table;
    bool whole_schema = false;
};

/// The remote may be of a newer version of PostgreSQL, with statements that can not be parsed here; those
/// that give another name always can.
Name new_name(const std::string& text) {
    Name name;
    try {
        pg::in_subtransaction([&] {
            const PlainName plain = pg::call([&] { return plain_new_name(text.c_str()); });
            if (plain.schema != nullptr) name.schema = plain.schema;
            if (plain.table != nullptr) name.table = plain.table;
            name.whole_schema = plain.whole_schema;
        });
    } catch (const pg::Error& error) {
        if (error.sqlstate() != "42601") throw;
    }
    return name;
}

/// The rows of a table that got another name go to the table of that name from now on. If there is one, and
/// the one of the old name is still here, that is another table, as when two tables change their names.
void check_new_name(int link, const Target& target, const Name& name, const std::string& text) {
    if (name.schema.empty() && name.table.empty()) return;
    Target renamed;
    renamed.encoding = target.encoding;
    renamed.description.schema = name.schema.empty() ? target.description.schema : name.schema;
    renamed.description.name = name.table.empty() ? target.description.name : name.table;
    find_place(link, renamed);
    const Oid before = pg::call([&] { return find_relation(target); });
    const Oid behind = pg::call([&] { return find_relation(renamed); });
    if (!OidIsValid(before) || !OidIsValid(behind) || before == behind) return;
    throw pg::Error("42P07",
                    "the remote renamed its table " + quoted(target.description) + " to " +
                        quoted(renamed.description) + ", whose rows go to another table here",
                    "Rename the tables here as on the remote, and resolve this record with 'skip'.", text);
}

/// A schema that got another name has a record for each of its tracked tables; executing one was enough.
bool is_done(const Target& target, const Name& name) {
    if (!name.whole_schema) return false;
    return pg::call([&] {
        return !OidIsValid(get_namespace_oid(target.schema.c_str(), true)) &&
               OidIsValid(get_namespace_oid(name.schema.c_str(), true));
    });
}

[[noreturn]] void refuse(const std::string& text) {
    throw pg::Error(
        "55000",
        "the remote's administrator wants a statement to be executed, and this link does not do that",
        "If it is wanted here, execute it yourself and resolve this record with 'skip'; or let the "
        "link execute what comes with onerepl_set_ddl(link, 'apply'), and retry.",
        text);
}

struct Sql {
    std::string text;
    std::string search_path;
};

/// `target`: of the table that the statement was captured for; null: the remote's administrator gave it to
/// both sides.
void execute(int link, Number n, const Sql& sql, const Target* target) {
    Oid role = InvalidOid;
    if (target != nullptr) {
        if (is_elsewhere(*target)) refuse_elsewhere(*target, sql.text);
        const Name name = new_name(sql.text);
        if (is_done(*target, name)) return;
        role = owner_of_named(*target, name.whole_schema);
    } else {
        role = owner_of_extension();
    }
    // For a further central.
    const capture::Recording recording = target != nullptr ? capture::Recording::changes
                                         : is_a_remote()   ? capture::Recording::all
                                                           : capture::Recording::none;
    run_as(role, [&] {
        pg::call([&] { capture::execute_statements(sql.search_path.c_str(), sql.text.c_str(), recording); });
    });
    tell(link, n, Level::information, "executed as on the remote: " + sql.text);
}

}  // namespace

void apply_statement(int link, Number n, const Statement& statement, const Target* target) {
    if (statement.dropped)
        return tell(link, n, Level::warning,
                    "the remote dropped its table " + quoted(target->description) + "; it stays here");
    const std::string encoding_name(statement.encoding.begin(), statement.encoding.end());
    const int encoding = pg_char_to_encoding(encoding_name.c_str());
    if (encoding < 0)
        throw pg::Error("22023", "encoding \"" + encoding_name + "\" of the remote is not known here");
    const std::string text = to_server(statement.text, encoding);
    const bool executes =
        pg::query_text("SELECT ddl FROM onerepl.link WHERE id = $1", {link}).value_or("") == "apply";
    if (executes) return execute(link, n, {text, to_server(statement.search_path, encoding)}, target);
    if (!statement.captured) refuse(text);
    check_new_name(link, *target, new_name(text), text);
    tell(link, n, Level::information,
         "the remote changed its table " + quoted(target->description) + ": " + text,
         "If the table here does not fit, the link stops at the first row that can not be written.");
}

}  // namespace onerepl::apply
