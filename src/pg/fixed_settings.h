// What values, expressions taken from the catalogue and statements mean depends on settings. This is the one
// list of them: remote and central use the same, so that what one writes the other reads (P21).
#pragma once

#include "pg/pg.h"

#include <span>

namespace onerepl::pg {

/// What depends on a setting.
enum class Settings : unsigned {
    of_text = 1,        // values and expressions as text, on both sides
    of_apply = 2,       // what a central does beside: reading values, writing rows, lexing statements
    of_statements = 4,  // statements: the remote tells its own where it has another value than this one
};

struct FixedSetting {
    const char* name;
    const char* value;
    /// Whether the session has this value: quicker than asking for it by name, for each row of some tables.
    bool (*holds)();
    unsigned uses;  // Settings, or'ed
    /// Names a locale, which the other server may lack.
    bool is_locale = false;

    bool is(Settings use) const { return (uses & static_cast<unsigned>(use)) != 0; }
};

/// The whole list.
std::span<const FixedSetting> fixed_settings();

/// The setting of this name that statements depend on; null: there is none. Whatever comes from another
/// server is held against it, so that no other setting can be changed from there (P18).
const FixedSetting* find_setting_of_statements(const char* name);

/// Gives the setting this value, unless it has it, until the end of the innermost nesting level of settings
/// (of the transaction, if there is no other). May ereport.
void fix_setting(const FixedSetting& setting);

/// The same for all that `use` depends on.
void fix_settings(Settings use);

/// As the session's default, whatever is configured now or later. Outside of a transaction.
void fix_settings_for_session(Settings use);

/// fix_settings(of_text) in a nesting level of its own, which is given for `end_fixed_settings`. May ereport;
/// an error's rollback restores the settings.
int begin_fixed_settings();
void end_fixed_settings(int level);

}  // namespace onerepl::pg
