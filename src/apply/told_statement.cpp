// Executing the remote's statements, or telling of them.
#include "apply/told_statement.h"

#include "apply/rows/map_columns.h"
#include "apply/tables/reach.h"
#include "apply/tables/relation_maps.h"
#include "apply/told_reach.h"
#include "apply/told_rights.h"
#include "capture/statement.h"
#include "pg/fixed_settings.h"
#include "pg/journal_buffer.h"
#include "pg/rights.h"
#include "pg/spi.h"

extern "C" {
#include "catalog/namespace.h"
#include "mb/pg_wchar.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"
}

#include <utility>

namespace onerepl::apply {

namespace {

std::string quoted(const TableDescription& table) {
    return pg::call([&] { return quote_qualified_identifier(table.schema.c_str(), table.name.c_str()); });
}

bool is_a_remote() {
    return pg::query_int8("SELECT 1::int8 FROM onerepl.link WHERE role = 'remote' LIMIT 1").has_value();
}

void tell(int link, Number n, Level level, std::string message, std::string hint = {}) {
    pg::write_journal_entry(link, {level, "P17", std::move(message), std::move(hint), {n, n}});
}

/// The statement's text names the remote's table.
bool is_elsewhere(const RelationMap& target) {
    return target.has_branch || target.schema != target.description.schema ||
           target.name != target.description.name;
}

[[noreturn]] void refuse_elsewhere(const RelationMap& target, const Rename& name, const std::string& text) {
    throw pg::Error(
        "0A000",
        "the remote changed its table " + quoted(target.description) +
            (is_elsewhere(target) ? ", which is " + target.schema + "." + target.name + " here"
                                  : ", whose rows would go elsewhere here"),
        name.empty() ? "Make the same change here, and resolve this record with 'skip'."
                     : "Say where the rows of the new name go (onerepl_set_target), and resolve this record "
                       "with 'skip'.",
        text);
}

/// Where the rows of a table that got another name go.
RelationMap map_after(int link, const RelationMap& target, const Rename& name) {
    RelationMap renamed;
    renamed.encoding = target.encoding;
    renamed.description.schema = name.schema.empty() ? target.description.schema : name.schema;
    renamed.description.name = name.table.empty() ? target.description.name : name.table;
    find_place(link, renamed);
    return renamed;
}

/// P18: a link gives no table a name that it may not write.
void reach_renamed(int link, const RelationMap& target, const Rename& name) {
    RelationMap renamed = map_after(link, target, name);
    reach(link, renamed);
    if (!name.old_schema.empty())
        pg::execute("SELECT onerepl.check_told_schema($1, $2)", {link, name.schema});
}

/// The rows of a table that got another name go to the table of that name from now on. While the one of the
/// old name is still here, that is another table, as when two tables change their names; or there is none,
/// and the next table that gets the old name there would find the rows of this one here.
void check_rename(int link, const RelationMap& target, const Rename& name, const std::string& text) {
    if (name.empty()) return;
    const RelationMap renamed = map_after(link, target, name);
    const Oid before = pg::call([&] { return find_relation(target, AccessShareLock); });
    const Oid after = pg::call([&] { return find_relation(renamed, AccessShareLock); });
    if (!OidIsValid(before) || before == after) return;
    const std::string what =
        "the remote renamed its table " + quoted(target.description) + " to " + quoted(renamed.description);
    const bool is_missing = !OidIsValid(after);
    throw pg::Error(is_missing ? "42P01" : "42P07",
                    what + (is_missing ? ", which is not here" : ", whose rows go to another table here"),
                    "Rename the tables here as on the remote, or say with onerepl_set_target which one the "
                    "new name means; "
                    "and resolve this record with 'skip'.",
                    text);
}

/// A schema that got another name has a record for each of its tracked tables; executing one was enough.
bool is_done(const Rename& name) {
    if (name.old_schema.empty()) return false;
    return pg::call([&] {
        return !OidIsValid(get_namespace_oid(name.old_schema.c_str(), true)) &&
               OidIsValid(get_namespace_oid(name.schema.c_str(), true));
    });
}

/// So is telling (P16). Between two of them there is the new description of a table.
bool is_told(ToldStatement& last, Number n, const Rename& name, const std::string& text) {
    const bool same = last.text == text && n > last.n && n - last.n <= 2;
    last = {n, text};
    return same && !name.old_schema.empty();
}

/// The tables of others would get another name, too.
void check_others_in(const Rename& name, int link, const std::string& text) {
    if (name.old_schema.empty()) return;
    const auto other = pg::query_text(
        "SELECT l.name FROM onerepl.guarded AS g JOIN onerepl.link AS l ON l.id = g.link"
        " JOIN pg_catalog.pg_class AS c ON c.oid = g.relation"
        " JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace"
        " WHERE n.nspname = $2 AND g.link <> $1 LIMIT 1",
        {link, name.old_schema});
    if (!other) return;
    throw pg::Error("0A000",
                    "the remote renamed its schema " + name.old_schema + ", where link \"" + *other +
                        "\" has tables here, too",
                    "Let the new name mean this schema (onerepl_set_target), and resolve this record with "
                    "'skip'.",
                    text);
}

[[noreturn]] void refuse(const std::string& text) {
    throw pg::Error(
        "55000",
        "the remote's administrator wants a statement to be executed, and this link does not do that",
        "If it is wanted here, execute it yourself and resolve this record with 'skip'; or let the "
        "link execute what comes with onerepl_set_ddl(link, 'apply'), and retry.",
        text);
}

/// The remote has made the table just now, so one that is here already is another, whatever IF NOT EXISTS says.
void check_is_new(const RelationMap& target, const std::string& text) {
    if (!OidIsValid(pg::call([&] { return find_relation(target, AccessShareLock); }))) return;
    throw pg::Error(
        "42P07", "the remote made table " + quoted(target.description) + ", and there is one here already",
        "If it is what is left of a table that the remote has dropped, drop it here and retry. If "
        "it was made here for this one, resolve this record with 'skip'.",
        text);
}

struct SessionSetting {
    std::string name;
    std::string value;
};

/// In this database's encoding.
struct Sql {
    std::string text;
    std::string search_path;
    std::vector<SessionSetting> settings;
};

Sql sql_of(const Statement& statement) {
    const std::string encoding_name(statement.encoding.begin(), statement.encoding.end());
    const int encoding = pg_char_to_encoding(encoding_name.c_str());
    if (encoding < 0)
        throw pg::Error("22023", "encoding \"" + encoding_name + "\" of the remote is not known here");
    Sql sql{to_server(statement.text, encoding), to_server(statement.search_path, encoding), {}};
    for (const Setting& setting : statement.settings)
        sql.settings.push_back({to_server(setting.name, encoding), to_server(setting.value, encoding)});
    return sql;
}

/// False: the value names a locale that is not here. Plain.
bool set_as_on_remote(const char* name, const char* value) {
    const pg::FixedSetting* const setting = pg::find_setting_of_statements(name);
    if (setting == nullptr)
        ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                        errmsg("the remote wants a statement to be executed under its setting \"%s\"", name),
                        errhint("Statements do not depend on it. Resolve this record with 'skip', and make "
                                "the change here yourself.")));
    return set_config_option(name, value, PGC_USERSET, PGC_S_SESSION, GUC_ACTION_SAVE, true,
                             setting->is_locale ? DEBUG1 : 0, false) > 0;
}

