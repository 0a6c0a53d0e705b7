// Who executes what the remote tells.
#include "apply/told_rights.h"

#include "apply/tables/reach.h"
#include "pg/compat.h"
#include "pg/error_boundary.h"
#include "pg/rights.h"
#include "pg/spi.h"

extern "C" {
#include "catalog/catalog.h"
#include "catalog/namespace.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/varlena.h"
}

namespace onerepl::apply {

namespace {

constexpr const char* or_skip = "make the same change here, and resolve this record with 'skip'.";

/// What the statement is about, whose owner executes it.
struct Owned {
    std::string what;  // for people
    Oid owner;
};

Owned owned_by_named(int link, RelationMap& target, const Rename& name) {
    const Oid relation = reach(link, target);
    if (name.old_schema.empty() && OidIsValid(relation))
        return {"table " + target.schema + "." + target.name,
                pg::call([&] { return pg::owner_of(relation); })};
    const std::string& schema = name.old_schema.empty() ? target.schema : name.old_schema;
    return {"schema " + schema, pg::call([&] { return pg::owner_of_schema(schema.c_str()); })};
}

Oid role_for_given(int link) {
    Oid role = InvalidOid;
    pg::query(
        "SELECT r.oid FROM onerepl.link AS l JOIN pg_catalog.pg_authid AS r ON r.rolname = l.statements_as"
        " WHERE l.id = $1",
        {link}, [&](const pg::Row& row) { role = row.oid(0); });
    return role;
}

bool is_superuser(Oid role) {
    return pg::call([&] { return superuser_arg(role); });
}

// ---------------------------------------------------------------- the path

enum class Fault { none, unreadable, absent, out_of_bounds, before_catalog };

struct PathFault {
    Fault fault = Fault::none;
    const char* schema = "";
};

/// Plain.
PathFault fault_of(Oid role, const char* search_path) {
    List* schemas = NIL;
    if (!SplitIdentifierString(pstrdup(search_path), ',', &schemas)) return {Fault::unreadable, ""};
    ListCell* cell;
    foreach (cell, schemas) {
        const char* const name = static_cast<const char*>(lfirst(cell));
        const Oid schema = get_namespace_oid(name, true);
        if (IsCatalogNamespace(schema) && foreach_current_index(cell) > 0)
            return {Fault::before_catalog, name};
        if (!OidIsValid(schema)) return {Fault::absent, name};
        if (!onerepl::compat::may_use_schema(schema, role)) return {Fault::out_of_bounds, name};
    }
    return {};
}

}  // namespace

Oid role_of_told(int link, RelationMap* target, const Rename& name, const std::string& text) {
    if (target == nullptr) {
        const Oid role = role_for_given(link);
        if (OidIsValid(role) && !is_superuser(role)) return role;
        throw pg::Error(
            "42501",
            OidIsValid(role) ? "the role that executes what the remote's administrator gives is a superuser"
                             : "nobody was named who executes what the remote's administrator gives",
            std::string("Name a role that is no superuser, onerepl_set_ddl(link, 'apply', role), and retry; "
                        "or ") +
                or_skip,
            text);
    }
    const Owned owned = owned_by_named(link, *target, name);
    if (!is_superuser(owned.owner)) return owned.owner;
    throw pg::Error("42501", owned.what + " belongs to a superuser, as whom no statement of a remote runs",
                    std::string("Give it another owner (ALTER ... OWNER TO), and retry; or ") + or_skip,
                    text);
}

void check_path(Oid role, const std::string& search_path, const std::string& text) {
    const PathFault found = pg::call([&] { return fault_of(role, search_path.c_str()); });
    const std::string schema = std::string("schema \"") + found.schema + "\" of the remote's search_path";
    switch (found.fault) {
        case Fault::none:
            return;
        case Fault::unreadable:
            throw pg::Error("22023", "the remote's search_path cannot be read: " + search_path);
        case Fault::absent:
            throw pg::Error("3F000", schema + " is not here",
                            std::string("Create it, and retry; or ") + or_skip, text);
        case Fault::out_of_bounds: {
            const char* const who = pg::call([&] { return GetUserNameFromId(role, false); });
            throw pg::Error(
                "42501",
                schema + " is not to be used by role \"" + who + "\", who executes the statement here",
                std::string("Grant USAGE on it, and retry; or ") + or_skip, text);
        }
        case Fault::before_catalog:
            throw pg::Error(
                "0A000", "the remote looked for names elsewhere before pg_catalog: " + search_path,
                std::string("As the remote's names cannot be told from PostgreSQL's own: ") + or_skip, text);
    }
}

}  // namespace onerepl::apply
