// Fixed settings for the worker, and once more for each B transaction, since what a trigger does at a commit
// may change them: values must come out bit-equal, and no role's search_path may lead apply astray.
#include "apply/session.h"

#include "pg/error_boundary.h"
#include "pg/fixed_settings.h"
#include "pg/settings.h"

extern "C" {
#include "storage/proc.h"
}

#include <algorithm>
#include <string>

namespace onerepl::apply {

namespace {

/// The worker serves other links too, and the remote waits for its answer: it does not wait for a lock for
/// long. 55P03 is transient, so apply comes back.
std::string lock_timeout() {
    return std::to_string(std::clamp(settings::reply_timeout / 2, 100, 5000));  // ms
}

}  // namespace

void begin_session() {
    pg::call([] {
        pg::fix_settings_for_session(pg::Settings::of_text);
        pg::fix_settings_for_session(pg::Settings::of_apply);
    });
}

void prepare_session() {
    const std::string longest_wait = lock_timeout();
    pg::call([&] {
        pg::fix_setting({"lock_timeout", longest_wait.c_str(), [] { return false; }, 0});
        pg::fix_settings(pg::Settings::of_text);
        pg::fix_settings(pg::Settings::of_apply);
    });
}

}  // namespace onerepl::apply
