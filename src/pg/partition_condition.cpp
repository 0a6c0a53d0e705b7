// Conditions of partitions, from the catalogue.
#include "pg/partition_condition.h"

#include "pg/fixed_settings.h"
#include "pg/rights.h"

extern "C" {
#include "fmgr.h"
#include "utils/builtins.h"
#include "utils/fmgrprotos.h"
}

namespace onerepl::pg {

namespace {

constexpr const char hash_call[] = "satisfies_hash_partition('";

/// The condition of a hash partition names the table by its OID, which means nothing elsewhere.
void remove_oids(char* condition) {
    while ((condition = strstr(condition, hash_call)) != nullptr) {
        condition += sizeof hash_call - 1;
        char* const end = strchr(condition, '\'');
        if (end == nullptr) return;
        memmove(condition, end, strlen(end) + 1);
    }
}

}  // namespace

const char* partition_condition(Oid relation) {
    // The expressions of the keys of the tables that it is a part of are simplified first (P19).
    const Rights rights = become(owner_of_root(relation));
    const int level = begin_fixed_settings();
    LOCAL_FCINFO(fcinfo, 1);
    InitFunctionCallInfoData(*fcinfo, nullptr, 1, InvalidOid, nullptr, nullptr);
    fcinfo->args[0].value = ObjectIdGetDatum(relation);
    fcinfo->args[0].isnull = false;
    const Datum value = pg_get_partition_constraintdef(fcinfo);
    char* const condition = fcinfo->isnull ? pstrdup("") : TextDatumGetCString(value);
    end_fixed_settings(level);
    return_from(rights);
    remove_oids(condition);
    return condition;
}

}  // namespace onerepl::pg
