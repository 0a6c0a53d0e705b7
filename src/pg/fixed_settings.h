// Text that does not depend on the session: values, and expressions taken from the catalogue.
#pragma once

#include "pg/pg.h"

namespace onerepl::pg {

/// Sets what text may depend on; returns the GUC nesting level for `end_fixed_settings`. May ereport; an
/// error's rollback restores the settings.
int begin_fixed_settings();
void end_fixed_settings(int level);

}  // namespace onerepl::pg
