// Executing the remote's statements, or telling of them.
#include "apply/statement.h"

#include "apply/truncate.h"
#include "capture/statement.h"
#include "pg/journal.h"
#include "pg/spi.h"

extern "C" {
#include "catalog/namespace.h"
#include "catalog/pg_class.h"
#include "catalog/pg_namespace.h"
#include "mb/pg_wchar.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"
}

namespace onerepl::apply {

namespace {

std::string quoted(const TableDescription& table) {
    return pg::call([&] { return quote_qualified_identifier(table.schema.c_str(), table.name.c_str()); });
}

/// Plain.
Oid owner_of(int cache, Oid object, AttrNumber column) {
    HeapTuple tuple = SearchSysCache1(cache, ObjectIdGetDatum(object));
    if (!HeapTupleIsValid(tuple)) elog(ERROR, "object %u is gone", object);
    bool is_null;
    const Oid owner = DatumGetObjectId(SysCacheGetAttr(cache, tuple, column, &is_null));
    ReleaseSysCache(tuple);
    return owner;
}

/// The table's owner; that of its schema if there is no such table, so that the statement may make it.
Oid owner_of_table(const Target& target) {
    return pg::call([&] {
        const Oid relation = find_relation(target);
        if (OidIsValid(relation)) return owner_of(RELOID, relation, Anum_pg_class_relowner);
        const Oid schema = get_namespace_oid(target.schema.c_str(), false);
        return owner_of(NAMESPACEOID, schema, Anum_pg_namespace_nspowner);
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

[[noreturn]] void refuse(const std::string& text) {
    throw pg::Error(
        "55000",
        "the remote's administrator wants a statement to be executed, and this link does not do that",
        "If it is wanted here, execute it yourself and resolve this record with 'skip'; or let the "
        "link execute what comes with onerepl_set_ddl(link, 'apply'), and retry.",
        text);
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
    if (!executes && !statement.captured) refuse(text);
    if (!executes)
        return tell(
            link, n, Level::information,
            "the remote changed its table " + quoted(target->description) + ": " + text,
            "If the table here does not fit, the link stops at the first row that can not be written.");
    if (target != nullptr && is_elsewhere(*target)) refuse_elsewhere(*target, text);
    const std::string search_path = to_server(statement.search_path, encoding);
    const Oid owner = statement.captured ? owner_of_table(*target) : owner_of_extension();
    // For a further central.
    const capture::Recording recording = statement.captured ? capture::Recording::changes
                                         : is_a_remote()    ? capture::Recording::all
                                                            : capture::Recording::none;
    run_as(owner, [&] {
        pg::call([&] { capture::execute_statements(search_path.c_str(), text.c_str(), recording); });
    });
    tell(link, n, Level::information, "executed as on the remote: " + text);
}

}  // namespace onerepl::apply
