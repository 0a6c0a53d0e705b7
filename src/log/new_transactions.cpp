// Finding new transactions by the last packs in the log tables.
#include "log/new_transactions.h"

extern "C" {
#include "access/transam.h"
#include "catalog/pg_type.h"
#include "utils/array.h"
#include "utils/guc.h"
#include "utils/xid8.h"
}

#include "log/pack_scan.h"
#include "pg/spi.h"
#include "store/log_tables.h"

#include <algorithm>
#include <tuple>

namespace onerepl::log {

namespace {

/// The last packs of new transactions in a fixed order. $1, $2: xids from .. below; $3: others that ended.
const char* const many_transactions =
    "SELECT xid, count, flags, log_table FROM ("
    " SELECT xid, commit_lsn, count, flags, 0 AS log_table FROM onerepl.change_0 WHERE last AND xid >= $1 "
    "AND xid "
    "< $2"
    " UNION ALL"
    " SELECT xid, commit_lsn, count, flags, 1 FROM onerepl.change_1 WHERE last AND xid >= $1 AND xid < $2"
    " UNION ALL"
    " SELECT xid, commit_lsn, count, flags, 2 FROM onerepl.change_2 WHERE last AND xid >= $1 AND xid < $2"
    " UNION ALL"
    " SELECT xid, commit_lsn, count, flags, 3 FROM onerepl.change_3 WHERE last AND xid >= $1 AND xid < $2"
    " UNION ALL"
    " SELECT xid, commit_lsn, count, flags, 0 FROM onerepl.change_0 WHERE last AND xid = ANY ($3)"
    " UNION ALL"
    " SELECT xid, commit_lsn, count, flags, 1 FROM onerepl.change_1 WHERE last AND xid = ANY ($3)"
    " UNION ALL"
    " SELECT xid, commit_lsn, count, flags, 2 FROM onerepl.change_2 WHERE last AND xid = ANY ($3)"
    " UNION ALL"
    " SELECT xid, commit_lsn, count, flags, 3 FROM onerepl.change_3 WHERE last AND xid = ANY ($3)"
    ") AS found ORDER BY commit_lsn, xid";

SPIPlanPtr many_transactions_plan() {
    static SPIPlanPtr plan = nullptr;
    if (plan != nullptr) return plan;
    SPIPlanPtr made = pg::call([] {
        Oid types[] = {XID8OID, XID8OID, XID8ARRAYOID};
        SPIPlanPtr prepared = SPI_prepare_cursor(many_transactions, 3, types, CURSOR_OPT_GENERIC_PLAN);
        if (prepared == nullptr) elog(ERROR, "could not prepare the numbering query");
        SPI_keepplan(prepared);
        return prepared;
    });
    return plan = made;
}

Datum xid8(std::uint64_t xid) {
    return FullTransactionIdGetDatum(FullTransactionIdFromU64(xid));
}

Portal open_portal(const NewXids& xids) {
    std::vector<Datum> others;
    for (std::uint64_t xid : xids.others) others.push_back(xid8(xid));
    SPIPlanPtr plan = many_transactions_plan();
    return pg::call([&] {
        ArrayType* array = construct_array(others.data(), static_cast<int>(others.size()), XID8OID, 8,
                                           FLOAT8PASSBYVAL, TYPALIGN_DOUBLE);
        Datum values[] = {xid8(xids.first), xid8(xids.end), PointerGetDatum(array)};
        return SPI_cursor_open(nullptr, plan, values, nullptr, true);
    });
}

}  // namespace

NewTransactions::NewTransactions(const NewXids& xids) {
    find(xids);
    if (found_.size() > batch_transaction_limit) {
        found_.clear();
        portal_ = open_portal(xids);
        return;
    }
    std::ranges::sort(found_, {},
                      [](const Found& each) { return std::tuple(each.commit_lsn, each.transaction.xid); });
}

/// Stops when there are more than a batch holds.
void NewTransactions::find(const NewXids& xids) {
    LogTables tables;
    for (std::uint32_t table = 0; table < store::log_tables; table++) {
        if (tables.is_empty(table)) continue;
        LastPackScan range(tables, table, xids.first, xids.end);
        auto take = [&](LastPackScan& scan) {
            while (found_.size() <= batch_transaction_limit && scan.next())
                found_.push_back({scan.commit_lsn(), scan.transaction()});
            scan.close();
        };
        take(range);
        for (std::uint64_t xid : xids.others) {
            LastPackScan other(tables, table, xid, xid + 1);
            take(other);
        }
    }
    tables.close();
}

void NewTransactions::next(Number last, std::vector<NumberedTransaction>& batch) {
    batch.clear();
    auto number = [&](NumberedTransaction transaction) {
        transaction.first = last + 1;
        last = transaction.last();
        batch.push_back(transaction);
    };
    if (portal_ == nullptr) {
        for (const Found& each : found_) number(each.transaction);
        found_.clear();
        return;
    }
    pg::call([&] { SPI_cursor_fetch(portal_, true, batch_transaction_limit); });
    SPITupleTable* const table = SPI_tuptable;
    for (std::uint64_t i = 0; i < table->numvals; i++) {
        const pg::Row row(table->vals[i], table->tupdesc);
        NumberedTransaction transaction;
        transaction.xid = row.number(0);  // xid8 is an unsigned int8 inside
        transaction.count = row.number(1);
        transaction.flags = static_cast<std::uint32_t>(row.int4(2));
        transaction.table = static_cast<std::uint32_t>(row.int4(3));
        number(transaction);
    }
    pg::call([&] { SPI_freetuptable(table); });
}

void NewTransactions::close() {
    if (portal_ != nullptr) pg::call([&] { SPI_cursor_close(portal_); });
    portal_ = nullptr;
}

}  // namespace onerepl::log
