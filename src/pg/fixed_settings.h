// Text that does not depend on the session: values, and expressions taken from the catalogue. Remote and
// central use the same settings, so that what one writes the other reads.
#pragma once

#include "pg/pg.h"

namespace onerepl::pg {

struct FixedSetting {
    const char* name;
    const char* value;
    /// Whether the session has this value: quicker than asking for it by name, for each row of some tables.
    bool (*holds)();
};

/// Gives the setting this value, unless it has it, until the end of the innermost nesting level of settings
/// (of the transaction, if there is no other). May ereport.
void fix_setting(const FixedSetting& setting);

/// The same for all that text may depend on.
void fix_settings_of_text();

/// Both as the session's default, whatever is configured now or later. Outside of a transaction.
void fix_setting_for_session(const FixedSetting& setting);
void fix_settings_of_text_for_session();

/// fix_settings_of_text in a nesting level of its own, which is given for `end_fixed_settings`. May ereport;
/// an error's rollback restores the settings.
int begin_fixed_settings();
void end_fixed_settings(int level);

}  // namespace onerepl::pg
