// Values as text under fixed settings, whatever the session's are (lessons.md "Capture").
#pragma once

#include "pg/pg.h"

namespace onerepl::capture {

/// Whether the text that a type's output function gives may depend on settings.
bool text_depends_on_settings(Oid type);

/// Sets what text may depend on; returns the GUC nesting level for `end_fixed_settings`. May ereport; an
/// error's rollback restores the settings.
int begin_fixed_settings();
void end_fixed_settings(int level);

}  // namespace onerepl::capture
