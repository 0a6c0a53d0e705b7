// Differences between PostgreSQL 15 and 18, in one place. Inline functions, named for what they do.
#pragma once

#include "pg/pg.h"

extern "C" {
#include "catalog/pg_database.h"
#include "catalog/pg_extension.h"
#include "catalog/pg_namespace.h"
#include "miscadmin.h"
#include "storage/latch.h"
#include "utils/acl.h"
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

inline bool may_use_schema(Oid schema, Oid role) {
#if PG_VERSION_NUM >= 160000
    return object_aclcheck(NamespaceRelationId, schema, role, ACL_USAGE) == ACLCHECK_OK;
#else
    return pg_namespace_aclcheck(schema, role, ACL_USAGE) == ACLCHECK_OK;
#endif
}

}  // namespace onerepl::compat
