// Secrets of links stay out of the server log (P10).
#pragma once

namespace onerepl::secret_log {

/// From _PG_init of the postmaster: a line of the log that would show a call of a function that takes a
/// secret is written without the statement and its parameters.
void install();

}  // namespace onerepl::secret_log
