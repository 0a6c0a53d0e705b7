#include "apply/tables/owner.h"

#include "pg/error_boundary.h"
#include "pg/rights.h"

extern "C" {
#include "catalog/pg_class.h"
#include "utils/lsyscache.h"
}

namespace onerepl::apply {

std::string table_expression(Oid relation) {
    return pg::call([&] {
        const bool partitioned = get_rel_relkind(relation) == RELKIND_PARTITIONED_TABLE;
        return static_cast<const char*>(
            psprintf("%s%s", partitioned ? "" : "ONLY ",
                     quote_qualified_identifier(get_namespace_name(get_rel_namespace(relation)),
                                                get_rel_name(relation))));
    });
}

Oid owner_of_table(Oid relation) {
    return pg::call([&] { return pg::owner_of(relation); });
}

std::optional<std::int64_t> query_as_owner(Oid relation, const std::string& sql,
                                           const std::vector<pg::Param>& parameters) {
    std::optional<std::int64_t> result;
    pg::run_as(owner_of_table(relation), [&] { result = pg::query_int8(sql.c_str(), parameters); });
    return result;
}

}  // namespace onerepl::apply
