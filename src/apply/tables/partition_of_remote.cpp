// Rows of the remote's partitions in a table that has other ones.
#include "apply/tables/partition_of_remote.h"

#include "apply/tables/owner.h"
#include "apply/tables/remove_rows.h"
#include "pg/error_boundary.h"
#include "pg/expression.h"
#include "pg/partition_condition.h"
#include "pg/spi.h"

extern "C" {
#include "catalog/namespace.h"
#include "catalog/partition.h"
#include "nodes/makefuncs.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
}

namespace onerepl::apply {

namespace {

bool is_comparison(List* name) {
    if (list_length(name) == 2 && strcmp(strVal(linitial(name)), "pg_catalog") != 0) return false;
    if (list_length(name) > 2) return false;
    const char* const text = strVal(llast(name));
    for (const char* known : {"=", "<", "<=", ">", ">=", "<>"})
        if (strcmp(text, known) == 0) return true;
    return false;
}

bool is_harmless(Node* node);

bool are_harmless(List* nodes) {
    ListCell* cell;
    foreach (cell, nodes)
        if (!is_harmless(static_cast<Node*>(lfirst(cell)))) return false;
    return true;
}

/// The remote must not be able to run anything here: columns, constants, comparisons of PostgreSQL's own,
/// AND, OR, NOT, IS NULL, and nothing else.
bool is_harmless(Node* node) {
    if (node == nullptr) return true;
    switch (nodeTag(node)) {
        case T_ColumnRef:
        case T_A_Const:
            return true;
        case T_List:
            return are_harmless(reinterpret_cast<List*>(node));
        case T_TypeCast:
            return is_harmless(reinterpret_cast<TypeCast*>(node)->arg);
        case T_NullTest:
            return is_harmless(reinterpret_cast<Node*>(reinterpret_cast<NullTest*>(node)->arg));
        case T_BoolExpr:
            return are_harmless(reinterpret_cast<BoolExpr*>(node)->args);
        case T_A_ArrayExpr:
            return are_harmless(reinterpret_cast<A_ArrayExpr*>(node)->elements);
        case T_CollateClause:
            return is_harmless(reinterpret_cast<CollateClause*>(node)->arg);
        case T_A_Expr: {
            const auto* expression = reinterpret_cast<A_Expr*>(node);
            const bool known = expression->kind == AEXPR_OP || expression->kind == AEXPR_OP_ANY;
            return known && is_comparison(expression->name) && is_harmless(expression->lexpr) &&
                   is_harmless(expression->rexpr);
        }
        default:
            return false;
    }
}

/// Plain: whether the text is one such expression.
bool is_harmless_text(const char* condition) {
    Node* const expression = pg::parse_expression(condition);
    return expression != nullptr && is_harmless(expression);
}

[[noreturn]] void report(Oid root, const PartitionOfRemote& partition, const std::string& statement) {
    const std::string table = pg::call([&] { return get_rel_name(root); });
    pg::Error error(
        "0A000",
        "partition \"" + partition.name + "\" of table \"" + table +
            "\" was truncated, detached or dropped on the remote, and which rows it held cannot be found "
            "out here",
        "Delete them with onerepl.allow_writes = on, then skip the record: " + statement);
    throw error;
}

}  // namespace

std::optional<Oid> same_partition(Oid root, const PartitionOfRemote& partition) {
    const Oid found = pg::call([&] {
        const Oid schema = get_namespace_oid(partition.schema.c_str(), true);
        const Oid oid = OidIsValid(schema) ? get_relname_relid(partition.name.c_str(), schema) : InvalidOid;
        if (!OidIsValid(oid) || !get_rel_relispartition(oid)) return InvalidOid;
        if (!list_member_oid(get_partition_ancestors(oid), root)) return InvalidOid;
        return strcmp(pg::partition_condition(oid), partition.condition.c_str()) == 0 ? oid : InvalidOid;
    });
    if (!OidIsValid(found)) return std::nullopt;
    return found;
}

void delete_rows_of(Oid root, const std::vector<Oid>& parts, const PartitionOfRemote& partition) {
    if (!partition.condition.empty() &&
        !pg::call([&] { return is_harmless_text(partition.condition.c_str()); }))
        report(root, partition, "DELETE FROM " + table_expression(root) + " WHERE " + partition.condition);
    for (const Oid part : parts) delete_rows(part, partition.condition);
}

}  // namespace onerepl::apply
