// Whose rights code runs with (P19). Whatever may call code that a user wrote (an index's expression or
// predicate, a check, a domain, a cast, a default, a trigger, a bound of a partition, a filter, a told
// statement) runs as that user: inside `run_as`, or between `become` and `return_from` where C++ is not at
// home. There is no third way: `watch_rights` makes a worker refuse a query of a table that is not onerepl's
// own anywhere else.
//
// Plain in all but spelling, as apply/table.h; `run_as` is C++.
#pragma once

#include "pg/pg.h"

#include <functional>

namespace onerepl::pg {

/// 42P01 if the relation is gone.
Oid owner_of(Oid relation);
/// The owner of the partitioned table that it is in the end a part of; of itself if it is no partition.
Oid owner_of_root(Oid relation);
/// 3F000 if there is no such schema.
Oid owner_of_schema(const char* schema);

/// The security context of a role's code. Row security that the role forces upon itself is off, as for
/// foreign keys: it never decides what replication sees. And it is restricted, but for a superuser, who has
/// nothing to gain; and only without the restriction can its deferred triggers be queued.
int restriction_of(Oid role);

/// What `become` changes.
struct Rights {
    Oid user;
    int security;
    int settings_level;  // 0: no code of the role runs, so no setting can change
};

/// Takes the rights of `role`, and gives what there was, for `return_from`, which also undoes what the role's
/// code did to settings. After an error the rollback goes back.
Rights become(Oid role, int security, bool runs_code);
inline Rights become(Oid role) {
    return become(role, restriction_of(role), true);
}
void return_from(const Rights& rights);

/// Does `work` with the rights of a role, and as if it changed no setting. Throws pg::Error.
void run_as(Oid role, const std::function<void()>& work);

/// Fires what triggers wait for the commit, as it would, but so that they change no setting, the role
/// neither. They run with this process's rights, as at any commit: only superusers' tables have such
/// (`restriction_of`). Plain.
void fire_deferred_triggers();

/// From now on this process, a worker, refuses to plan a query of other tables than onerepl's own, and
/// PostgreSQL's, but with the rights of somebody that it became. (Planning already evaluates the expressions
/// of a table's indexes.)
void watch_rights();

}  // namespace onerepl::pg
