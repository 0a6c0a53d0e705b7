// Under whose rights B's rows are written: their owner's, so that the owner's code gains nothing by it.
//
// Plain in all but spelling, as table.h; `run_as` is C++.
#pragma once

#include "pg/pg.h"

#include <functional>

namespace onerepl::apply {

struct Table;

/// 42P01 if the relation is gone.
Oid owner_of(Oid relation);
/// 3F000 if there is no such schema.
Oid owner_of_schema(const char* schema);

/// The security context of a role's code: restricted, but for a superuser, who has nothing to gain; and only
/// without the restriction can its deferred triggers be queued.
int restriction_of(Oid role);

/// What `become` changes.
struct Rights {
    Oid user;
    int security;
    int settings_level;  // 0: no code of the role runs, so no setting can change
};

/// Takes the rights of `role`, and gives what there was, for `return_from`. After an error the rollback goes
/// back.
Rights become(Oid role, int security);
/// For writing the table's rows.
Rights become_owner(const Table* table);
void return_from(const Rights& rights);

/// Does `work` with the rights of a role, and as if it changed no setting. Throws pg::Error.
void run_as(Oid role, const std::function<void()>& work);

}  // namespace onerepl::apply
