// Asking the one decision about what a link may write.
#include "apply/tables/reach.h"

#include "apply/rows/map_columns.h"
#include "pg/spi.h"

extern "C" {
#include "utils/builtins.h"
}

namespace onerepl::apply {

namespace {

struct Refusal {
    std::string reason;  // empty: the link may write it
    std::string hint;
};

Refusal decide(int link, const RelationMap& target, Oid relation) {
    Refusal refusal;
    pg::query(
        "SELECT reason, hint FROM onerepl.why_out_of_reach($1, $2, $3, $4, $5, $6)",
        {link, pg::Param::oid(relation), target.schema, target.name, target.has_place, target.has_branch},
        [&](const pg::Row& row) {
            refusal = {row.text(0), row.text(1)};
        });
    return refusal;
}

std::string name_of(const RelationMap& target) {
    return pg::call([&] {
        return static_cast<const char*>(
            quote_qualified_identifier(target.schema.c_str(), target.name.c_str()));
    });
}

std::string name_of_link(int link) {
    return pg::query_text("SELECT name FROM onerepl.link WHERE id = $1", {link}).value_or("");
}

}  // namespace

Oid reach(int link, RelationMap& target) {
    target.reached = InvalidOid;
    const Oid relation = pg::call([&] { return find_relation(target, NoLock); });
    const Refusal refusal = decide(link, target, relation);
    if (!refusal.reason.empty())
        throw pg::Error("42501", "link \"" + name_of_link(link) + "\" may not write table " + name_of(target),
                        refusal.hint, refusal.reason);
    if (OidIsValid(relation) && pg::call([&] { return find_relation(target, RowExclusiveLock); }) != relation)
        throw pg::Error("40001", "another table was given the name " + name_of(target) + " meanwhile");
    return target.reached = relation;
}

bool is_in_reach(int link, RelationMap& target) {
    const Oid relation = pg::call([&] { return find_relation(target, NoLock); });
    return OidIsValid(relation) && decide(link, target, relation).reason.empty();
}

}  // namespace onerepl::apply
