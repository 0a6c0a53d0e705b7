// Confirmed or not: from the links' positions and the batches' transactions.
#include "capture/confirmed.h"

#include "log/batch.h"
#include "pg/error_boundary.h"
#include "store/own_table.h"

#include <optional>

extern "C" {
#include "utils/fmgroids.h"
#include "utils/fmgrprotos.h"
}

namespace onerepl::capture {

namespace {

/// The link's S_a; a link that has no position yet begins at its start.
std::int64_t confirmed_of(int link, std::int64_t start) {
    enum { column_link = 1 };
    ScanKeyData key = store::scan_key(column_link, BTEqualStrategyNumber, F_INT4EQ, Int32GetDatum(link));
    store::OwnScan scan("sent_progress", "sent_progress_pkey", &key, 1);
    HeapTuple row = scan.previous();
    const std::int64_t confirmed = row ? DatumGetInt64(scan.get(row, "confirmed")) : start;
    scan.close();
    return confirmed;
}

/// The least S_a of all links to a central; -1: there is no link.
std::int64_t least_confirmed() {
    std::int64_t least = -1;
    store::OwnScan links("link", "link_pkey", nullptr, 0);
    while (HeapTuple row = links.previous()) {
        const char* role = TextDatumGetCString(links.get(row, "role"));
        if (strcmp(role, "remote") != 0) continue;
        bool is_null;
        const std::int64_t start = DatumGetInt64(links.get(row, "start", &is_null));
        const std::int64_t confirmed = confirmed_of(DatumGetInt32(links.get(row, "id")), is_null ? 0 : start);
        if (least < 0 || confirmed < least) least = confirmed;
    }
    links.close();
    return least;
}

enum class Answer { no, yes, check_further };

/// What one batch with numbers up to `confirmed` tells. `transactions` is its encoded list.
Answer ask_list(ByteView transactions, Number first, std::uint64_t xid, Number confirmed) {
    const auto decoded = log::decode_transactions(transactions, first);
    if (!decoded) throw pg::Error("XX001", "a batch of the onerepl log is damaged");
    for (const log::NumberedTransaction& transaction : *decoded)
        if (transaction.xid == xid) return transaction.last() <= confirmed ? Answer::yes : Answer::no;
    return Answer::check_further;
}

/// One row of onerepl.batch, in plain memory.
struct BatchRow {
    bool found;
    Number first;
    Number last;
    const bytea* transactions;
    bool has_snapshot;
    bool snapshot_shows_it;
};

BatchRow read_batch(store::OwnScan& scan, std::uint64_t xid) {
    BatchRow batch{};
    HeapTuple row = scan.previous();
    if (!row) return batch;
    batch.found = true;
    batch.first = static_cast<Number>(DatumGetInt64(scan.get(row, "first")));
    batch.last = static_cast<Number>(DatumGetInt64(scan.get(row, "last")));
    batch.transactions = DatumGetByteaPCopy(scan.get(row, "transactions"));
    bool is_null;
    const Datum snapshot = scan.get(row, "snapshot", &is_null);
    batch.has_snapshot = !is_null;
    if (!is_null)
        batch.snapshot_shows_it =
            DatumGetBool(DirectFunctionCall2(pg_visible_in_snapshot, UInt64GetDatum(xid), snapshot));
    return batch;
}

Answer ask_batch(const BatchRow& batch, std::uint64_t xid, Number confirmed) {
    const ByteView list{reinterpret_cast<const std::uint8_t*>(VARDATA_ANY(batch.transactions)),
                        VARSIZE_ANY_EXHDR(batch.transactions)};
    const Answer answer = ask_list(list, batch.first, xid, confirmed);
    // A snapshot shows exactly the transactions of its batch and of those before.
    if (answer == Answer::check_further && batch.has_snapshot && batch.last <= confirmed)
        return batch.snapshot_shows_it ? Answer::yes : Answer::no;
    return answer;
}

/// Looks through the batches from `confirmed` backwards: a few, since the first one with a snapshot decides.
bool is_numbered_up_to(Number confirmed, std::uint64_t xid) {
    enum { column_first = 1 };
    ScanKeyData key = store::scan_key(column_first, BTLessEqualStrategyNumber, F_INT8LE,
                                      Int64GetDatum(static_cast<std::int64_t>(confirmed)));
    std::optional<store::OwnScan> scan;
    pg::call([&] { scan.emplace("batch", "batch_pkey", &key, 1); });
    Answer answer = Answer::check_further;
    while (answer == Answer::check_further) {
        const BatchRow batch = pg::call([&] { return read_batch(*scan, xid); });
        answer = batch.found ? ask_batch(batch, xid, confirmed) : Answer::no;
    }
    pg::call([&] { scan->close(); });
    return answer == Answer::yes;
}

}  // namespace

bool is_confirmed_by_all(FullTransactionId xid) {
    const std::int64_t confirmed = least_confirmed();
    if (confirmed < 0) return true;
    if (confirmed == 0) return false;
    return pg::entry(
        [&] { return is_numbered_up_to(static_cast<Number>(confirmed), U64FromFullTransactionId(xid)); });
}

}  // namespace onerepl::capture
