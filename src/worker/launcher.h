// The launcher: one process a server that keeps the senders and receivers of onerepl.databases running.
#pragma once

namespace onerepl::launcher {

/// Registers the launcher with the postmaster; from _PG_init when preloaded.
void install();

}  // namespace onerepl::launcher
