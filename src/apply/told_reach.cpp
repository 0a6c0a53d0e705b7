// Holding told statements to the link's reach.
#include "apply/told_reach.h"

#include "capture/statement.h"
#include "pg/error_boundary.h"
#include "pg/spi.h"

extern "C" {
#include "catalog/namespace.h"
#include "fmgr.h"
#include "nodes/parsenodes.h"
#include "tcop/tcopprot.h"
#include "utils/guc.h"
}

#include <algorithm>

namespace onerepl::apply {

namespace {

int telling_link = 0;

/// What has to be in reach before a statement is executed: afterwards it has another name or place, or is
/// gone.
struct Taken {
    Oid relation;
    const char* schema;  // a whole one
    bool is_dropped;
};

struct AllTaken {
    static constexpr int most = 100;
    Taken taken[most];
    int count;
};

/// Relations that the statement drops, and may.
Oid droppable[AllTaken::most];
int droppable_count = 0;

// Plain. A relation that does not exist yet is made by a statement before, which is looked at when it is
// done.

void add(AllTaken* all, const Taken& taken) {
    if (!OidIsValid(taken.relation) && taken.schema == nullptr) return;
    if (all->count == AllTaken::most)
        ereport(ERROR,
                (errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
                 errmsg("the remote renames or drops more than %d tables in one record", AllTaken::most)));
    all->taken[all->count++] = taken;
}

void add(AllTaken* all, const RangeVar* table, bool is_dropped = false) {
    if (table != nullptr) add(all, {RangeVarGetRelid(table, NoLock, true), nullptr, is_dropped});
}

void add_dropped(AllTaken* all, const DropStmt* drop) {
    if (drop->removeType != OBJECT_TABLE && drop->removeType != OBJECT_FOREIGN_TABLE) return;
    ListCell* cell;
    foreach (cell, drop->objects) add(all, makeRangeVarFromNameList(lfirst_node(List, cell)), true);
}

/// Tables that become parts, or get one.
void add_joined(AllTaken* all, const AlterTableStmt* alter) {
    ListCell* cell;
    foreach (cell, alter->cmds) {
        const auto* command = static_cast<const AlterTableCmd*>(lfirst(cell));
        if (command->subtype == AT_AttachPartition)
            add(all, reinterpret_cast<const PartitionCmd*>(command->def)->name);
        if (command->subtype == AT_AddInherit) add(all, reinterpret_cast<const RangeVar*>(command->def));
    }
}

void add_taken_by(AllTaken* all, const Node* statement) {
    if (IsA(statement, RenameStmt)) {
        const auto* rename = reinterpret_cast<const RenameStmt*>(statement);
        add(all, rename->relation);
        if (rename->renameType == OBJECT_SCHEMA) add(all, {InvalidOid, rename->subname, false});
    } else if (IsA(statement, AlterObjectSchemaStmt)) {
        add(all, reinterpret_cast<const AlterObjectSchemaStmt*>(statement)->relation);
    } else if (IsA(statement, DropStmt)) {
        add_dropped(all, reinterpret_cast<const DropStmt*>(statement));
    } else if (IsA(statement, AlterTableStmt)) {
        add_joined(all, reinterpret_cast<const AlterTableStmt*>(statement));
    }
}

void find_taken(const char* text, const char* search_path, AllTaken* all) {
    const int level = NewGUCNestLevel();
    set_config_option("search_path", search_path, PGC_USERSET, PGC_S_SESSION, GUC_ACTION_SAVE, true, 0,
                      false);
    all->count = 0;
    ListCell* cell;
    foreach (cell, pg_parse_query(text)) add_taken_by(all, static_cast<const RawStmt*>(lfirst(cell))->stmt);
    AtEOXact_GUC(false, level);
}

}  // namespace

TellingBy::TellingBy(int link) {
    telling_link = link;
}

TellingBy::~TellingBy() {
    telling_link = 0;
}

void check_told(int link, const std::string& text, const std::string& search_path) {
    droppable_count = 0;
    AllTaken all;
    pg::call([&] {
        capture::check_statements(text.c_str());
        find_taken(text.c_str(), search_path.c_str(), &all);
    });
    for (int i = 0; i < all.count; i++) {
        const Taken& taken = all.taken[i];
        if (OidIsValid(taken.relation))
            pg::execute("SELECT onerepl.check_told_table($1, $2)", {link, pg::Param::oid(taken.relation)});
        if (taken.schema != nullptr)
            pg::execute("SELECT onerepl.check_told_schema($1, $2)", {link, taken.schema});
        if (taken.is_dropped) droppable[droppable_count++] = taken.relation;
    }
}

}  // namespace onerepl::apply

extern "C" {
PG_FUNCTION_INFO_V1(onerepl_may_be_dropped);
PGDLLEXPORT Datum onerepl_may_be_dropped(PG_FUNCTION_ARGS) {
    using namespace onerepl::apply;
    const Oid* const end = droppable + droppable_count;
    PG_RETURN_BOOL(std::find<const Oid*>(droppable, end, PG_GETARG_OID(0)) != end);
}

PG_FUNCTION_INFO_V1(onerepl_telling_link);
PGDLLEXPORT Datum onerepl_telling_link(PG_FUNCTION_ARGS) {
    if (onerepl::apply::telling_link == 0) PG_RETURN_NULL();
    PG_RETURN_INT32(onerepl::apply::telling_link);
}
}
