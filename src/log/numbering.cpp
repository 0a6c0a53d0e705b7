// Numbering (P4): which transactions are new is decided by two snapshots, never by time or by the order of
// xids.
#include "pg/pg.h"

extern "C" {
#include "access/transam.h"
#include "catalog/namespace.h"
#include "catalog/pg_type.h"
#include "storage/lmgr.h"
#include "utils/array.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"
#include "utils/xid8.h"
}

#include "core/crypto.h"
#include "core/history.h"
#include "log/batch.h"
#include "log/batch_row.h"
#include "log/numbering.h"
#include "pg/spi.h"
#include "pg/transaction.h"

#include <algorithm>
#include <charconv>

namespace onerepl::log {

namespace {

/// A pg_snapshot taken apart. Its xids are full ones.
struct Snapshot {
    std::string text;
    std::uint64_t xmax = 0;  // xids from here on had not begun
    std::vector<std::uint64_t> running;
};

/// "xmin:xmax:xid,xid,..."
Snapshot parse_snapshot(std::string text) {
    Snapshot snapshot;
    std::vector<std::uint64_t> numbers;
    const char* at = text.data();
    const char* const end = at + text.size();
    while (at < end) {
        std::uint64_t number = 0;
        const auto [next, error] = std::from_chars(at, end, number);
        if (error == std::errc{}) numbers.push_back(number);
        at = next + 1;
    }
    if (numbers.size() < 2) throw pg::Error("XX001", "not a snapshot: \"" + text + "\"");
    snapshot.xmax = numbers[1];
    snapshot.running.assign(numbers.begin() + 2, numbers.end());
    snapshot.text = std::move(text);
    return snapshot;
}

/// What was running at `before` and is so no more.
std::vector<std::uint64_t> ended(const Snapshot& before, const Snapshot& now) {
    std::vector<std::uint64_t> result;
    std::ranges::set_difference(before.running, now.running, std::back_inserter(result));
    return result;
}

/// Where the numbers stand: what the newest batch says.
struct Position {
    Number last = 0;
    Identity identity{};
    Snapshot snapshot;  // empty text: there is no batch yet
};

/// The snapshot of a step that found nothing, and M then. The next step may begin from it instead of the
/// newest batch's, so that an idle log does not look at the same open transaction over and over. Lost at a
/// restart, which costs only that look.
struct QuietStep {
    Number last = 0;
    Snapshot snapshot;
};
QuietStep quiet_step;

Position read_position() {
    Position position;
    const bool found = pg::query(
        "SELECT first, last, identity_before, random, snapshot FROM onerepl.batch ORDER BY first DESC LIMIT "
        "1",
        {}, [&](const pg::Row& row) {
            const Batch batch = batch_from(row);
            position.last = batch.numbers.last;
            position.identity = identity_at(batch, position.last);
            position.snapshot = parse_snapshot(row.text(4));
        });
    if (!found)
        pg::query("SELECT id FROM onerepl.database", {},
                  [&](const pg::Row& row) { position.identity = identity_at_zero(row.uuid(0)); });
    return position;
}

Snapshot current_snapshot() {
    return parse_snapshot(pg::query_text("SELECT pg_catalog.pg_current_snapshot()::text").value_or(""));
}

/// A setting for the rest of this transaction.
void set_local(const char* name, const char* value) {
    pg::call(
        [&] { set_config_option(name, value, PGC_SUSET, PGC_S_SESSION, GUC_ACTION_LOCAL, true, 0, false); });
}

/// The last packs of new transactions in a fixed order. $1, $2: xids from .. below; $3: others that ended.
const char* const new_transactions =
    "SELECT xid, count, flags, log_table FROM ("
    " SELECT xid, place, count, flags, 0 AS log_table FROM onerepl.change_0 WHERE last AND xid >= $1 AND xid "
    "< $2"
    " UNION ALL"
    " SELECT xid, place, count, flags, 1 FROM onerepl.change_1 WHERE last AND xid >= $1 AND xid < $2"
    " UNION ALL"
    " SELECT xid, place, count, flags, 2 FROM onerepl.change_2 WHERE last AND xid >= $1 AND xid < $2"
    " UNION ALL"
    " SELECT xid, place, count, flags, 3 FROM onerepl.change_3 WHERE last AND xid >= $1 AND xid < $2"
    " UNION ALL"
    " SELECT xid, place, count, flags, 0 FROM onerepl.change_0 WHERE last AND xid = ANY ($3)"
    " UNION ALL"
    " SELECT xid, place, count, flags, 1 FROM onerepl.change_1 WHERE last AND xid = ANY ($3)"
    " UNION ALL"
    " SELECT xid, place, count, flags, 2 FROM onerepl.change_2 WHERE last AND xid = ANY ($3)"
    " UNION ALL"
    " SELECT xid, place, count, flags, 3 FROM onerepl.change_3 WHERE last AND xid = ANY ($3)"
    ") AS found ORDER BY place, xid";

SPIPlanPtr new_transactions_plan() {
    static SPIPlanPtr plan = nullptr;
    if (plan != nullptr) return plan;
    SPIPlanPtr made = pg::call([] {
        Oid types[] = {XID8OID, XID8OID, XID8ARRAYOID};
        SPIPlanPtr prepared = SPI_prepare_cursor(new_transactions, 3, types, CURSOR_OPT_GENERIC_PLAN);
        if (prepared == nullptr) elog(ERROR, "could not prepare the numbering query");
        SPI_keepplan(prepared);
        return prepared;
    });
    return plan = made;
}

Datum xid8(std::uint64_t xid) {
    return FullTransactionIdGetDatum(FullTransactionIdFromU64(xid));
}

/// Hands out the new transactions in chunks, from a portal: bounded memory however many there are.
class NewTransactions {
  public:
    NewTransactions(const Snapshot& before, const Snapshot& now) {
        std::vector<Datum> others;
        for (std::uint64_t xid : ended(before, now)) others.push_back(xid8(xid));
        SPIPlanPtr plan = new_transactions_plan();
        portal_ = pg::call([&] {
            ArrayType* array = construct_array(others.data(), static_cast<int>(others.size()), XID8OID, 8,
                                               FLOAT8PASSBYVAL, TYPALIGN_DOUBLE);
            Datum values[] = {xid8(before.xmax), xid8(now.xmax), PointerGetDatum(array)};
            return SPI_cursor_open(nullptr, plan, values, nullptr, true);
        });
    }

