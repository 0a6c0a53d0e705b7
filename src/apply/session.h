// The settings under which apply reads and writes values, whatever the session's are.
#pragma once

namespace onerepl::apply {

/// Once for a worker that applies: what prepare_session wants becomes the session's default. Outside of a
/// transaction.
void begin_session();

/// For the current transaction: search_path, session_replication_role, what the text forms of values depend
/// on, and how long a lock is waited for. Not `look`: what begin_session has set is taken to hold.
void prepare_session(bool look);

}  // namespace onerepl::apply
