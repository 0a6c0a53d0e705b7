// The settings under which values are rendered as text.
#include "capture/render.h"

extern "C" {
#include "utils/fmgroids.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"
}

namespace onerepl::capture {

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

bool text_depends_on_settings(Oid type) {
    Oid output;
    bool is_varlena;
    getTypeOutputInfo(type, &output, &is_varlena);
    switch (output) {
        case F_TEXTOUT:
        case F_VARCHAROUT:
        case F_BPCHAROUT:
        case F_NAMEOUT:
        case F_ENUM_OUT:
            return false;
        case F_ARRAY_OUT: {
            const Oid element = get_element_type(getBaseType(type));
            return !OidIsValid(element) || text_depends_on_settings(element);
        }
        default:
            return true;
    }
}

int begin_fixed_settings() {
    const int level = NewGUCNestLevel();
    for (const Setting& setting : fixed_settings) set(setting);
    return level;
}

void end_fixed_settings(int level) {
    AtEOXact_GUC(true, level);
}

}  // namespace onerepl::capture
