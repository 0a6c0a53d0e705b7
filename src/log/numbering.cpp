// Numbering (P4): which transactions are new is decided by two snapshots, never by time or by the order of
// xids.
#include "pg/pg.h"

extern "C" {
#include "catalog/namespace.h"
#include "storage/lmgr.h"
#include "utils/fmgrprotos.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"
#include "utils/timestamp.h"
}

#include "core/crypto.h"
#include "core/history.h"
#include "log/batch.h"
#include "log/batch_row.h"
#include "log/new_transactions.h"
#include "log/numbering.h"
#include "log/recent_batches.h"
#include "pg/spi.h"
#include "pg/transaction.h"
#include "store/log_tables.h"

#include <algorithm>
#include <charconv>

namespace onerepl::log {

namespace {

/// A pg_snapshot taken apart. Its xids are full ones.
struct XidSnapshot {
    std::string text;
    std::uint64_t xmax = 0;  // xids from here on had not begun
    std::vector<std::uint64_t> running;
};

/// "xmin:xmax:xid,xid,..."
XidSnapshot parse_snapshot(std::string text) {
    XidSnapshot snapshot;
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
std::vector<std::uint64_t> ended(const XidSnapshot& before, const XidSnapshot& now) {
    std::vector<std::uint64_t> result;
    std::ranges::set_difference(before.running, now.running, std::back_inserter(result));
    return result;
}

/// Where the numbers stand, and the snapshot of the last step: after a start what the newest batch says.
struct Position {
    Number last = 0;
    Identity identity{};
    XidSnapshot snapshot;  // empty text: there is no batch yet
};

/// As the last step of this process left it; only the sender numbers. `table`: onerepl.batch then, which is
/// another one after the extension was created anew. Its snapshot is newer than the newest batch's if the
/// last step found nothing, so that an idle log does not look at the same open transaction over and over.
struct Known {
    Oid table = InvalidOid;
    Position position;
};
Known known;
/// Where the newest batch's commit ends in the WAL; 0: it is on disk.
std::uint64_t last_commit = 0;

void forget_known() {
    known = Known{};
    recent_batches().clear();
}

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

Oid batch_table() {
    return pg::call([] { return store::own_relation("batch"); });
}

Position position_at_begin(Oid table) {
    if (known.table == table) return known.position;
    forget_known();
    return read_position();
}

XidSnapshot current_snapshot() {
    const char* const output = pg::call([] {
        const Datum snapshot = DirectFunctionCall1(pg_current_snapshot, 0);  // takes no argument
        return DatumGetCString(DirectFunctionCall1(pg_snapshot_out, snapshot));
    });
    return parse_snapshot(output);
}

/// A setting for the rest of this transaction.
void set_local(const char* name, const char* value) {
    pg::call(
        [&] { set_config_option(name, value, PGC_SUSET, PGC_S_SESSION, GUC_ACTION_LOCAL, true, 0, false); });
}

/// The tables have no statistics worth the name; the new end of the log, and chunks, are found by index. JIT:
/// what is switched off looks expensive.
void use_indexes() {
    set_local("enable_seqscan", "off");
    set_local("enable_bitmapscan", "off");
    set_local("jit", "off");
}

Datum bytea(ByteView bytes) {
    return pg::Param(bytes).value;
}

Datum snapshot_datum(const XidSnapshot& snapshot) {
    return pg::call(
        [&] { return DirectFunctionCall1(pg_snapshot_in, CStringGetDatum(snapshot.text.c_str())); });
}

/// One step's way from the position at its begin.
struct Step {
    Oid table = InvalidOid;  // onerepl.batch
    Position position;
    XidSnapshot now;
    bool held = false;
    std::vector<RecentBatches::Entry> written;
    std::size_t transactions = 0;
};

/// Writes one batch row and moves the position after it. The snapshot only comes with the last of a step.
void write_batch(Step& step, const std::vector<NumberedTransaction>& transactions, bool last) {
    Batch batch;
    batch.numbers = {transactions.front().first, transactions.back().last()};
    batch.before = step.position.identity;
    batch.random = random_array<Identity>();
    Bytes encoded = encode_transactions(transactions);
    const TimestampTz made_at = GetCurrentTimestamp();
    const Datum values[] = {
        Int64GetDatum(static_cast<std::int64_t>(batch.numbers.first)),
        Int64GetDatum(static_cast<std::int64_t>(batch.numbers.last)),
        bytea(batch.before),
        bytea(batch.random),
        last ? snapshot_datum(step.now) : Datum{0},
        bytea(encoded),
        TimestampTzGetDatum(made_at),
    };
    const bool nulls[] = {false, false, false, false, !last, false, false};
    pg::call([&] { store::insert_row(step.table, values, nulls); });
    step.position.last = batch.numbers.last;
    step.position.identity = identity_at(batch, step.position.last);
    step.written.push_back({batch, std::move(encoded), made_at});
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
        if (!guest_ || !guest_->is_expected()) return false;
        use_indexes();
        return at_work([&] { return guest_->begin(); });
    }
    std::vector<NumberedTransaction> before(Number first, bool changes) {
        if (!guest_) return {};
        return at_work([&] { return guest_->before(first, changes); });
    }
    void committed() {
        if (guest_) guest_->committed();
    }
    void rolled_back() {
        if (guest_) guest_->rolled_back();
    }
    std::vector<NumberedTransaction> after(Number first) {
        return at_work([&] { return guest_->after(first); });
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

/// What was running at the last step and is so no more, and what has begun since.
NewXids new_xids(const XidSnapshot& before, const XidSnapshot& now) {
    return {before.xmax, now.xmax, ended(before, now)};
}

/// False: somebody holds numbering (onerepl.hold_numbering). The lock is older than the step's snapshot, so
/// what he does is either seen by all of the step or not begun.
bool may_number() {
    return pg::call([] {
        const Oid table = get_relname_relid("database", get_namespace_oid("onerepl", false));
        return ConditionalLockRelationOid(table, RowShareLock);
    });
}

void number_new(Step& step, Guest& guest) {
    const bool more_after = guest.begin();
    const NewXids xids = new_xids(step.position.snapshot, step.now);
    NewTransactions found(xids);
    std::vector<NumberedTransaction> batch, following;
    found.next(step.position.last, batch);
    step.transactions = batch.size();
    put_in_front(guest.before(step.position.last + 1, !batch.empty()), batch);
    while (!batch.empty()) {
        found.next(batch.back().last(), following);
        write_batch(step, batch, following.empty() && !more_after);
        batch.swap(following);
    }
    found.close();
    if (more_after) write_batch(step, guest.after(step.position.last + 1), true);
}

Numbered number_with(Guest& guest) {
    Step step;
    try {
        pg::in_transaction(
            [&] {
                pg::commit_without_wait();
                step.table = batch_table();
                step.position = position_at_begin(step.table);
                step.now = current_snapshot();
                if (!step.held) number_new(step, guest);
            },
            true, [&] { step.held = !may_number(); });
    } catch (...) {
        forget_known();
        guest.rolled_back();
        throw;
    }
    if (step.held) return {step.position.last, 0, false};
    guest.committed();
    if (!step.written.empty()) last_commit = pg::last_commit();
    for (RecentBatches::Entry& entry : step.written) recent_batches().add(std::move(entry));
    step.position.snapshot = std::move(step.now);
    known = {step.table, std::move(step.position)};
    return {known.position.last, step.transactions, true};
}

}  // namespace

void set_numbering_guest(NumberingGuest* guest) {
    registered_guest = guest;
}

Numbered number_changes() {
    for (int tries = 0; tries < tries_with_guest; tries++) {
        Guest guest(registered_guest);
        try {
            return number_with(guest);
        } catch (const pg::Error& error) {
            if (!guest.works()) throw;
            registered_guest->failed(error.report());
        }
    }
    Guest nobody(nullptr);
    return number_with(nobody);
}

void wait_for_numbers() noexcept {
    if (last_commit != 0) pg::wait_for_commit(last_commit);
    last_commit = 0;
}

Number last_number() {
    return static_cast<Number>(
        pg::query_int8("SELECT last FROM onerepl.batch ORDER BY first DESC LIMIT 1").value_or(0));
}

}  // namespace onerepl::log
