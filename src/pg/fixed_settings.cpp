// The settings under which values are written as text.
#include "pg/fixed_settings.h"

extern "C" {
#include "utils/guc.h"
}

namespace onerepl::pg {

namespace {

struct Setting {
    const char* name;
    const char* value;
    /// A present value that begins like this is as good: the order of day and month does not matter to ISO
    /// output.
    bool prefix_is_enough;
};

constexpr Setting fixed_settings[] = {
    {"datestyle", "ISO", true},         {"intervalstyle", "postgres", false},
    {"extra_float_digits", "3", false}, {"bytea_output", "hex", false},
    {"timezone", "UTC", false},         {"search_path", "pg_catalog", false},
    {"lc_monetary", "C", false},        {"quote_all_identifiers", "off", false},
};

bool is_as_wanted(const Setting& setting) {
    const char* present = GetConfigOption(setting.name, false, false);
    if (!present) return false;
    return setting.prefix_is_enough ? strncmp(present, setting.value, strlen(setting.value)) == 0
                                    : strcmp(present, setting.value) == 0;
}

void set(const Setting& setting) {
    if (is_as_wanted(setting)) return;
    set_config_option(setting.name, setting.value, PGC_USERSET, PGC_S_SESSION, GUC_ACTION_SAVE, true, 0,
                      false);
}

}  // namespace

int begin_fixed_settings() {
    const int level = NewGUCNestLevel();
    for (const Setting& setting : fixed_settings) set(setting);
    return level;
}

void end_fixed_settings(int level) {
    AtEOXact_GUC(true, level);
}

}  // namespace onerepl::pg