    /// Replaces `chunk`; empty at the end. The numbers begin after `last`.
    void next(Number last, std::vector<NumberedTransaction>& chunk) {
        chunk.clear();
        pg::call([&] { SPI_cursor_fetch(portal_, true, batch_transaction_limit); });
        SPITupleTable* const table = SPI_tuptable;
        for (std::uint64_t i = 0; i < table->numvals; i++) {
            const pg::Row row(table->vals[i], table->tupdesc);
            NumberedTransaction transaction;
            transaction.xid = row.number(0);  // xid8 is an unsigned int8 inside
            transaction.first = last + 1;
            transaction.count = row.number(1);
            transaction.flags = static_cast<std::uint32_t>(row.int4(2));
            transaction.table = static_cast<std::uint32_t>(row.int4(3));
            chunk.push_back(transaction);
            last = transaction.last();
        }
        pg::call([&] { SPI_freetuptable(table); });
    }

    void close() {
        pg::call([&] { SPI_cursor_close(portal_); });
    }

  private:
    Portal portal_;
};

/// Writes one batch row and moves `position` behind it. `snapshot`: only for the last of a step.
void write_batch(Position& position, const std::vector<NumberedTransaction>& transactions,
                 const Snapshot* snapshot) {
    Batch batch;
    batch.numbers = {transactions.front().first, transactions.back().last()};
    batch.before = position.identity;
    batch.random = random_array<Identity>();
    pg::execute(
        "INSERT INTO onerepl.batch (first, last, identity_before, random, snapshot, transactions)"
        " VALUES ($1, $2, $3, $4, $5::pg_catalog.pg_snapshot, $6)",
        {batch.numbers.first, batch.numbers.last, ByteView(batch.before), ByteView(batch.random),
         snapshot ? pg::Param(snapshot->text) : pg::Param::null(TEXTOID), encode_transactions(transactions)});
    position.last = batch.numbers.last;
    position.identity = identity_at(batch, position.last);
}

NumberingGuest* registered_guest = nullptr;
// What a guest says in `before` must come before the changes, so it may try again.
constexpr int tries_with_guest = 3;

/// A guest's work of one step, in which it is known whether an error is the guest's.
class Guest {
    template <class Work>
    auto at_work(Work&& work) {
        works_ = true;
        auto result = work();
        works_ = false;
        return result;
    }

