// Fixed settings for each B transaction: values must come out bit-equal, and no role's search_path may lead
// apply astray.
#include "apply/session.h"

#include "pg/guard.h"

extern "C" {
#include "utils/guc.h"
}

namespace onerepl::apply {

namespace {

struct Setting {
    const char* name;
    const char* value;
};

constexpr Setting settings_of_apply[] = {
    {"search_path", "pg_catalog"}, {"session_replication_role", "replica"},
    {"DateStyle", "ISO, MDY"},     {"IntervalStyle", "postgres"},
    {"TimeZone", "UTC"},           {"extra_float_digits", "3"},
    {"bytea_output", "hex"},       {"xmloption", "content"},
};

}  // namespace

void prepare_session() {
    pg::call([] {
        for (const Setting& setting : settings_of_apply) {
            if (strcmp(GetConfigOption(setting.name, false, false), setting.value) == 0) continue;
            set_config_option(setting.name, setting.value, PGC_SUSET, PGC_S_SESSION, GUC_ACTION_LOCAL, true,
                              0, false);
        }
    });
}

}  // namespace onerepl::apply
