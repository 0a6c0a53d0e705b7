// Changing the user, and back.
#include "apply/rights.h"

#include "apply/table.h"
#include "pg/guard.h"

extern "C" {
#include "access/htup_details.h"
#include "catalog/namespace.h"
#include "catalog/pg_class.h"
#include "catalog/pg_namespace.h"
#include "utils/guc.h"
#include "utils/syscache.h"
}

namespace onerepl::apply {

Oid owner_of(Oid relation) {
    HeapTuple tuple = SearchSysCache1(RELOID, ObjectIdGetDatum(relation));
    if (!HeapTupleIsValid(tuple))
        ereport(ERROR, (errcode(ERRCODE_UNDEFINED_TABLE), errmsg("relation %u does not exist", relation)));
    const Oid owner = reinterpret_cast<Form_pg_class>(GETSTRUCT(tuple))->relowner;
    ReleaseSysCache(tuple);
    return owner;
}

Oid owner_of_schema(const char* schema) {
    HeapTuple tuple = SearchSysCache1(NAMESPACEOID, ObjectIdGetDatum(get_namespace_oid(schema, false)));
    if (!HeapTupleIsValid(tuple)) elog(ERROR, "schema \"%s\" is gone", schema);
    const Oid owner = reinterpret_cast<Form_pg_namespace>(GETSTRUCT(tuple))->nspowner;
    ReleaseSysCache(tuple);
    return owner;
}

int restriction_of(Oid role) {
    return superuser_arg(role) ? 0 : SECURITY_RESTRICTED_OPERATION;
}

Rights become(Oid role, int security) {
    Rights before;
    GetUserIdAndSecContext(&before.user, &before.security);
    before.settings_level = 0;
    SetUserIdAndSecContext(role, security);
    return before;
}

Rights become_owner(const Table* table) {
    Rights before = become(table->owner, table->restriction);
    if (table->runs_user_code) before.settings_level = NewGUCNestLevel();
    return before;
}

void return_from(const Rights& rights) {
    if (rights.settings_level != 0) AtEOXact_GUC(false, rights.settings_level);
    SetUserIdAndSecContext(rights.user, rights.security);
}

void run_as(Oid role, const std::function<void()>& work) {
    const Rights before = pg::call([&] {
        Rights rights = become(role, restriction_of(role));
        rights.settings_level = NewGUCNestLevel();
        return rights;
    });
    work();
    pg::call([&] { return_from(before); });
}

}  // namespace onerepl::apply
