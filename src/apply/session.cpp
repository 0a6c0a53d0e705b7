// Fixed settings for each B transaction: values must come out bit-equal, and no role's search_path may lead
// apply astray.
#include "apply/session.h"

#include "pg/guard.h"
#include "pg/settings.h"

extern "C" {
#include "utils/guc.h"
}

#include <algorithm>
#include <string>

namespace onerepl::apply {

namespace {

struct Setting {
    const char* name;
    const char* value;
};

constexpr Setting settings_of_apply[] = {
    {"search_path", "pg_catalog"},
    {"session_replication_role", "replica"},
    {"DateStyle", "ISO, MDY"},
    {"IntervalStyle", "postgres"},
    {"TimeZone", "UTC"},
    {"extra_float_digits", "3"},
    {"bytea_output", "hex"},
    {"xmloption", "content"},
    {"array_nulls", "on"},
    {"lc_monetary", "C"},
    {"quote_all_identifiers", "off"},
    {"jit", "off"},
};

/// The worker serves other links too, and the remote waits for its answer: it does not wait for a lock for
/// long. 55P03 is transient, so apply comes back.
std::string lock_timeout() {
    return std::to_string(std::clamp(settings::reply_timeout / 2, 100, 5000));  // ms
}

void set_locally(const char* name, const char* value) {
    set_config_option(name, value, PGC_SUSET, PGC_S_SESSION, GUC_ACTION_LOCAL, true, 0, false);
}

}  // namespace

void prepare_session() {
    const std::string longest_wait = lock_timeout();
    pg::call([&] {
        // An administrator may keep users from writing by default_transaction_read_only.
        XactReadOnly = false;
        if (strcmp(GetConfigOption("lock_timeout", false, false), "0") == 0)
            set_locally("lock_timeout", longest_wait.c_str());
        for (const Setting& setting : settings_of_apply) {
            if (strcmp(GetConfigOption(setting.name, false, false), setting.value) == 0) continue;
            set_locally(setting.name, setting.value);
        }
    });
}

}  // namespace onerepl::apply
