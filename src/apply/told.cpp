// Holding told statements to the link's reach.
#include "apply/told.h"

#include "capture/statement.h"
#include "pg/guard.h"
#include "pg/spi.h"

extern "C" {
#include "catalog/namespace.h"
#include "fmgr.h"
#include "nodes/parsenodes.h"
#include "tcop/tcopprot.h"
#include "utils/guc.h"
}

#include <vector>

namespace onerepl::apply {

namespace {

int telling_link = 0;

/// What a statement gives another name.
struct Renamed {
    Oid relation;
    const char* schema;  // a whole one
};

Renamed renamed_by(const Node* statement) {
    const RangeVar* table = nullptr;
    Renamed renamed{InvalidOid, nullptr};
    if (IsA(statement, RenameStmt)) {
        const auto* rename = reinterpret_cast<const RenameStmt*>(statement);
        table = rename->relation;
        if (rename->renameType == OBJECT_SCHEMA) renamed.schema = rename->subname;
    } else if (IsA(statement, AlterObjectSchemaStmt)) {
        table = reinterpret_cast<const AlterObjectSchemaStmt*>(statement)->relation;
    }
    if (table != nullptr) renamed.relation = RangeVarGetRelid(table, NoLock, true);
    return renamed;
}

/// Plain. One that does not exist yet is made by a statement before, which is looked at when it is done.
int find_renamed(const char* text, const char* search_path, Renamed* all, int most) {
    const int level = NewGUCNestLevel();
    set_config_option("search_path", search_path, PGC_USERSET, PGC_S_SESSION, GUC_ACTION_SAVE, true, 0,
                      false);
    int count = 0;
    ListCell* cell;
    foreach (cell, pg_parse_query(text)) {
        const Renamed renamed = renamed_by(static_cast<const RawStmt*>(lfirst(cell))->stmt);
        if (!OidIsValid(renamed.relation) && renamed.schema == nullptr) continue;
        if (count == most)
            ereport(ERROR, (errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
                            errmsg("the remote gives more than %d tables other names in one record", most)));
        all[count++] = renamed;
    }
    AtEOXact_GUC(false, level);
    return count;
}

}  // namespace

TellingBy::TellingBy(int link) {
    telling_link = link;
}

TellingBy::~TellingBy() {
    telling_link = 0;
}

void check_told(int link, const std::string& text, const std::string& search_path) {
    constexpr int most = 100;
    Renamed all[most];
    const int count = pg::call([&] {
        capture::check_statements(text.c_str());
        return find_renamed(text.c_str(), search_path.c_str(), all, most);
    });
    for (int i = 0; i < count; i++) {
        if (OidIsValid(all[i].relation))
            pg::execute("SELECT onerepl.check_told_table($1, $2)", {link, pg::Param::oid(all[i].relation)});
        if (all[i].schema != nullptr)
            pg::execute("SELECT onerepl.check_told_schema($1, $2)", {link, all[i].schema});
    }
}

}  // namespace onerepl::apply

extern "C" {
PG_FUNCTION_INFO_V1(onerepl_telling_link);
PGDLLEXPORT Datum onerepl_telling_link(PG_FUNCTION_ARGS) {
    if (onerepl::apply::telling_link == 0) PG_RETURN_NULL();
    PG_RETURN_INT32(onerepl::apply::telling_link);
}
}
