// The settings under which apply reads and writes values, whatever the session's are.
#pragma once

namespace onerepl::apply {

/// Once for a worker that applies: what prepare_session wants becomes the session's default, so that there is
/// little left to do for it. Outside of a transaction.
void begin_session();

/// For the current transaction only: search_path, session_replication_role, what the text forms of values
/// depend on, and how long a lock is waited for.
void prepare_session();

}  // namespace onerepl::apply
