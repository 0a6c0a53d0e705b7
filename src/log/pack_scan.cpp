// Index scans over the log tables, without the planner: there may be one for each small transaction.
#include "log/pack_scan.h"

extern "C" {
#include "access/htup_details.h"
#include "access/stratnum.h"
#include "access/table.h"
#include "access/transam.h"
#include "catalog/namespace.h"
#include "storage/bufmgr.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/snapmgr.h"
#include "utils/xid8.h"
}

#include "pg/error_boundary.h"

namespace onerepl::log {

namespace {

// Columns of onerepl.change_N.
enum Attribute : AttrNumber {
    att_xid = 1,
    att_seq,
    att_last,
    att_flags,
    att_commit_lsn,
    att_count,
    att_data
};

Oid relation_called(const char* pattern, std::uint32_t table) {
    return pg::call([&] {
        char name[NAMEDATALEN];
        snprintf(name, sizeof name, pattern, table);
        const Oid relation = get_relname_relid(name, get_namespace_oid("onerepl", false));
        if (!OidIsValid(relation))
            ereport(ERROR, (errcode(ERRCODE_UNDEFINED_TABLE),
                            errmsg("relation \"onerepl.%s\" does not exist", name)));
        return relation;
    });
}

}  // namespace

LogTables::Opened& LogTables::open_table(std::uint32_t table) {
    Opened& opened = opened_.at(table);
    if (opened.table != nullptr) return opened;
    const Oid id = relation_called("change_%u", table);
    opened.table = pg::call([&] { return table_open(id, AccessShareLock); });
    return opened;
}

const LogTables::Opened& LogTables::open(std::uint32_t table) {
    Opened& opened = open_table(table);
    if (opened.index != nullptr) return opened;
    const Oid id = relation_called("change_%u_pkey", table);
    opened.index = pg::call([&] { return index_open(id, AccessShareLock); });
    return opened;
}

bool LogTables::is_empty(std::uint32_t table) {
    const Opened& opened = open_table(table);
    return pg::call([&] { return RelationGetNumberOfBlocks(opened.table) == 0; });
}

void LogTables::close() {
    for (Opened& opened : opened_) {
        if (opened.table == nullptr) continue;
        pg::call([&] {
            if (opened.index != nullptr) index_close(opened.index, AccessShareLock);
            table_close(opened.table, AccessShareLock);
        });
        opened = {};
    }
}

PackScan::PackScan(LogTables& tables, std::uint32_t table, std::uint64_t xid, std::int32_t from_seq) {
    const LogTables::Opened& opened = tables.open(table);
    table_ = opened.table;
    scan_ = pg::call([&] {
        ScanKeyData keys[2];
        ScanKeyInit(&keys[0], att_xid, BTEqualStrategyNumber, F_XID8EQ,
                    FullTransactionIdGetDatum(FullTransactionIdFromU64(xid)));
        ScanKeyInit(&keys[1], att_seq, BTGreaterEqualStrategyNumber, F_INT4GE, Int32GetDatum(from_seq));
        return systable_beginscan_ordered(opened.table, opened.index, GetActiveSnapshot(), 2, keys);
    });
}

bool PackScan::next() {
    return pg::call([&] {
        CHECK_FOR_INTERRUPTS();
        HeapTuple tuple = systable_getnext_ordered(scan_, ForwardScanDirection);
        if (!HeapTupleIsValid(tuple)) return false;
        const TupleDesc description = RelationGetDescr(table_);
        bool null;
        seq_ = DatumGetInt32(heap_getattr(tuple, att_seq, description, &null));
        last_ = DatumGetBool(heap_getattr(tuple, att_last, description, &null));
        count_ = DatumGetUInt64(heap_getattr(tuple, att_count, description, &null));
        data_ = heap_getattr(tuple, att_data, description, &null);
        return true;
    });
}

ByteView PackScan::data() const {
    auto* stored = reinterpret_cast<varlena*>(DatumGetPointer(data_));
    if (VARATT_IS_EXTENDED(stored)) stored = pg::call([&] { return pg_detoast_datum_packed(stored); });
    return {reinterpret_cast<const std::uint8_t*>(VARDATA_ANY(stored)), VARSIZE_ANY_EXHDR(stored)};
}

void PackScan::close() {
    pg::call([&] { systable_endscan_ordered(scan_); });
}

LastPackScan::LastPackScan(LogTables& tables, std::uint32_t table, std::uint64_t first, std::uint64_t end) {
    const LogTables::Opened& opened = tables.open(table);
    table_ = opened.table;
    transaction_.table = table;
    scan_ = pg::call([&] {
        ScanKeyData keys[2];
        ScanKeyInit(&keys[0], att_xid, BTGreaterEqualStrategyNumber, F_XID8GE,
                    FullTransactionIdGetDatum(FullTransactionIdFromU64(first)));
        ScanKeyInit(&keys[1], att_xid, BTLessStrategyNumber, F_XID8LT,
                    FullTransactionIdGetDatum(FullTransactionIdFromU64(end)));
        return systable_beginscan_ordered(opened.table, opened.index, GetActiveSnapshot(), 2, keys);
    });
}

bool LastPackScan::next() {
    return pg::call([&] {
        const TupleDesc description = RelationGetDescr(table_);
        for (;;) {
            CHECK_FOR_INTERRUPTS();
            HeapTuple tuple = systable_getnext_ordered(scan_, ForwardScanDirection);
            if (!HeapTupleIsValid(tuple)) return false;
            bool null;
            if (!DatumGetBool(heap_getattr(tuple, att_last, description, &null))) continue;
            transaction_.xid = U64FromFullTransactionId(
                DatumGetFullTransactionId(heap_getattr(tuple, att_xid, description, &null)));
            transaction_.count = DatumGetUInt64(heap_getattr(tuple, att_count, description, &null));
            transaction_.flags =
                static_cast<std::uint32_t>(DatumGetInt32(heap_getattr(tuple, att_flags, description, &null)));
            commit_lsn_ = DatumGetUInt64(heap_getattr(tuple, att_commit_lsn, description, &null));
            return true;
        }
    });
}

void LastPackScan::close() {
    pg::call([&] { systable_endscan_ordered(scan_); });
}

}  // namespace onerepl::log
