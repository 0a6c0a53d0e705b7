// One expression, or not.
#include "pg/expression.h"

extern "C" {
#include "nodes/parsenodes.h"
#include "parser/parser.h"
}

namespace onerepl::pg {

namespace {

bool has_no_clause(const SelectStmt* select) {
    return select->distinctClause == NIL && select->intoClause == nullptr && select->fromClause == NIL &&
           select->whereClause == nullptr && select->groupClause == NIL && select->havingClause == nullptr &&
           select->windowClause == NIL && select->valuesLists == NIL && select->sortClause == NIL &&
           select->limitOffset == nullptr && select->limitCount == nullptr && select->lockingClause == NIL &&
           select->withClause == nullptr && select->op == SETOP_NONE;
}

}  // namespace

Node* parse_expression(const char* text) {
    List* statements = raw_parser(text, RAW_PARSE_PLPGSQL_EXPR);
    if (list_length(statements) != 1) return nullptr;
    Node* const node = linitial_node(RawStmt, statements)->stmt;
    if (!IsA(node, SelectStmt)) return nullptr;
    const auto* select = reinterpret_cast<SelectStmt*>(node);
    if (!has_no_clause(select) || list_length(select->targetList) != 1) return nullptr;
    const ResTarget* const target = linitial_node(ResTarget, select->targetList);
    return target->name == nullptr && target->indirection == NIL ? target->val : nullptr;
}

}  // namespace onerepl::pg