/// Does `work` under the settings that the remote executed the statement with. Gives those that could not be
/// had. Throws pg::Error.
std::string with_settings(const Sql& sql, const std::function<void()>& work) {
    std::string missing;
    int level = 0;
    pg::call([&] {
        level = NewGUCNestLevel();
        pg::fix_settings(pg::Settings::of_statements);
    });
    for (const SessionSetting& setting : sql.settings)
        if (!pg::call([&] { return set_as_on_remote(setting.name.c_str(), setting.value.c_str()); }))
            missing.append(missing.empty() ? "" : ", ")
                .append(setting.name)
                .append(" = '")
                .append(setting.value)
                .append("'");
    work();
    pg::call([&] { AtEOXact_GUC(false, level); });
    return missing;
}

Rename rename_of(const Sql& sql) {
    Rename name;
    with_settings(sql, [&] { name = rename_in(sql.text); });
    return name;
}

/// `target`: of the table that the statement was captured for; null: the remote's administrator gave it to
/// both sides.
Rename execute(int link, Number n, const Sql& sql, RelationMap* target, const Rename& name) {
    if (target != nullptr && (is_elsewhere(*target) || is_elsewhere(map_after(link, *target, name))))
        refuse_elsewhere(*target, name, sql.text);
    if (is_done(name)) return {};
    check_others_in(name, link, sql.text);
    if (!name.empty()) reach_renamed(link, *target, name);
    const Oid role = role_of_told(link, target, name, sql.text);
    check_path(role, sql.search_path, sql.text);
    // For a further central.
    const capture::Recording recording = target != nullptr ? capture::Recording::changes
                                         : is_a_remote()   ? capture::Recording::all
                                                           : capture::Recording::none;
    const std::string missing = with_settings(sql, [&] {
        check_told(link, sql.text, sql.search_path, target != nullptr);
        if (target != nullptr && name.made == target->description.name) check_is_new(*target, sql.text);
        const TellingBy telling(link);
        pg::run_as(role, [&] {
            pg::call(
                [&] { capture::execute_statements(sql.search_path.c_str(), sql.text.c_str(), recording); });
        });
    });
    if (missing.empty())
        tell(link, n, Level::information, "executed as on the remote: " + sql.text);
    else
        tell(link, n, Level::warning,
             "executed as on the remote, but for " + missing + ", which is not known here: " + sql.text,
             "If the statement makes values that depend on it, compare the table (onerepl_verify).");
    const Rename done = target != nullptr ? name : rename_of(sql);
    return done.old_schema.empty() ? Rename{} : done;
}

}  // namespace

Rename apply_statement(int link, Number n, const Statement& statement, RelationMap* target,
                       ToldStatement& told) {
    if (statement.dropped) {
        tell(link, n, Level::warning,
             "the remote dropped its table " + quoted(target->description) + "; it stays here");
        return {};
    }
    const Sql sql = sql_of(statement);
    const Rename name = statement.captured ? rename_of(sql) : Rename{};
    const bool executes =
        pg::query_text("SELECT ddl FROM onerepl.link WHERE id = $1", {link}).value_or("") == "apply";
    if (executes) return execute(link, n, sql, target, name);
    if (!statement.captured) refuse(sql.text);
    check_rename(link, *target, name, sql.text);
    if (!is_told(told, n, name, sql.text))
        tell(link, n, Level::information,
             "the remote changed its table " + quoted(target->description) + ": " + sql.text,
             "If the table here does not fit, the link stops at the first row that cannot be written.");
    return {};
}

}  // namespace onerepl::apply
