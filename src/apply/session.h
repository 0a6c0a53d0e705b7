// The settings under which apply reads and writes values, whatever the session's are.
#pragma once

namespace onerepl::apply {

/// For the current transaction only: search_path, session_replication_role and what the text forms of values
/// depend on.
void prepare_session();

}  // namespace onerepl::apply
