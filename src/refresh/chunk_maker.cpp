// Makes chunks. All that is remembered from one to the next is in onerepl.refresh, changed in the transaction
// that gives the chunk its number, so a refresh goes on wherever it was interrupted.
#include "refresh/chunk_maker.h"

#include "log/chunk_record.h"
#include "log/link_filters.h"
#include "pg/array_text.h"
#include "pg/clock.h"
#include "pg/fixed_settings.h"
#include "pg/settings.h"
#include "pg/spi.h"
#include "pg/transaction.h"
#include "refresh/pace.h"
#include "shared/memory.h"

extern "C" {
#include "utils/timestamp.h"
}

#include <algorithm>
#include <utility>

namespace onerepl::refresh {

namespace {

/// Chunks of one link that are not confirmed.
constexpr std::uint64_t most_in_flight = 8;
/// A table that could not be read now is looked at again after this.
constexpr Time retry_interval = 100 * millisecond;
constexpr Time nothing_to_do = 60 * second;

void journal(int level, int link, const std::string& message, const std::string& hint, Number n) {
    pg::execute(
        "SELECT onerepl.write_journal($1, $2, 'III', $3, nullif($4, ''), nullif($5, 0), nullif($5, 0))",
        {level, link, message, hint, n});
}

}  // namespace

// ---------------------------------------------------------------- what there is to do

void ChunkMaker::load() {
    work_.clear();
    pg::query(
        "SELECT id, link, relation, method = 'repair', state = 'cancelling', begun,"
        " state IN ('waiting', 'running'),"
        " (extract(epoch FROM greatest(start_at, not_before) - pg_catalog.clock_timestamp()) * "
        "1000000)::int8,"
        " chunk_rows, chunks, coalesce(description, 0), method = 'verify',"
        " method = 'repair' AND (key_from IS NOT NULL OR key_to IS NOT NULL), with_rows, one_snapshot,"
        " rows_per_second IS NOT NULL OR bytes_per_second IS NOT NULL"
        " FROM onerepl.refresh WHERE state IN ('waiting', 'running', 'paused', 'sent', 'cancelling')"
        " ORDER BY link, priority, id",
        {}, [&](const pg::Row& row) {
            Work work;
            work.id = row.number(0);
            work.link = row.int4(1);
            work.relation = row.oid(2);
            work.repair = row.boolean(3);
            work.cancelling = row.boolean(4);
            work.opened = row.boolean(5);
            work.runs = row.boolean(6);
            work.due = row.is_null(7) ? 0 : std::max<Time>(0, row.int8(7));
            work.chunk_rows = row.number(8);
            work.chunks = row.number(9);
            work.description = row.number(10);
            work.filter = log::filter_of(work.description);
            work.verify = row.boolean(11);
            work.partial = row.boolean(12);
            work.with_rows = row.boolean(13);
            work.one_snapshot = row.boolean(14);
            work.throttled = row.boolean(15);
            work_.push_back(std::move(work));
        });
}

/// Chunks that were confirmed go, and so ends the refresh whose last one that was.
void ChunkMaker::settle() {
    pg::execute("DELETE FROM onerepl.chunk WHERE n <= onerepl.confirmed_to(link)");
    pg::query(
        "UPDATE onerepl.refresh SET state = outcome, finished_at = pg_catalog.clock_timestamp()"
        " WHERE state = 'sent' AND lid_end <= onerepl.confirmed_to(link) RETURNING link, name, outcome, "
        "lid_end,"
        " CASE method WHEN 'verify' THEN 'compared: see onerepl.differences at the central' ELSE 'copied' "
        "END",
        {}, [](const pg::Row& row) {
            if (row.text(2) == "done")
                journal(0, row.int4(0), "table " + row.text(1) + " is " + row.text(4), "", row.number(3));
        });
}

void ChunkMaker::load_chunks_in_flight() {
    in_flight_.clear();
    pg::query("SELECT link, count(*), min(n) FROM onerepl.chunk GROUP BY link", {}, [&](const pg::Row& row) {
        in_flight_[row.int4(0)] = {row.number(1), row.number(2)};
    });
}

void ChunkMaker::note_confirmed(int link, Number confirmed) {
    const auto found = in_flight_.find(link);
    if (found != in_flight_.end() && found->second.oldest <= confirmed) check_ = true;
}

/// A refresh comes with an order, which is counted before its transaction gives up its locks.
bool ChunkMaker::is_expected() const {
    return check_ || shared::sender_generation() != generation_ || (busy_ && pg::now() >= due_at_);
}

Time ChunkMaker::time_to_wait() const {
    if (check_) return 0;
    return busy_ ? std::max<Time>(due_at_ - pg::now(), 0) : nothing_to_do;
}

void ChunkMaker::wait_at_most(Time wait) {
    due_at_ = std::min(due_at_, pg::now() + wait);
}

bool ChunkMaker::begin() {
    generation_ = shared::sender_generation();
    marks_.clear();
    copies_.clear();
    current_ = 0;
    due_at_ = pg::now() + nothing_to_do;
    layouts_.trim();
    load();
    busy_ = !work_.empty();
    check_ = false;
    in_flight_.clear();
    if (!busy_) return false;
    pg::call([] { pg::begin_fixed_settings(); });  // until the end of the transaction
    settle();
    load_chunks_in_flight();
    int link = 0;
    bool link_has_one = false;
    for (Work& work : work_) {
        if (work.link != link) link_has_one = false;
        link = work.link;
        plan(work, link_has_one);
    }
    current_ = 0;
    return !copies_.empty();
}

/// Decides what is done for one refresh in this step. `link_has_one`: another one of its link is being
/// copied.
void ChunkMaker::plan(Work& work, bool& link_has_one) {
    current_ = work.id;
    if (work.cancelling) return marks_.push_back(&work);
    if (!work.runs) return;
    if (work.due > 0 && (!work.opened || !link_has_one)) wait_at_most(work.due);
    if (!work.opened && !work.verify) {
        if (work.due > 0 || !read_table(work)) return;
        marks_.push_back(&work);
    }
    if (link_has_one) return;
    link_has_one = true;
    if (work.due > 0) return;
    const auto in_flight = in_flight_.find(work.link);
    if (in_flight != in_flight_.end() && in_flight->second.count >= most_in_flight) return;
    if (!work.table && !read_table(work)) return;
    copies_.push_back(&work);
}

/// Opens the table. False: not now.
bool ChunkMaker::read_table(Work& work) {
    switch (access_table(work.relation)) {
        case Access::granted:
            work.table =
                std::make_unique<CopiedTable>(work.relation, work.link, work.repair || work.verify, layouts_);
            if (!has_kept_shape(work)) {
                begin_anew(work);
                return false;
            }
            work.description = work.table->description();
            return true;
        case Access::later:
            wait_at_most(retry_interval);
            return false;
        case Access::gone:
            lose_table(work);
            return false;
    }
    return false;
}

/// Keys that were remembered mean something under the key of that time only, and rows were chosen by the
/// filter of that time (P21).
bool ChunkMaker::has_kept_shape(const Work& work) const {
    if (work.chunks > 0 && log::filter_of(work.table->description()) != work.filter) return false;
    return pg::query_int8(
               "SELECT 1::int8 FROM onerepl.refresh"
               " WHERE id = $1 AND key_shape IS NOT DISTINCT FROM onerepl.key_shape(relation)",
               {work.id})
        .has_value();
}

void ChunkMaker::begin_anew(Work& work) {
    work.table.reset();
    pg::execute("SELECT onerepl.begin_refresh_anew($1)", {work.id});
    wait_at_most(0);
}

void ChunkMaker::lose_table(Work& work) {
    pg::execute(
        "UPDATE onerepl.refresh SET state = 'cancelling', outcome = 'failed', error = $2 WHERE id = $1",
        {work.id, "the table is gone"});
    wait_at_most(0);
}

// ---------------------------------------------------------------- beginnings and ends

std::vector<log::NumberedTransaction> ChunkMaker::before(Number first, bool) {
    std::vector<log::NumberedTransaction> transactions;
    for (Work* work : marks_) {
        current_ = work->id;
        if (work->cancelling && !work->opened)
            note_cancelled(*work, 0);
        else
            transactions.push_back(mark(*work, first++));
    }
    current_ = 0;
    if (!marks_.empty()) wait_at_most(0);
    marks_.clear();  // the next step may come without `begin`
    return transactions;
}

log::NumberedTransaction ChunkMaker::mark(Work& work, Number n) {
    make_mark(work.table.get(), work, work.cancelling, work.description, n);
    in_flight_.try_emplace(work.link, InFlight{1, n});
    if (work.cancelling)
        note_cancelled(work, n);
    else
        note_opened(work, n);
    return log::chunk_transaction(n, 1, work.link);
}

void ChunkMaker::note_opened(const Work& work, Number n) {
    pg::query(
        "UPDATE onerepl.refresh SET begun = true, lid_start = $2 - 1, description = $3,"
        " started_at = pg_catalog.clock_timestamp() WHERE id = $1 RETURNING name",
        {work.id, n, work.description}, [&](const pg::Row& row) {
            journal(0, work.link, "the refresh of table " + row.text(0) + " begins", "", n);
        });
}

/// `n`: the number that tells the central; 0: it need not know.
void ChunkMaker::note_cancelled(const Work& work, Number n) {
    pg::query(
        "UPDATE onerepl.refresh SET state = CASE WHEN $2 > 0 THEN 'sent' ELSE outcome END, lid_end = "
        "nullif($2, 0),"
        " finished_at = pg_catalog.clock_timestamp() WHERE id = $1 RETURNING name, outcome, error",
        {work.id, n}, [&](const pg::Row& row) {
            const bool failed = row.text(1) == "failed";
            const bool anew = !failed && !row.is_null(2);
            const std::string what = failed ? " failed: " + row.text(2)
                                     : anew ? " begins anew: " + row.text(2)
                                            : " was cancelled";
            journal(failed ? 2 : 1, work.link, "the refresh of table " + row.text(0) + what,
                    n > 0 && !anew
                        ? "The table is not complete at the central. Call onerepl_refresh for it again."
                        : "",
                    n);
        });
}

/// What `begin` has planned was seen by the transaction that is gone.
void ChunkMaker::rolled_back() {
    marks_.clear();
    copies_.clear();
    work_.clear();
    check_ = true;
}

void ChunkMaker::failed(const pg::ErrorReport& report) {
    const std::uint64_t id = current_;
    // Again after a while.
    check_ = false;
    busy_ = true;
    generation_ = shared::sender_generation();
    due_at_ = pg::now() + retry_interval;
    if (id == 0 || pg::is_transient(report.sqlstate)) return;
    pg::in_transaction([&] {
        pg::execute(
            "UPDATE onerepl.refresh SET state = 'cancelling', outcome = 'failed', error = $2 WHERE id = $1",
            {id, report.message + " (SQLSTATE " + report.sqlstate + ")"});
    });
}

// ---------------------------------------------------------------- chunks

std::vector<log::NumberedTransaction> ChunkMaker::after(Number first) {
    std::vector<log::NumberedTransaction> transactions;
    for (Work* work : copies_) {
        current_ = work->id;
        const TimestampTz begin = GetCurrentTimestamp();
        Made made =
            work->verify ? make_digest(*work->table, *work, first) : make_copy(*work->table, *work, first);
        if (!work->throttled) made.pause = pause_after(GetCurrentTimestamp() - begin);
        wait_at_most(note_made(*work, made, first, first + made.chunks - 1));
        in_flight_.try_emplace(work->link, InFlight{made.chunks, first});
        transactions.push_back(log::chunk_transaction(first, made.chunks, work->link));
        first += made.chunks;
    }
    current_ = 0;
    work_.clear();
    return transactions;
}

/// Gives how long the next chunk is to wait.
Time ChunkMaker::note_made(const Work& work, const Made& made, Number first, Number last) {
    Time wait = 0;
    pg::query(
        "UPDATE onerepl.refresh SET state = CASE WHEN $2 THEN 'sent' ELSE 'running' END,"
        " outcome = CASE WHEN $2 THEN 'done' END, lid_end = CASE WHEN $2 THEN $3::int8 END,"
        " lid_start = coalesce(lid_start, $9 - 1), started_at = coalesce(started_at, "
        "pg_catalog.clock_timestamp()),"
        " chunks = chunks + $4, rows_done = rows_done + $5, bytes_done = bytes_done + $6, description = $7,"
        " last_key = CASE WHEN $2 THEN last_key ELSE CAST($8 AS text[]) END,"
        " not_before = pg_catalog.clock_timestamp() + pg_catalog.make_interval(secs => greatest("
        "   $5::float8 / rows_per_second, $6::float8 / bytes_per_second, $10))"
        " WHERE id = $1"
        " RETURNING (extract(epoch FROM not_before - pg_catalog.clock_timestamp()) * 1000000)::int8",
        {work.id, made.last, last, made.chunks, made.rows, made.bytes, work.description,
         pg::array_text(made.to), first, made.pause},
        [&](const pg::Row& row) { wait = std::max<Time>(row.int8(0), 0); });
    return wait;
}

}  // namespace onerepl::refresh
