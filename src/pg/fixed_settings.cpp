// The settings under which values are written as text, and read.
#include "pg/fixed_settings.h"

extern "C" {
#include "catalog/namespace.h"
#include "pgtime.h"
#include "utils/builtins.h"
#include "utils/bytea.h"
#include "utils/float.h"
#include "utils/guc.h"
#include "utils/pg_locale.h"
}

namespace onerepl::pg {

namespace {

constexpr FixedSetting settings_of_text[] = {
    {"datestyle", "ISO, MDY", [] { return DateStyle == USE_ISO_DATES && DateOrder == DATEORDER_MDY; }},
    {"intervalstyle", "postgres", [] { return IntervalStyle == INTSTYLE_POSTGRES; }},
    {"extra_float_digits", "3", [] { return extra_float_digits == 3; }},
    {"bytea_output", "hex", [] { return bytea_output == BYTEA_OUTPUT_HEX; }},
    {"timezone", "UTC", [] { return strcmp(pg_get_timezone_name(session_timezone), "UTC") == 0; }},
    {"search_path", "pg_catalog", [] { return strcmp(namespace_search_path, "pg_catalog") == 0; }},
    {"lc_monetary", "C", [] { return strcmp(locale_monetary, "C") == 0; }},
    {"quote_all_identifiers", "off", [] { return !quote_all_identifiers; }},
};

}  // namespace

void fix_setting(const FixedSetting& setting) {
    if (setting.holds()) return;
    set_config_option(setting.name, setting.value, PGC_SUSET, PGC_S_SESSION, GUC_ACTION_SAVE, true, 0, false);
}

void fix_settings_of_text() {
    for (const FixedSetting& setting : settings_of_text) fix_setting(setting);
}

void fix_setting_for_session(const FixedSetting& setting) {
    SetConfigOption(setting.name, setting.value, PGC_SUSET, PGC_S_OVERRIDE);
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
