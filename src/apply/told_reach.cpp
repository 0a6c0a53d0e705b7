// Holding told statements to the link's reach.
#include "apply/told_reach.h"

#include "capture/running_ddl.h"
#include "capture/statement.h"
#include "pg/error_boundary.h"
#include "pg/spi.h"

extern "C" {
#include "catalog/index.h"
#include "tcop/utility.h"
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
    ListCell* cell;
    if (drop->removeType == OBJECT_INDEX) {
        foreach (cell, drop->objects) {
            const Oid index =
                RangeVarGetRelid(makeRangeVarFromNameList(lfirst_node(List, cell)), NoLock, true);
            add(all, {OidIsValid(index) ? IndexGetRelation(index, true) : InvalidOid, nullptr, false});
        }
    }
    if (drop->removeType != OBJECT_TABLE && drop->removeType != OBJECT_FOREIGN_TABLE) {
        if (drop->behavior == DROP_CASCADE)
            ereport(ERROR,
                    (errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
                     errmsg("DROP ... CASCADE is executed for no remote: it could take parts of tables that "
                            "the link may not write"),
                     errhint("Execute it here yourself if it is wanted, and resolve this record with "
                             "'skip'.")));
        return;
    }
    foreach (cell, drop->objects) add(all, makeRangeVarFromNameList(lfirst_node(List, cell)), true);
}

/// Whose rights on them others get or lose.
void add_granted(AllTaken* all, const GrantStmt* grant) {
    if (grant->objtype != OBJECT_TABLE && grant->objtype != OBJECT_SEQUENCE) return;
    ListCell* cell;
    foreach (cell, grant->objects) {
        if (grant->targtype == ACL_TARGET_OBJECT)
            add(all, static_cast<const RangeVar*>(lfirst(cell)));
        else
            add(all, {InvalidOid, strVal(lfirst(cell)), false});
    }
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
    } else if (IsA(statement, GrantStmt)) {
        add_granted(all, reinterpret_cast<const GrantStmt*>(statement));
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

/// Nothing else is captured by a remote, so that another one is somebody's who speaks in its name.
void check_is_captured_kind(const char* text) {
    ListCell* cell;
    foreach (cell, pg_parse_query(text)) {
        Node* const statement = static_cast<const RawStmt*>(lfirst(cell))->stmt;
        if (!capture::is_ddl(statement))
            ereport(ERROR, (errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
                            errmsg("%s is no statement that a remote captures",
                                   GetCommandTagName(CreateCommandTag(statement))),
                            errhint("Look at the remote, and resolve this record with 'skip'.")));
    }
}

}  // namespace

TellingBy::TellingBy(int link) {
    telling_link = link;
}

TellingBy::~TellingBy() {
    telling_link = 0;
}

void check_told(int link, const std::string& text, const std::string& search_path, bool captured) {
    droppable_count = 0;
    AllTaken all;
    pg::call([&] {
        capture::check_statements(text.c_str());
        if (captured) check_is_captured_kind(text.c_str());
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
