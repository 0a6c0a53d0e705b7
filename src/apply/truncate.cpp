// TRUNCATE by SQL: it fires the statement triggers of B, among them those of a chain (B itself a remote).
#include "apply/truncate.h"

#include "apply/rights.h"
#include "pg/spi.h"

extern "C" {
#include "catalog/pg_class.h"
#include "utils/lsyscache.h"
}

#include <map>

namespace onerepl::apply {

namespace {

struct TableFacts {
    Oid owner;
    bool partitioned;
    const char* name;
};

TableFacts facts_of(Oid relation) {
    return pg::call([&] {
        TableFacts facts;
        facts.owner = owner_of(relation);
        facts.partitioned = get_rel_relkind(relation) == RELKIND_PARTITIONED_TABLE;
        facts.name = quote_qualified_identifier(get_namespace_name(get_rel_namespace(relation)),
                                                get_rel_name(relation));
        return facts;
    });
}

}  // namespace

void truncate_tables(const std::vector<Oid>& relations, bool restart_identity) {
    // One statement for each owner: a statement for all would need rights that none of them has. Tables that
    // refer to each other and belong to different owners can therefore not be truncated together.
    std::map<Oid, std::string> lists;
    for (const Oid relation : relations) {
        const TableFacts facts = facts_of(relation);
        std::string& list = lists[facts.owner];
        list += list.empty() ? "TRUNCATE TABLE " : ", ";
        list += table_expression(relation);
    }
    for (const auto& list : lists)
        run_as(list.first, [&] {
            pg::execute(
                (list.second + (restart_identity ? " RESTART IDENTITY" : " CONTINUE IDENTITY")).c_str());
        });
}

void delete_rows(Oid relation, const std::string& condition) {
    execute_as_owner(relation, "DELETE FROM " + table_expression(relation) + " AS t" +
                                   (condition.empty() ? "" : " WHERE " + condition));
}

std::string table_expression(Oid relation) {
    const TableFacts facts = facts_of(relation);
    return (facts.partitioned ? "" : "ONLY ") + std::string(facts.name);
}

void execute_as_owner(Oid relation, const std::string& sql, const std::vector<pg::Param>& parameters) {
    run_as(facts_of(relation).owner, [&] { pg::execute(sql.c_str(), parameters); });
}

}  // namespace onerepl::apply
