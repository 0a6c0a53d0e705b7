// The settings of postgresql.conf (prefix `onerepl.`). docs/settings.md has the table for administrators.
#pragma once

#include "core/types.h"

#include <string>

namespace onerepl::settings {

// Which databases get workers; comma-separated. SIGHUP.
extern char* databases;
// host:port of the central's HTTP port, e.g. "0.0.0.0:7075"; empty: no receivers. May be set per database.
extern char* listen;
extern int receivers;             // workers that share the port, per database
extern int reply_timeout;         // Tr, ms
extern int state_query_interval;  // Ts, ms
extern int send_interval;         // Ti, ms
extern int batch_bytes;           // target size of a body's frames before compression, kB
extern int max_in_flight;         // bodies of one link that may be unanswered at once
extern int max_body_size;         // largest accepted body, kB
extern int queue_limit;           // what B holds of one link beyond S_b, MB
extern int compression;           // zstd level; 0: none
extern int log_retention;         // confirmed records are kept this long, s
extern int journal_retention;     // s
extern int journal_level;         // core Level as int: 0 information, 1 warning, 2 critical
extern double log_warning_size;   // MB; 0: never
extern double log_critical_size;  // MB; 0: never
extern int log_limit_policy;      // 0 continue, 1 stop_capture
extern int max_row_size;          // of a changed row's large values, MB
extern int row_limit_policy;      // 0 log_without_data, 1 refuse
constexpr int refuse_row = 1;
extern int refresh_share;    // of the time that refreshes may use while A is in use, percent
extern int max_connections;  // open HTTP connections of one receiver
extern bool dump_keys;       // pg_dump takes onerepl.link_key along; read by the condition of the dump only
extern bool allow_writes;    // P8: this session may write tracked tables of a central; superuser only
extern char* alert_command;  // run by the shell for every critical journal entry

/// Defines them all; from _PG_init. `is_readable_listen`: whether onerepl.listen may have a value; must not
/// throw.
void define(bool (*is_readable_listen)(const char* value));

}  // namespace onerepl::settings
