// Whether a text can be a row filter: what PostgreSQL takes as the predicate of an index is immutable and
// looks at nothing but the row.
#include "functions/arguments.h"
#include "pg/error_boundary.h"
#include "pg/expression.h"
#include "pg/rights.h"

extern "C" {
#include "access/sysattr.h"
#include "access/table.h"
#include "catalog/pg_type.h"
#include "optimizer/optimizer.h"
#include "parser/parse_clause.h"
#include "parser/parse_collate.h"
#include "parser/parse_node.h"
#include "parser/parse_relation.h"
#include "utils/array.h"
#include "utils/rel.h"

PG_FUNCTION_INFO_V1(onerepl_check_row_filter);
}

namespace onerepl {

namespace {

/// Plain. The expression over the table's columns, a boolean.
Node* analyze(Relation table, const char* text) {
    Node* const raw = pg::parse_expression(text);
    if (raw == nullptr)
        ereport(ERROR,
                (errcode(ERRCODE_SYNTAX_ERROR), errmsg("\"%s\" is not one expression", text),
                 errhint("Give a condition on the columns of the table, as in the WHERE of an index.")));
    ParseState* const state = make_parsestate(nullptr);
    state->p_sourcetext = text;
    addNSItemToQuery(state,
                     addRangeTableEntryForRelation(state, table, AccessShareLock, nullptr, false, true),
                     false, true, true);
    Node* const condition = transformWhereClause(state, raw, EXPR_KIND_INDEX_PREDICATE, "WHERE");
    assign_expr_collations(state, condition);
    return condition;
}

/// Plain. The names of the columns that it looks at, as name[].
ArrayType* columns_of(Relation table, Node* condition) {
    Bitmapset* columns = nullptr;
    pull_varattnos(condition, 1, &columns);
    const auto reads = [columns](int column) {
        return bms_is_member(column - FirstLowInvalidHeapAttributeNumber, columns);
    };
    for (int column = FirstLowInvalidHeapAttributeNumber + 1; column < 0; column++)
        if (reads(column))
            ereport(ERROR, (errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
                            errmsg("a row filter cannot look at system columns")));
    TupleDesc description = RelationGetDescr(table);
    auto* const names = static_cast<Datum*>(palloc(sizeof(Datum) * (description->natts + 1)));
    int count = 0;
    for (int i = 0; i < description->natts; i++)
        if (!TupleDescAttr(description, i)->attisdropped && (reads(i + 1) || reads(0)))  // 0: the whole row
            names[count++] = NameGetDatum(&TupleDescAttr(description, i)->attname);
    return construct_array(names, count, NAMEOID, NAMEDATALEN, false, TYPALIGN_CHAR);
}

/// Plain. Functions that it calls with constants are called here, so it is done with the rights of the
/// table's owner, which are what it runs with later (P19).
ArrayType* check_row_filter(Oid relation, const char* text) {
    Relation table = table_open(relation, AccessShareLock);
    const pg::Rights rights = pg::become(pg::owner_of(relation));
    Node* const condition = analyze(table, text);
    ArrayType* const columns = columns_of(table, condition);
    if (contain_mutable_functions(
            reinterpret_cast<Node*>(expression_planner(reinterpret_cast<Expr*>(condition)))))
        ereport(ERROR, (errcode(ERRCODE_INVALID_OBJECT_DEFINITION),
                        errmsg("functions in a row filter must be marked IMMUTABLE")));
    pg::return_from(rights);
    table_close(table, NoLock);
    return columns;
}

}  // namespace

}  // namespace onerepl

PGDLLEXPORT Datum onerepl_check_row_filter(PG_FUNCTION_ARGS) {
    return onerepl::pg::entry([&] {
        const std::string rows = onerepl::text_argument(fcinfo, 1);
        return onerepl::pg::call(
            [&] { return PointerGetDatum(onerepl::check_row_filter(PG_GETARG_OID(0), rows.c_str())); });
    });
}
