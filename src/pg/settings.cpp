// Definition of the settings (GUCs).
#include "pg/settings.h"

#include "pg/pg.h"

extern "C" {
#include "utils/guc.h"
}

#include <climits>

namespace onerepl::settings {

char* databases = nullptr;
char* listen = nullptr;
char* alert_command = nullptr;
int receivers = 1;
int reply_timeout = 10000;
int state_query_interval = 60000;
int send_interval = 1000;
int batch_bytes = 1024;
int max_in_flight = 16;
int max_body_size = 65536;
int queue_limit = 1024;
int compression = 1;
int log_retention = 3600;
int journal_retention = 2592000;
int journal_level = 0;
double log_warning_size = 10240;
double log_critical_size = 51200;
int log_limit_policy = 0;
int max_row_size = 512;
int row_limit_policy = 0;
int refresh_share = 2;
int max_connections = 1000;
bool dump_keys = false;
bool allow_writes = false;

namespace {

struct Number {
    const char* name;
    const char* description;
    int* variable;
    int smallest;
    int largest;
    int unit;
};

// PGC_SUSET rather than PGC_SIGHUP, so that ALTER DATABASE ... SET gives each database of a server its own
// value; a reload changes them in running workers all the same.
const Number numbers[] = {
    {"onerepl.receivers", "Number of receivers that share the port of each database.", &receivers, 1, 16, 0},
    {"onerepl.reply_timeout", "Tr: how long to wait for the answer to a message.", &reply_timeout, 100,
     86400000, GUC_UNIT_MS},
    {"onerepl.state_query_interval",
     "Ts: how long a central may be idle before it asks for the remote's state.", &state_query_interval, 100,
     86400000, GUC_UNIT_MS},
    {"onerepl.send_interval", "Ti: how often a remote contacts its central when it has nothing to send.",
     &send_interval, 10, 3600000, GUC_UNIT_MS},
    {"onerepl.batch_bytes", "Target size of a body's messages before compression.", &batch_bytes, 16, 65536,
     GUC_UNIT_KB},
    {"onerepl.max_in_flight", "Bodies of one link that may be unanswered at once.", &max_in_flight, 1, 64, 0},
    {"onerepl.max_body_size", "Largest body that is accepted, compressed or not.", &max_body_size, 128,
     1048576, GUC_UNIT_KB},
    {"onerepl.queue_limit", "What a central holds of one link beyond what it has written.", &queue_limit, 1,
     1048576, GUC_UNIT_MB},
    {"onerepl.compression", "zstd level of bodies; 0 means none.", &compression, 0, 19, 0},
    {"onerepl.log_retention", "How long confirmed records are kept in the log.", &log_retention, 0, INT_MAX,
     GUC_UNIT_S},
    {"onerepl.journal_retention", "How long journal entries are kept.", &journal_retention, 0, INT_MAX,
     GUC_UNIT_S},
    {"onerepl.max_row_size",
     "Size of a changed row's large values, uncompressed, beyond which onerepl.row_limit_policy acts.",
     &max_row_size, 1, 800, GUC_UNIT_MB},
    {"onerepl.refresh_share",
     "Share of the time that a refresh may read while this server is in use, in percent; 100: all of it.",
     &refresh_share, 1, 100, 0},
    {"onerepl.max_connections", "Open HTTP connections of one receiver.", &max_connections, 1, 65536, 0},
};

/// Not whole numbers: what is less than half a megabyte would become 0, and mean never.
void define_log_size(const char* name, const char* description, double* variable) {
    constexpr double largest = 1e12;
    DefineCustomRealVariable(name, description, nullptr, variable, *variable, 0, largest, PGC_SUSET,
                             GUC_UNIT_MB, nullptr, nullptr, nullptr);
}

const config_enum_entry levels[] = {
    {"information", 0, false}, {"warning", 1, false}, {"critical", 2, false}, {nullptr, 0, false}};
const config_enum_entry policies[] = {
    {"continue", 0, false}, {"stop_capture", 1, false}, {nullptr, 0, false}};
const config_enum_entry row_policies[] = {
    {"log_without_data", 0, false}, {"refuse", 1, false}, {nullptr, 0, false}};

bool (*readable_listen)(const char* value) = nullptr;

bool check_listen(char** value, void**, GucSource) {
    if (*value == nullptr || readable_listen(*value)) return true;
    GUC_check_errdetail("It is a list of host:port, separated by commas.");
    return false;
}

}  // namespace

void define(bool (*is_readable_listen)(const char* value)) {
    readable_listen = is_readable_listen;
    DefineCustomStringVariable("onerepl.databases", "Databases that get workers, separated by commas.",
                               nullptr, &databases, "", PGC_SIGHUP, GUC_LIST_INPUT, nullptr, nullptr,
                               nullptr);
    DefineCustomStringVariable("onerepl.listen",
                               "Address and port of a central's HTTP port, as \"0.0.0.0:7075\".", nullptr,
                               &listen, "", PGC_SUSET, 0, check_listen, nullptr, nullptr);
    DefineCustomStringVariable(
        "onerepl.alert_command", "Shell command that is run for each critical journal entry.",
        "It finds the entry in the environment: ONEREPL_LEVEL, ONEREPL_LINK, ONEREPL_MESSAGE, ONEREPL_HINT.",
        &alert_command, "", PGC_SIGHUP, GUC_SUPERUSER_ONLY, nullptr, nullptr, nullptr);
    for (const Number& number : numbers)
        DefineCustomIntVariable(number.name, number.description, nullptr, number.variable, *number.variable,
                                number.smallest, number.largest, PGC_SUSET, number.unit, nullptr, nullptr,
                                nullptr);
    define_log_size("onerepl.log_warning_size", "Size of the log that gives a warning; 0 means never.",
                    &log_warning_size);
    define_log_size(
        "onerepl.log_critical_size",
        "Size of what is not confirmed in the log at which onerepl.log_limit_policy acts; 0 means never.",
        &log_critical_size);
    DefineCustomEnumVariable("onerepl.journal_level", "Least level of entries that the journal keeps.",
                             nullptr, &journal_level, 0, levels, PGC_SUSET, 0, nullptr, nullptr, nullptr);
    DefineCustomEnumVariable(
        "onerepl.log_limit_policy", "What happens when the log has reached onerepl.log_critical_size.",
        "continue: capture goes on. stop_capture: nothing is captured any more, and the links need a "
        "new start with a refresh.",
        &log_limit_policy, 0, policies, PGC_SUSET, 0, nullptr, nullptr, nullptr);
    DefineCustomEnumVariable(
        "onerepl.row_limit_policy", "What happens to a change whose row is larger than onerepl.max_row_size.",
        "log_without_data: the change is recorded without its values, and fails at the central. refuse: the "
        "writer gets an error.",
        &row_limit_policy, 0, row_policies, PGC_SUSET, 0, nullptr, nullptr, nullptr);
    DefineCustomBoolVariable("onerepl.dump_keys", "A dump of this session has the keys of the links.",
                             "For PGOPTIONS of pg_dump.", &dump_keys, false, PGC_SUSET, 0, nullptr, nullptr,
                             nullptr);
    DefineCustomBoolVariable("onerepl.allow_writes",
                             "Lets this session write tables that onerepl writes here.",
                             "For the repair of a conflict on a central.", &allow_writes, false, PGC_SUSET, 0,
                             nullptr, nullptr, nullptr);
    MarkGUCPrefixReserved("onerepl");
}

}  // namespace onerepl::settings
