// TRUNCATE by SQL: it fires the statement triggers of B, among them those of a chain (B itself a remote).
#include "apply/tables/remove_rows.h"

#include "apply/rows/write.h"
#include "apply/tables/owner.h"
#include "pg/error_boundary.h"
#include "pg/rights.h"
#include "pg/spi.h"

#include <map>

namespace onerepl::apply {

namespace {

bool triggers_may_keep(Oid relation) {
    // Of rows (1), BEFORE (2), DELETE (8).
    return pg::query_int8(
               "SELECT 1::int8 FROM pg_catalog.pg_trigger WHERE NOT tgisinternal AND tgtype & 11 = 11"
               " AND tgenabled IN ('A', 'R')"
               " AND (tgrelid = $1 OR tgrelid IN (SELECT relid FROM pg_catalog.pg_partition_tree($1)))"
               " LIMIT 1",
               {pg::Param::oid(relation)})
        .has_value();
}

}  // namespace

void truncate_tables(const std::vector<Oid>& relations, bool restart_identity) {
    // One statement for each owner: a statement for all would need rights that none of them has. Tables that
    // refer to each other and belong to different owners can therefore not be truncated together.
    std::map<Oid, std::string> lists;
    for (const Oid relation : relations) {
        std::string& list = lists[owner_of_table(relation)];
        list += list.empty() ? "TRUNCATE TABLE " : ", ";
        list += table_expression(relation);
    }
    for (const auto& list : lists)
        pg::run_as(list.first, [&] {
            pg::execute(
                (list.second + (restart_identity ? " RESTART IDENTITY" : " CONTINUE IDENTITY")).c_str());
        });
}

void delete_rows(Oid relation, const std::string& condition, const std::vector<pg::Param>& parameters) {
    const std::string rows =
        " FROM " + table_expression(relation) + " AS t" + (condition.empty() ? "" : " WHERE " + condition);
    pg::run_as(owner_of_table(relation), [&] { pg::execute(("DELETE" + rows).c_str(), parameters); });
    // P22: what a trigger keeps would be there twice, or make the copy wrong.
    if (!triggers_may_keep(relation)) return;
    pg::run_as(owner_of_table(relation), [&] {
        if (pg::query_int8(("SELECT 1::int8" + rows + " LIMIT 1").c_str(), parameters))
            pg::call([&] { report_kept(relation); });
    });
}

}  // namespace onerepl::apply
