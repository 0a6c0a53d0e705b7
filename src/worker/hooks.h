// Hook on utility statements: what must happen before a database is dropped, and after COMMIT PREPARED; and
// which statement runs, for the event triggers.
#pragma once

namespace onerepl::hooks {

/// From _PG_init when preloaded.
void install();

}  // namespace onerepl::hooks
