// With whose rights a statement of the remote is executed here (P19), and that names in it mean what they
// meant there.
#pragma once

#include "apply/rename.h"
#include "apply/rows/relation_map.h"

namespace onerepl::apply {

/// Who executes a statement: the owner of the table that a captured one is about (`target`), or of the
/// schema, if there is no such table, or the statement gives the schema another name; for one of the remote's
/// administrator (`target` is null) the role that this link has for it. Never a superuser: who tells the
/// statement would be one here. Throws pg::Error: 42501 if it would be one, or nobody was named; 3F000 if
/// neither table nor schema is here; and as `reach`. With SPI connected.
Oid role_of_told(int link, RelationMap* target, const Rename& name, const std::string& text);

/// Throws pg::Error unless names that are looked for along `search_path` mean what they meant on the remote,
/// or nothing: 3F000 if a schema of it is not here; 42501 if `role` may not use it, and would look past it;
/// 0A000 if one stands before pg_catalog.
void check_path(Oid role, const std::string& search_path, const std::string& text);

}  // namespace onerepl::apply
