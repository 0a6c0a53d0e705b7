// Statements of SQL that the remote executed (P17).
#pragma once

#include "pg/pg.h"

#include "apply/rename.h"
#include "apply/rows/relation_map.h"

namespace onerepl::apply {

/// The statement that was told last in a B transaction.
struct ToldStatement {
    Number n = 0;
    std::string text;
};

/// What onerepl.link.ddl says is done with it. `table`: what a captured one changed, as it was before; null
/// for one of the administrator. In a transaction with SPI connected; no table is open. Throws pg::Error:
/// 55000 if it is an administrator's and the link executes none; 42P01, 42P07 if it gives a table another
/// name that is not here, or is another table's, and the link executes none; 0A000 if the table is called
/// otherwise here, or the schema that gets another name has tables of other links; 3F000 if neither table nor
/// schema is here; 22023 if a setting, an encoding or a value of them is not known here; and what the
/// statement throws. `told`: of this B transaction. Gives the name that a whole schema has got here by it,
/// else nothing.
Rename apply_statement(int link, Number n, const Statement& statement, RelationMap* target,
                       ToldStatement& told);

}  // namespace onerepl::apply
