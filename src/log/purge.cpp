// Rotation and purge of the log (P7). A log table that capture has left is first *sealed*: no writer holds it
// any more, and a numbering step that began after that gives the largest number that can be in it. It is
// emptied when that number is confirmed by all links and the seal is older than the retention.
#include "log/purge.h"

#include "log/batch.h"
#include "log/numbering.h"
#include "log/reader.h"
#include "log/replaced_descriptions.h"
#include "log/empty_table.h"
#include "pg/spi.h"
#include "pg/transaction.h"
#include "shared/memory.h"
#include "store/log_tables.h"

#include <algorithm>

namespace onerepl::log {

namespace {

// With four tables, each is needed again after three rotations; two of them cover the retention.
constexpr int rotations_per_retention = 2;
constexpr int shortest_rotation = 10;          // s
constexpr int steps_between_descriptions = 4;  // they are few and small

std::string table_name(std::uint32_t table) {
    return "onerepl.change_" + std::to_string(table);
}

Oid oid_of(std::uint32_t table) {
    const auto oid =
        pg::query_int8("SELECT $1::pg_catalog.regclass::pg_catalog.oid::int8", {table_name(table)});
    return static_cast<Oid>(oid.value_or(0));
}

/// What the steps of one call share.
struct Situation {
    std::uint32_t active = 0;
    Number confirmed = 0;  // by all links; without links all that there is
    int retention = 0;
};

/// In a transaction.
Situation read_situation(int retention) {
    Situation situation;
    situation.retention = retention;
    situation.active =
        static_cast<std::uint32_t>(pg::query_int8("SELECT active::int8 FROM onerepl.log_state").value_or(0));
    const auto least = pg::query_int8(
        "SELECT min(coalesce((SELECT p.confirmed FROM onerepl.sent_progress AS p WHERE p.link = l.id"
        " ORDER BY p.seq DESC LIMIT 1), l.start, 0)) FROM onerepl.link AS l WHERE l.role = 'remote'");
    situation.confirmed = least ? static_cast<Number>(*least) : last_number();
    return situation;
}

Situation check(int retention) {
    Situation situation;
    pg::in_transaction([&] { situation = read_situation(retention); });
    return situation;
}

std::int64_t size_of(std::uint32_t table) {
    return pg::query_int8("SELECT pg_catalog.pg_total_relation_size($1::pg_catalog.regclass)",
                          {table_name(table)})
        .value_or(0);
}

bool is_empty(std::uint32_t table) {
    return pg::query_int8("SELECT pg_catalog.pg_relation_size($1::pg_catalog.regclass)", {table_name(table)})
               .value_or(0) == 0;
}

// ---------------------------------------------------------------- rotation

/// Makes the next log table the active one, if it is time and the next one is empty. Writers that have begun
/// stay with the one they have.
void rotate(Situation& situation) {
    const int age = std::max(shortest_rotation, situation.retention / rotations_per_retention);
    const std::uint32_t next = (situation.active + 1) % store::log_tables;
    pg::in_transaction([&] {
        if (is_empty(situation.active) || !is_empty(next)) return;
        const std::uint64_t rotated = pg::execute(
            "UPDATE onerepl.log_state SET active = $1, rotated_at = pg_catalog.clock_timestamp()"
            " WHERE rotated_at < pg_catalog.clock_timestamp() - pg_catalog.make_interval(secs => $2::float8)",
            {static_cast<std::int32_t>(next), static_cast<std::int32_t>(age)});
        if (rotated > 0) situation.active = next;
    });
    // Capture looks at shared memory; the table is for the time after a restart.
    if (shared::active_log_table() != static_cast<int>(situation.active))
        shared::set_active_log_table(static_cast<int>(situation.active));
}

// ---------------------------------------------------------------- log tables

/// Runs `work` in a transaction that holds a lock on the table; false if that would have to wait.
bool with_lock(std::uint32_t table, const char* mode, const std::function<void()>& work) {
    try {
        pg::in_transaction([&] {
            // What is checked under the lock needs a snapshot that is younger than the lock, whatever
            // default_transaction_isolation says.
            XactIsoLevel = XACT_READ_COMMITTED;
            pg::execute(("LOCK TABLE " + table_name(table) + " IN " + mode + " MODE NOWAIT").c_str());
            work();
        });
        return true;
    } catch (const pg::Error& error) {
        if (error.sqlstate() == "55P03") return false;
        throw;
    }
}

struct Seal {
    bool there = false;
    bool due = false;  // confirmed and old enough
};

Seal read_seal(std::uint32_t table, const Situation& situation) {
    Seal seal;
    pg::query(
        "SELECT last <= $2 AND at <= pg_catalog.clock_timestamp() - pg_catalog.make_interval(secs => "
        "$3::float8)"
        " FROM onerepl.log_seal WHERE log_table = $1",
        {static_cast<std::int32_t>(table), situation.confirmed,
         static_cast<std::int32_t>(situation.retention)},
        [&](const pg::Row& row) {
            seal = {true, row.boolean(0)};
        });
    return seal;
}

void seal_table(std::uint32_t table) {
    if (!with_lock(table, "SHARE", [] {})) return;
    const Numbered numbered = number_changes();
    if (!numbered.complete) return;
    pg::in_transaction([&] {
        pg::execute("INSERT INTO onerepl.log_seal (log_table, last) VALUES ($1, $2)",
                    {static_cast<std::int32_t>(table), numbered.last});
    });
}

/// True if the table, which nobody else can touch now, holds nothing that is still needed. A writer may have
/// come between seal and lock, so the seal alone is not enough.
bool is_disposable(std::uint32_t table, const Situation& situation) {
    const std::string unnumbered = "SELECT 1::int8 FROM " + table_name(table) +
                                   " WHERE xid >= coalesce((SELECT pg_catalog.pg_snapshot_xmax(snapshot) "
                                   "FROM onerepl.batch ORDER BY first DESC LIMIT 1)"
                                   ", '0')"
                                   " OR xid = ANY (ARRAY(SELECT pg_catalog.pg_snapshot_xip((SELECT snapshot "
                                   "FROM onerepl.batch ORDER BY first DESC"
                                   " LIMIT 1)))) LIMIT 1";
    if (pg::query_int8(unnumbered.c_str())) return false;
    const auto unconfirmed = pg::query_int8(
        "SELECT first FROM onerepl.batch WHERE last > $1"
        " AND first >= coalesce((SELECT first FROM onerepl.batch WHERE first <= $1 ORDER BY first DESC LIMIT "
        "1), 0)"
        " AND pg_catalog.get_byte(pg_catalog.substring(transactions, 2, 1), 0) & $2 <> 0 LIMIT 1",
        {situation.confirmed, static_cast<std::int32_t>(1 << table)});
    return !unconfirmed;
}

void empty_table(std::uint32_t table, const Situation& situation) {
    with_lock(table, "ACCESS EXCLUSIVE", [&] {
        const bool disposable = is_disposable(table, situation);
        if (disposable) truncate_unlogged_by_decoding(oid_of(table));
        // Not disposable: to be sealed anew.
        pg::execute("DELETE FROM onerepl.log_seal WHERE log_table = $1", {static_cast<std::int32_t>(table)});
    });
}

void purge_table(std::uint32_t table, const Situation& situation) {
    bool empty = false;
    Seal seal;
    pg::in_transaction([&] {
        empty = is_empty(table);
        if (!empty) seal = read_seal(table, situation);
    });
    if (empty) return;
    if (!seal.there)
        seal_table(table);
    else if (seal.due)
        empty_table(table, situation);
}

// ---------------------------------------------------------------- small tables

/// Batches that nobody needs: after them all is confirmed, so that even the identity before the next number
/// (P9) is in a later one.
void purge_batches(const Situation& situation) {
    pg::execute(
        "DELETE FROM onerepl.batch WHERE first < (SELECT first FROM onerepl.batch"
        " WHERE last >= $1 OR made_at > pg_catalog.clock_timestamp() - pg_catalog.make_interval(secs => "
        "$2::float8)"
        " OR last = $3 ORDER BY first LIMIT 1)",
        {situation.confirmed, static_cast<std::int32_t>(situation.retention), last_number()});
}

void purge_positions(const Situation& situation) {
    pg::execute(
        "DELETE FROM onerepl.sent_progress AS p USING ("
        "  SELECT l.id, newest.seq FROM onerepl.link AS l CROSS JOIN LATERAL ("
        "    SELECT q.seq FROM onerepl.sent_progress AS q WHERE q.link = l.id ORDER BY q.seq DESC LIMIT 1) "
        "AS "
        "newest"
        ") AS l WHERE p.link = l.id AND p.seq < l.seq"
        " AND p.at < pg_catalog.clock_timestamp() - pg_catalog.make_interval(secs => $1::float8)",
        {static_cast<std::int32_t>(situation.retention)});
}

}  // namespace

void purge_step(int retention) {
    Situation situation = check(retention);
    rotate(situation);
    for (std::uint32_t table = 0; table < store::log_tables; table++)
        if (table != situation.active) purge_table(table, situation);
    pg::in_transaction([&] {
        purge_batches(situation);
        purge_positions(situation);
        pg::execute("SELECT onerepl.purge_pending()");
    });
    static int steps = 0;
    if (steps++ % steps_between_descriptions == 0) purge_replaced_descriptions(situation.confirmed);
}

std::int64_t log_size() {
    std::int64_t size = 0;
    for (std::uint32_t table = 0; table < store::log_tables; table++) size += size_of(table);
    return size;
}

/// Estimated by the share of the records. What a table holds of them cannot be known before it is sealed, and
/// an alarm must not come from what was confirmed since (P7).
std::int64_t unconfirmed_size() {
    const Number confirmed = read_situation(0).confirmed;
    const Number last = last_number(), first = first_number();
    if (confirmed >= last) return 0;
    const Number begin = std::max(first, confirmed + 1);
    const double share = static_cast<double>(last - begin + 1) / static_cast<double>(last - first + 1);
    return static_cast<std::int64_t>(static_cast<double>(log_size()) * share);
}

}  // namespace onerepl::log
