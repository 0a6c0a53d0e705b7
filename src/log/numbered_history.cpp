// What the batches say of the history: identities (P9), transactions, the log's ends; and the table
// descriptions.
#include "pg/pg.h"

extern "C" {
#include "access/transam.h"
#include "catalog/pg_type.h"
#include "utils/timestamp.h"
#include "utils/xid8.h"
}

#include "log/batch.h"
#include "log/batch_row.h"
#include "log/chunk_record.h"
#include "log/layout.h"
#include "log/link_filters.h"
#include "log/numbering.h"
#include "log/reader.h"
#include "log/recent_batches.h"
#include "pg/spi.h"

#include <algorithm>

namespace onerepl::log {

namespace {

Identity identity_from(const Bytes& bytes) {
    Identity identity{};
    if (bytes.size() != identity.size()) throw pg::Error("XX001", "identity of a batch has a wrong length");
    std::ranges::copy(bytes, identity.begin());
    return identity;
}

bool is_there(const NumberedTransaction& transaction) {
    if (transaction.table == chunk_table) return true;  // a chunk that is confirmed is read as a skip
    const std::string sql =
        "SELECT 1::int8 FROM onerepl.change_" + std::to_string(transaction.table) + " WHERE xid = $1 LIMIT 1";
    const pg::Param xid =
        pg::Param::datum(XID8OID, FullTransactionIdGetDatum(FullTransactionIdFromU64(transaction.xid)));
    return pg::query_int8(sql.c_str(), {xid}).has_value();
}

/// The number from which on all records of a batch can be read; the one after its last if none can.
Number first_readable(const std::vector<NumberedTransaction>& transactions) {
    std::uint32_t known = 0;  // bit masks of log tables
    std::uint32_t purged = 0;
    for (auto at = transactions.rbegin(); at != transactions.rend(); ++at) {
        const std::uint32_t table = 1u << at->table;
        if (!(known & table) && !is_there(*at)) purged |= table;
        known |= table;
        if (purged & table) return at->last() + 1;
    }
    return transactions.front().first;
}

}  // namespace

Batch batch_from(const pg::Row& row) {
    return {{row.number(0), row.number(1)}, identity_from(row.bytea(2)), identity_from(row.bytea(3))};
}

std::optional<TransactionAt> transaction_at(Number n) {
    std::optional<TransactionAt> result;
    pg::query(
        "SELECT first, transactions, (extract(epoch FROM made_at) * 1000000)::int8 FROM onerepl.batch"
        " WHERE first <= $1 ORDER BY first DESC LIMIT 1",
        {n}, [&](const pg::Row& row) {
            const auto transactions = decode_transactions(row.bytea(1), row.number(0));
            if (!transactions)
                throw pg::Error("XX001", "onerepl.batch of number " + std::to_string(n) + " is damaged");
            const std::size_t index = find_transaction(*transactions, n);
            if (index == transactions->size()) return;
            const NumberedTransaction& found = (*transactions)[index];
            result = TransactionAt{{found.first, found.last()}, found.xid, row.int8(2)};
        });
    return result;
}

std::vector<Batch> batches(Range numbers) {
    std::vector<Batch> result;
    if (numbers.empty()) return result;
    const RecentBatches& recent = recent_batches();
    for (const auto* entry = recent.find(numbers.first); entry; entry = recent.next(entry)) {
        if (entry->batch.numbers.first > numbers.last) break;
        result.push_back(entry->batch);
    }
    if (!result.empty()) return result;
    pg::query(
        "SELECT first, last, identity_before, random FROM onerepl.batch WHERE first <= $2"
        " AND first >= COALESCE((SELECT first FROM onerepl.batch WHERE first <= $1 ORDER BY first DESC LIMIT "
        "1), 0)"
        " AND last >= $1 ORDER BY first",
        {numbers.first, numbers.last}, [&](const pg::Row& row) { result.push_back(batch_from(row)); });
    return result;
}

std::optional<Time> age_of(Number n) {
    std::optional<TimestampTz> made_at;
    if (const auto* entry = recent_batches().find(n))
        made_at = entry->made_at;
    else
        pg::query("SELECT last, made_at FROM onerepl.batch WHERE first <= $1 ORDER BY first DESC LIMIT 1",
                  {n}, [&](const pg::Row& row) {
                      if (row.number(0) >= n) made_at = row.int8(1);
                  });
    if (!made_at) return std::nullopt;
    return std::max<Time>(GetCurrentTimestamp() - *made_at, 0);
}

std::optional<Identity> identity_at(Number n) {
    std::optional<Identity> result;
    if (const auto* entry = recent_batches().find(n)) return onerepl::identity_at(entry->batch, n);
    if (n == 0) {
        pg::query("SELECT id FROM onerepl.database", {},
                  [&](const pg::Row& row) { result = identity_at_zero(row.uuid(0)); });
        return result;
    }
    // The batch that holds n, or, when that is purged, the one that begins after it.
    pg::query(
        "(SELECT first, last, identity_before, random FROM onerepl.batch WHERE first <= $1 ORDER BY first "
        "DESC LIMIT 1)"
        " UNION ALL"
        " (SELECT first, last, identity_before, random FROM onerepl.batch WHERE first = $1 + 1)",
        {n}, [&](const pg::Row& row) {
            const Batch batch = batch_from(row);
            if (batch.numbers.contains(n) || batch.numbers.first == n + 1)
                result = onerepl::identity_at(batch, n);
        });
    return result;
}

Number first_number() {
    // Few batches outlive their records, and one table of them is there as a whole or not at all.
    Number candidate = 1;
    for (;;) {
        std::optional<Number> first, last;
        std::optional<std::vector<NumberedTransaction>> transactions;
        pg::query(
            "SELECT first, last, transactions FROM onerepl.batch WHERE first >= $1 ORDER BY first LIMIT 1",
            {candidate}, [&](const pg::Row& row) {
                first = row.number(0);
                last = row.number(1);
                transactions = decode_transactions(row.bytea(2), *first);
            });
        if (!first) return last_number() + 1;
        if (!transactions)
            throw pg::Error("XX001", "onerepl.batch of number " + std::to_string(*first) + " is damaged");
        const Number readable = first_readable(*transactions);
        if (readable <= *last) return readable;
        candidate = *last + 1;
    }
}

std::optional<Bytes> description(std::uint64_t id) {
    const std::optional<Layout> layout = load_layout(id);
    std::optional<Bytes> result;
    if (layout) encode_description(layout->describe(), result.emplace());
    return result;
}

}  // namespace onerepl::log
