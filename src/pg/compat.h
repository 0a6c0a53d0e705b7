// Differences between PostgreSQL 15 and 18, in one place. Inline functions, named for what they do.
#pragma once

#include "pg/pg.h"

extern "C" {
#include "access/tupdesc.h"
#include "catalog/index.h"
#include "catalog/pg_class.h"
#include "catalog/pg_database.h"
#include "catalog/pg_extension.h"
#include "catalog/pg_namespace.h"
#include "commands/event_trigger.h"
#include "miscadmin.h"
#include "nodes/parsenodes.h"
#include "storage/latch.h"
#include "tcop/utility.h"
#include "utils/acl.h"
#include "utils/rel.h"
#include "utils/relcache.h"
#include "utils/wait_event.h"
}

namespace onerepl::compat {

/// A wait event set that lives as long as the process.
inline WaitEventSet* create_wait_event_set(int events) {
#if PG_VERSION_NUM >= 170000
    return CreateWaitEventSet(nullptr, events);
#else
    return CreateWaitEventSet(TopMemoryContext, events);
#endif
}

inline bool owns_database(Oid database) {
#if PG_VERSION_NUM >= 160000
    return object_ownercheck(DatabaseRelationId, database, GetUserId());
#else
    return pg_database_ownercheck(database, GetUserId());
#endif
}

inline bool owns_extension(Oid extension) {
#if PG_VERSION_NUM >= 160000
    return object_ownercheck(ExtensionRelationId, extension, GetUserId());
#else
    return pg_extension_ownercheck(extension, GetUserId());
#endif
}

inline bool owns_table(Oid relation, Oid role) {
#if PG_VERSION_NUM >= 160000
    return object_ownercheck(RelationRelationId, relation, role);
#else
    return pg_class_ownercheck(relation, role);
#endif
}

inline bool may_use_schema(Oid schema, Oid role) {
#if PG_VERSION_NUM >= 160000
    return object_aclcheck(NamespaceRelationId, schema, role, ACL_USAGE) == ACLCHECK_OK;
#else
    return pg_namespace_aclcheck(schema, role, ACL_USAGE) == ACLCHECK_OK;
#endif
}

/// The number of the file that the table's rows stand in.
inline Oid file_of(Relation relation) {
#if PG_VERSION_NUM >= 160000
    return relation->rd_locator.relNumber;
#else
    return relation->rd_node.relNode;
#endif
}

/// Gives it a new, empty file.
inline void set_new_file(Relation relation) {
#if PG_VERSION_NUM >= 160000
    RelationSetNewRelfilenumber(relation, relation->rd_rel->relpersistence);
#else
    RelationSetNewRelfilenode(relation, relation->rd_rel->relpersistence);
#endif
}

inline void reindex(Oid relation, int flags) {
    ReindexParams parameters;
    memset(&parameters, 0, sizeof parameters);
#if PG_VERSION_NUM >= 170000
    reindex_relation(nullptr, relation, flags, &parameters);
#else
    reindex_relation(relation, flags, &parameters);
#endif
}

/// InvalidOid: the table has none, or a deferrable one.
inline Oid primary_key_index(Relation relation) {
#if PG_VERSION_NUM >= 180000
    return RelationGetPrimaryKeyIndex(relation, false);
#else
    return RelationGetPrimaryKeyIndex(relation);
#endif
}

/// A column of `descriptor` has been filled in, but for what PostgreSQL keeps for itself.
inline void complete_attribute(TupleDesc descriptor, int column) {
#if PG_VERSION_NUM >= 180000
    populate_compact_attribute(descriptor, column);
#else
    TupleDescAttr(descriptor, column)->attcacheoff = -1;
#endif
}

/// ALTER TABLE ... ALTER COLUMN ... SET EXPRESSION.
inline bool sets_expression([[maybe_unused]] AlterTableType part) {
#if PG_VERSION_NUM >= 170000
    return part == AT_SetExpression;
#else
    return false;
#endif
}

/// Event triggers are switched off where the statement would fire some.
inline bool event_triggers_are_off([[maybe_unused]] Node* statement) {
#if PG_VERSION_NUM >= 170000
    return !event_triggers && command_tag_event_trigger_ok(CreateCommandTag(statement));
#else
    return false;
#endif
}

/// A walker as the tree walkers of nodes/nodeFuncs.h want it.
#if PG_VERSION_NUM >= 160000
using Walker = bool (*)(Node*, void*);
#else
using Walker = bool (*)();  // of any arguments, in C
#endif

constexpr bool has_transaction_timeout = PG_VERSION_NUM >= 170000;
/// TRUNCATE of a foreign table fires triggers.
constexpr bool truncate_fires_on_foreign_tables = PG_VERSION_NUM >= 160000;

}  // namespace onerepl::compat
