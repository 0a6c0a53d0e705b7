// The settings under which values are written as text, and read.
#include "pg/fixed_settings.h"

extern "C" {
#include "utils/guc.h"
}

namespace onerepl::pg {

namespace {

constexpr FixedSetting settings_of_text[] = {
    {"datestyle", "ISO", true},  // the order of day and month does not matter to ISO output, nor to reading
                                 // that
    {"intervalstyle", "postgres"},
    {"extra_float_digits", "3"},
    {"bytea_output", "hex"},
    {"timezone", "UTC"},
    {"search_path", "pg_catalog"},
    {"lc_monetary", "C"},
    {"quote_all_identifiers", "off"},
};

bool is_as_wanted(const FixedSetting& setting) {
    const char* present = GetConfigOption(setting.name, false, false);
    if (!present) return false;
    return setting.prefix_is_enough ? strncmp(present, setting.value, strlen(setting.value)) == 0
                                    : strcmp(present, setting.value) == 0;
}

}  // namespace

void fix_setting(const FixedSetting& setting) {
    if (is_as_wanted(setting)) return;
    set_config_option(setting.name, setting.value, PGC_SUSET, PGC_S_SESSION, GUC_ACTION_SAVE, true, 0, false);
}

void fix_settings_of_text() {
    for (const FixedSetting& setting : settings_of_text) fix_setting(setting);
}

void fix_setting_for_session(const FixedSetting& setting) {
    if (!is_as_wanted(setting)) SetConfigOption(setting.name, setting.value, PGC_SUSET, PGC_S_OVERRIDE);
}

void fix_settings_of_text_for_session() {
    for (const FixedSetting& setting : settings_of_text) fix_setting_for_session(setting);
}

int begin_fixed_settings() {
    const int level = NewGUCNestLevel();
    fix_settings_of_text();
    return level;
}

void end_fixed_settings(int level) {
    AtEOXact_GUC(true, level);
}

}  // namespace onerepl::pg
