// Values as text under fixed settings, whatever the session's are (lessons.md "Capture").
#pragma once

#include "pg/pg.h"

namespace onerepl::capture {

/// Whether the text that a type's output function gives may depend on settings.
bool text_depends_on_settings(Oid type);

}  // namespace onerepl::capture
