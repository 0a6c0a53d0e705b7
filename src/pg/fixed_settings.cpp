// The settings under which values are written as text, and read, and statements are executed.
#include "pg/fixed_settings.h"

extern "C" {
#include "access/xact.h"
#include "catalog/namespace.h"
#include "commands/trigger.h"
#include "jit/jit.h"
#include "parser/parse_expr.h"
#include "parser/parser.h"
#include "pgtime.h"
#include "tsearch/ts_cache.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/bytea.h"
#include "utils/float.h"
#include "utils/guc.h"
#include "utils/pg_locale.h"
#include "utils/xml.h"
}

namespace onerepl::pg {

namespace {

constexpr unsigned operator|(Settings a, Settings b) {
    return static_cast<unsigned>(a) | static_cast<unsigned>(b);
}
constexpr unsigned text_and_statements = Settings::of_text | Settings::of_statements;
constexpr unsigned apply_and_statements = Settings::of_apply | Settings::of_statements;
constexpr unsigned of_text = static_cast<unsigned>(Settings::of_text);
constexpr unsigned apply = static_cast<unsigned>(Settings::of_apply);
constexpr unsigned statements = static_cast<unsigned>(Settings::of_statements);

// What is not here, and why. search_path: a statement has its own. escape_string_warning: warns only.
// default_tablespace, default_table_access_method, default_toast_compression, password_encryption,
// createrole_self_grant: how a database stores things and whom it trusts is its own affair. Settings of
// extensions and of functions that a statement calls: not known here.
constexpr FixedSetting all_settings[] = {
    {"datestyle", "ISO, MDY", [] { return DateStyle == USE_ISO_DATES && DateOrder == DATEORDER_MDY; },
     text_and_statements},
    {"intervalstyle", "postgres", [] { return IntervalStyle == INTSTYLE_POSTGRES; }, text_and_statements},
    {"extra_float_digits", "3", [] { return extra_float_digits == 3; }, text_and_statements},
    {"bytea_output", "hex", [] { return bytea_output == BYTEA_OUTPUT_HEX; }, text_and_statements},
    {"timezone", "UTC", [] { return strcmp(pg_get_timezone_name(session_timezone), "UTC") == 0; },
     text_and_statements},
    {"search_path", "pg_catalog", [] { return strcmp(namespace_search_path, "pg_catalog") == 0; }, of_text},
    {"lc_monetary", "C", [] { return strcmp(locale_monetary, "C") == 0; }, text_and_statements, true},
    {"lc_numeric", "C", [] { return strcmp(locale_numeric, "C") == 0; }, statements, true},
    {"lc_time", "C", [] { return strcmp(locale_time, "C") == 0; }, statements, true},
    {"quote_all_identifiers", "off", [] { return !quote_all_identifiers; }, text_and_statements},
    {"xmloption", "content", [] { return xmloption == XMLOPTION_CONTENT; }, apply_and_statements},
    {"xmlbinary", "base64", [] { return xmlbinary == XMLBINARY_BASE64; }, statements},
    {"array_nulls", "on", [] { return Array_nulls; }, apply_and_statements},
    {"transform_null_equals", "off", [] { return !Transform_null_equals; }, statements},
    {"default_text_search_config", "pg_catalog.simple",
     [] { return strcmp(TSCurrentConfig, "pg_catalog.simple") == 0; }, statements},
    {"check_function_bodies", "on", [] { return check_function_bodies; }, statements},
    // Acts when a text is lexed: a SET in front of it in the same text comes too late.
    {"standard_conforming_strings", "on", [] { return standard_conforming_strings; }, statements},
    // What the remote has lexed is lexed here too; "safe" is meant for encodings of clients.
    {"backslash_quote", "on", [] { return backslash_quote == BACKSLASH_QUOTE_ON; }, apply},
    // Foreign keys and ordinary triggers were checked and fired on A; here they would do it a second time.
    {"session_replication_role", "replica",
     [] { return SessionReplicationRole == SESSION_REPLICATION_ROLE_REPLICA; }, apply},
    {"jit", "off", [] { return !jit_enabled; }, apply},
};

}  // namespace

std::span<const FixedSetting> fixed_settings() {
    return all_settings;
}

const FixedSetting* find_setting_of_statements(const char* name) {
    for (const FixedSetting& setting : all_settings)
        if (setting.is(Settings::of_statements) && strcmp(setting.name, name) == 0) return &setting;
    return nullptr;
}

void fix_setting(const FixedSetting& setting) {
    if (setting.holds()) return;
    set_config_option(setting.name, setting.value, PGC_SUSET, PGC_S_SESSION, GUC_ACTION_SAVE, true, 0, false);
}

void fix_settings(Settings use) {
    for (const FixedSetting& setting : all_settings)
        if (setting.is(use)) fix_setting(setting);
}

void fix_settings_for_session(Settings use) {
    for (const FixedSetting& setting : all_settings)
        if (setting.is(use)) SetConfigOption(setting.name, setting.value, PGC_SUSET, PGC_S_OVERRIDE);
}

int begin_fixed_settings() {
    const int level = NewGUCNestLevel();
    fix_settings(Settings::of_text);
    return level;
}

void end_fixed_settings(int level) {
    AtEOXact_GUC(true, level);
}

}  // namespace onerepl::pg
