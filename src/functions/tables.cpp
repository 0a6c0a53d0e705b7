// onerepl_add_table and its like. They run with the caller's rights, so that they can see whether the tables
// are the caller's; the rest is done by functions in SQL with the rights of the extension's owner.
#include "functions/arguments.h"
#include "pg/compat.h"
#include "pg/error_boundary.h"
#include "pg/spi.h"

extern "C" {
#include "access/htup_details.h"
#include "catalog/pg_class.h"
#include "catalog/pg_proc.h"
#include "catalog/pg_type.h"
#include "utils/acl.h"
#include "utils/inval.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"

PG_FUNCTION_INFO_V1(onerepl_add_table);
PG_FUNCTION_INFO_V1(onerepl_add_schema);
PG_FUNCTION_INFO_V1(onerepl_remove_table);
PG_FUNCTION_INFO_V1(onerepl_add_sequence);
PG_FUNCTION_INFO_V1(onerepl_remove_sequence);
}

namespace onerepl {

namespace {

/// Error 42501 unless the current user owns the table; 42P01 if there is none.
void check_owner(Oid relation) {
    pg::call([&] {
        const char* const name = get_rel_name(relation);
        if (name == nullptr)
            ereport(ERROR,
                    (errcode(ERRCODE_UNDEFINED_TABLE), errmsg("table with OID %u does not exist", relation)));
        if (!compat::owns_table(relation, GetUserId()))
            aclcheck_error(ACLCHECK_NOT_OWNER, OBJECT_TABLE, name);
    });
}

Oid owner_of_function(Oid function) {
    return pg::call([&] {
        const HeapTuple tuple = SearchSysCache1(PROCOID, ObjectIdGetDatum(function));
        if (!HeapTupleIsValid(tuple)) elog(ERROR, "cache lookup failed for function %u", function);
        const Oid owner = reinterpret_cast<Form_pg_proc>(GETSTRUCT(tuple))->proowner;
        ReleaseSysCache(tuple);
        return owner;
    });
}

/// The current user is the function's owner as long as an object of it lives, as in a SECURITY DEFINER
/// function.
class AsOwner {
  public:
    explicit AsOwner(Oid function) {
        const Oid owner = owner_of_function(function);
        GetUserIdAndSecContext(&user_, &context_);
        SetUserIdAndSecContext(owner, context_ | SECURITY_LOCAL_USERID_CHANGE);
    }
    ~AsOwner() { SetUserIdAndSecContext(user_, context_); }
    AsOwner(const AsOwner&) = delete;
    AsOwner& operator=(const AsOwner&) = delete;

  private:
    Oid user_ = InvalidOid;
    int context_ = 0;
};

pg::Param relation_parameter(Oid relation) {
    return pg::Param::datum(REGCLASSOID, ObjectIdGetDatum(relation));
}

void add_table(FunctionCallInfo fcinfo) {
    const Oid relation = PG_GETARG_OID(0);
    const std::string initial = text_argument(fcinfo, 2);
    if (initial != "identical" && initial != "refresh")
        throw pg::Error("22023", "unknown initial \"" + initial + "\"", "Use 'identical' or 'refresh'.");
    check_owner(relation);
    const AsOwner owner(fcinfo->flinfo->fn_oid);
    pg::SpiConnection spi;
    pg::execute("SELECT onerepl.track($1, $2)", {relation_parameter(relation), PG_GETARG_BOOL(1)});
    if (initial == "refresh")
        pg::execute("SELECT onerepl.refresh_new_table($1)", {relation_parameter(relation)});
    spi.finish();
}

void remove_table(FunctionCallInfo fcinfo) {
    const Oid relation = PG_GETARG_OID(0);
    check_owner(relation);
    const AsOwner owner(fcinfo->flinfo->fn_oid);
    pg::SpiConnection spi;
    pg::execute("SELECT onerepl.untrack($1)", {relation_parameter(relation)});
    spi.finish();
}

void track_sequence(FunctionCallInfo fcinfo, bool tracked) {
    const Oid relation = PG_GETARG_OID(0);
    check_owner(relation);
    if (pg::call([&] { return get_rel_relkind(relation); }) != RELKIND_SEQUENCE)
        throw pg::Error("42809", "relation " + std::to_string(relation) + " is not a sequence");
    const AsOwner owner(fcinfo->flinfo->fn_oid);
    pg::SpiConnection spi;
    pg::execute("SELECT onerepl.track_sequence($1, $2)", {relation_parameter(relation), tracked});
    spi.finish();
    // The sender hears of it.
    pg::call([&] { CacheInvalidateRelcacheByRelid(relation); });
}

/// Partitioned tables first: their partitions come with them.
std::vector<Oid> tables_of_schema(const std::string& schema) {
    if (!pg::query_int8("SELECT 1::int8 FROM pg_catalog.pg_namespace WHERE nspname = $1", {schema}))
        throw pg::Error("3F000", "schema \"" + schema + "\" does not exist");
    std::vector<Oid> tables;
    pg::query(
        "SELECT c.oid FROM pg_catalog.pg_class AS c JOIN pg_catalog.pg_namespace AS n ON n.oid = "
        "c.relnamespace"
        " WHERE n.nspname = $1 AND c.relkind IN ('r', 'p', 'f')"
        " ORDER BY c.relkind <> 'p', c.relispartition, c.relname",
        {schema}, [&](const pg::Row& row) { tables.push_back(row.oid(0)); });
    return tables;
}

std::int32_t add_schema(FunctionCallInfo fcinfo) {
    const std::string schema = text_argument(fcinfo, 0);
    pg::SpiConnection spi;
    std::string list;
    for (Oid table : tables_of_schema(schema)) {
        check_owner(table);
        list += (list.empty() ? "{" : ",") + std::to_string(table);
    }
    list += list.empty() ? "{}" : "}";
    std::int64_t added = 0;
    {
        const AsOwner owner(fcinfo->flinfo->fn_oid);
        added = pg::query_int8("SELECT onerepl.track_schema($1, $2::regclass[], $3)::int8",
                               {schema, list, PG_GETARG_BOOL(1)})
                    .value_or(0);
    }
    spi.finish();
    return static_cast<std::int32_t>(added);
}

}  // namespace

}  // namespace onerepl

PGDLLEXPORT Datum onerepl_add_table(PG_FUNCTION_ARGS) {
    onerepl::pg::entry([&] { onerepl::add_table(fcinfo); });
    PG_RETURN_VOID();
}

PGDLLEXPORT Datum onerepl_remove_table(PG_FUNCTION_ARGS) {
    onerepl::pg::entry([&] { onerepl::remove_table(fcinfo); });
    PG_RETURN_VOID();
}

PGDLLEXPORT Datum onerepl_add_schema(PG_FUNCTION_ARGS) {
    PG_RETURN_INT32(onerepl::pg::entry([&] { return onerepl::add_schema(fcinfo); }));
}

PGDLLEXPORT Datum onerepl_add_sequence(PG_FUNCTION_ARGS) {
    onerepl::pg::entry([&] { onerepl::track_sequence(fcinfo, true); });
    PG_RETURN_VOID();
}

PGDLLEXPORT Datum onerepl_remove_sequence(PG_FUNCTION_ARGS) {
    onerepl::pg::entry([&] { onerepl::track_sequence(fcinfo, false); });
    PG_RETURN_VOID();
}
