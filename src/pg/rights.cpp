// Changing the user, and back.
#include "pg/rights.h"

#include "pg/compat.h"
#include "pg/error_boundary.h"

extern "C" {
#include "access/htup_details.h"
#include "catalog/catalog.h"
#include "catalog/namespace.h"
#include "catalog/partition.h"
#include "catalog/pg_class.h"
#include "catalog/pg_namespace.h"
#include "commands/trigger.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/planner.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"
}

namespace onerepl::pg {

namespace {

planner_hook_type next_planner = nullptr;

bool is_own_schema(Oid schema) {
    if (IsCatalogNamespace(schema)) return true;
    const char* const name = get_namespace_name(schema);
    for (const char* own : {"onerepl", "onerepl_foreign", "information_schema"})
        if (name != nullptr && strcmp(name, own) == 0) return true;
    return false;
}

bool refuse_tables_of_others(Node* node, void* context);
const compat::Walker walker =
    reinterpret_cast<compat::Walker>(reinterpret_cast<void*>(refuse_tables_of_others));

/// Plain. Only `become` makes this context in a worker.
bool has_become_somebody() {
    return InNoForceRLSOperation();
}

bool refuse_tables_of_others(Node* node, void* context) {
    if (node == nullptr) return false;
    if (IsA(node, RangeTblEntry)) {
        const auto* entry = reinterpret_cast<RangeTblEntry*>(node);
        if (entry->rtekind == RTE_RELATION && !is_own_schema(get_rel_namespace(entry->relid)))
            ereport(ERROR, (errcode(ERRCODE_INTERNAL_ERROR),
                            errmsg("table \"%s\" was about to be read with the rights of a worker of onerepl",
                                   get_rel_name(entry->relid)),
                            errhint("This is a fault of onerepl (P19); please report it.")));
        return false;
    }
    if (IsA(node, Query))
        return query_tree_walker(reinterpret_cast<Query*>(node), walker, context, QTW_EXAMINE_RTES_BEFORE);
    return expression_tree_walker(node, walker, context);
}

PlannedStmt* plan_watched(Query* query, const char* text, int options, ParamListInfo parameters) {
    if (!has_become_somebody()) refuse_tables_of_others(reinterpret_cast<Node*>(query), nullptr);
    return next_planner != nullptr ? next_planner(query, text, options, parameters)
                                   : standard_planner(query, text, options, parameters);
}

}  // namespace

Oid owner_of(Oid relation) {
    HeapTuple tuple = SearchSysCache1(RELOID, ObjectIdGetDatum(relation));
    if (!HeapTupleIsValid(tuple))
        ereport(ERROR, (errcode(ERRCODE_UNDEFINED_TABLE), errmsg("relation %u does not exist", relation)));
    const Oid owner = reinterpret_cast<Form_pg_class>(GETSTRUCT(tuple))->relowner;
    ReleaseSysCache(tuple);
    return owner;
}

Oid owner_of_root(Oid relation) {
    const List* const ancestors = get_rel_relispartition(relation) ? get_partition_ancestors(relation) : NIL;
    return owner_of(ancestors == NIL ? relation : llast_oid(ancestors));
}

Oid owner_of_schema(const char* schema) {
    HeapTuple tuple = SearchSysCache1(NAMESPACEOID, ObjectIdGetDatum(get_namespace_oid(schema, false)));
    if (!HeapTupleIsValid(tuple)) elog(ERROR, "schema \"%s\" is gone", schema);
    const Oid owner = reinterpret_cast<Form_pg_namespace>(GETSTRUCT(tuple))->nspowner;
    ReleaseSysCache(tuple);
    return owner;
}

int restriction_of(Oid role) {
    return SECURITY_NOFORCE_RLS | (superuser_arg(role) ? 0 : SECURITY_RESTRICTED_OPERATION);
}

Rights become(Oid role, int security, bool runs_code) {
    Rights before;
    GetUserIdAndSecContext(&before.user, &before.security);
    before.settings_level = runs_code ? NewGUCNestLevel() : 0;
    SetUserIdAndSecContext(role, security);
    return before;
}

void return_from(const Rights& rights) {
    if (rights.settings_level != 0) AtEOXact_GUC(false, rights.settings_level);
    SetUserIdAndSecContext(rights.user, rights.security);
}

void run_as(Oid role, const std::function<void()>& work) {
    const Rights before = pg::call([&] { return become(role); });
    work();
    pg::call([&] { return_from(before); });
}

void fire_deferred_triggers() {
    const Rights before = become(GetUserId(), SECURITY_NOFORCE_RLS, true);
    AfterTriggerFireDeferred();
    return_from(before);
}

void watch_rights() {
    next_planner = planner_hook;
    planner_hook = plan_watched;
}

}  // namespace onerepl::pg