  public:
    explicit Guest(NumberingGuest* guest) : guest_(guest) {}
    bool begin() {
        return guest_ && at_work([&] { return guest_->begin(); });
    }
    std::vector<NumberedTransaction> before(Number first, bool changes) {
        if (!guest_) return {};
        return at_work([&] { return guest_->before(first, changes); });
    }
    void committed() {
        if (guest_) guest_->committed();
    }
    std::vector<NumberedTransaction> behind(Number first) {
        return at_work([&] { return guest_->behind(first); });
    }
    bool works() const { return works_; }

  private:
    NumberingGuest* guest_;
    bool works_ = false;
};

/// `front` has the numbers that `chunk` began with.
void put_in_front(const std::vector<NumberedTransaction>& front, std::vector<NumberedTransaction>& chunk) {
    if (front.empty()) return;
    const Number count = front.back().last() + 1 - front.front().first;
    for (NumberedTransaction& transaction : chunk) transaction.first += count;
    chunk.insert(chunk.begin(), front.begin(), front.end());
}

/// True if something was written. Only the step's last batch holds its snapshot.
bool number_new(Position& position, const Snapshot& now, Guest& guest) {
    const bool more_behind = guest.begin();
    NewTransactions found(position.snapshot, now);
    std::vector<NumberedTransaction> chunk, following;
    found.next(position.last, chunk);
    put_in_front(guest.before(position.last + 1, !chunk.empty()), chunk);
    const bool any = more_behind || !chunk.empty();
    while (!chunk.empty()) {
        found.next(chunk.back().last(), following);
        write_batch(position, chunk, following.empty() && !more_behind ? &now : nullptr);
        chunk.swap(following);
    }
    found.close();
    if (more_behind) write_batch(position, guest.behind(position.last + 1), &now);
    return any;
}

/// False: somebody holds numbering (onerepl.hold_numbering). The lock is older than the step's snapshot, so
/// what he does is either seen by all of the step or not begun.
bool may_number() {
    return pg::call([] {
        const Oid table = get_relname_relid("database", get_namespace_oid("onerepl", false));
        return ConditionalLockRelationOid(table, RowShareLock);
    });
}

/// One step. `complete` as in number_changes.
Number number_with(Guest& guest, bool* complete) {
    bool held = false;
    Position position;
    Snapshot now;
    bool any = false;
    pg::in_transaction(
        [&] {
            // The tables have no statistics worth the name; the new end of the log is always found by index.
            set_local("enable_seqscan", "off");
            set_local("enable_bitmapscan", "off");
            set_local("jit", "off");  // what is switched off looks expensive, and chunks are read quickly
            // Durable whatever the database's setting; a setting that waits for more than our disk is left
            // alone.
            if (synchronous_commit == SYNCHRONOUS_COMMIT_OFF) set_local("synchronous_commit", "on");
            position = read_position();
            if (held) return;
            if (!quiet_step.snapshot.text.empty() && quiet_step.last == position.last)
                position.snapshot = quiet_step.snapshot;
            now = current_snapshot();
            any = number_new(position, now, guest);
        },
        true, [&] { held = !may_number(); });
    if (!held) {
        guest.committed();
        quiet_step = any ? QuietStep{} : QuietStep{position.last, std::move(now)};
    }
    if (complete != nullptr) *complete = !held;
    return position.last;
}

}  // namespace

void set_numbering_guest(NumberingGuest* guest) {
    registered_guest = guest;
}

Number number_changes(bool* complete) {
    for (int tries = 0; tries < tries_with_guest; tries++) {
        Guest guest(registered_guest);
        try {
            return number_with(guest, complete);
        } catch (const pg::Error& error) {
            if (!guest.works()) throw;
            registered_guest->failed(error.report());
        }
    }
    Guest nobody(nullptr);
    return number_with(nobody, complete);
}

Number last_number() {
    return static_cast<Number>(
        pg::query_int8("SELECT last FROM onerepl.batch ORDER BY first DESC LIMIT 1").value_or(0));
}

}  // namespace onerepl::log
