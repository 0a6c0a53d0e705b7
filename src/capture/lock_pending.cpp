// The lock rule (P6): who may change a row that has a change under way.
#include "capture/lock_pending.h"

#include "capture/confirmed.h"
#include "store/log_tables.h"
#include "store/own_table.h"

extern "C" {
#include "commands/sequence.h"
#include "common/hashfn.h"
#include "storage/lock.h"
#include "utils/fmgroids.h"
}

namespace onerepl::capture {

namespace {

/// An object, by a hash of its key. Two rows that share a hash would lock each other at worst.
struct Object {
    Oid relation;
    std::int64_t hash;
};

/// TRUNCATE's object is the table.
constexpr std::int64_t whole_table = 0;

bool same(Object one, Object other) {
    return one.relation == other.relation && one.hash == other.hash;
}

std::uint64_t hash_of(const char* bytes, std::size_t size, std::uint64_t seed) {
    return hash_bytes_extended(reinterpret_cast<const unsigned char*>(bytes), static_cast<int>(size), seed);
}

Object object_of(const CapturedTable& table, Relation relation, HeapTuple tuple) {
    const log::StoredRow image = identity_image(table, relation, tuple);
    const std::uint64_t seed = hash_of(image.bitmap, image.bitmap_size, 0);
    return {table.relation, static_cast<std::int64_t>(hash_of(image.data, image.data_size, seed))};
}

/// The objects of one record: two when a row's key changes.
struct Objects {
    Object object[2];
    int count;
    bool contains(Object other) const {
        for (int i = 0; i < count; i++)
            if (same(object[i], other)) return true;
        return false;
    }
};

Objects objects_of(const CapturedTable& table, const RowVersions& row) {
    Objects objects{};
    if (row.old_row) objects.object[objects.count++] = object_of(table, row.relation, row.old_row);
    if (row.new_row) {
        const Object object = object_of(table, row.relation, row.new_row);
        if (!objects.contains(object)) objects.object[objects.count++] = object;
    }
    return objects;
}

// ------------------------------------------------------------------------------------------- onerepl.pending

enum PendingColumn { pending_relation = 2, pending_object = 3 };

Object object_in(const store::OwnScan& scan, HeapTuple row) {
    return {DatumGetObjectId(scan.get(row, "relation")), DatumGetInt64(scan.get(row, "object"))};
}

FullTransactionId xid_in(const store::OwnScan& scan, HeapTuple row) {
    return FullTransactionIdFromU64(static_cast<std::uint64_t>(DatumGetInt64(scan.get(row, "xid"))));
}

/// The newest record of all: its objects, and whether this transaction made it.
struct Newest {
    Objects objects;
    bool own;
};

Newest newest_record() {
    Newest newest{};
    store::OwnScan scan("pending", "pending_pkey", nullptr, 0);
    std::int64_t number = 0;
    while (HeapTuple row = scan.previous()) {
        const std::int64_t at = DatumGetInt64(scan.get(row, "number"));
        if (newest.objects.count == 2 || (newest.objects.count > 0 && at != number)) break;
        number = at;
        newest.objects.object[newest.objects.count++] = object_in(scan, row);
        newest.own = FullTransactionIdEquals(xid_in(scan, row), GetTopFullTransactionId());
    }
    scan.close();
    return newest;
}

bool is_confirmed(FullTransactionId xid) {
    return !FullTransactionIdEquals(xid, GetTopFullTransactionId()) && is_confirmed_by_all(xid);
}

/// The object's newest record is not confirmed by all links. Older ones of the same object do not matter.
bool is_pending(Object object) {
    ScanKeyData keys[] = {
        store::scan_key(pending_relation, BTEqualStrategyNumber, F_OIDEQ, ObjectIdGetDatum(object.relation)),
        store::scan_key(pending_object, BTEqualStrategyNumber, F_INT8EQ, Int64GetDatum(object.hash)),
    };
    store::OwnScan scan("pending", "pending_object", keys, 2);
    HeapTuple row = scan.previous();
    const bool pending = row && !is_confirmed(xid_in(scan, row));
    scan.close();
    return pending;
}

/// Any object of the table but those of the newest record has an unconfirmed record.
bool any_is_pending(Oid relation, const Objects& but) {
    ScanKeyData key =
        store::scan_key(pending_relation, BTEqualStrategyNumber, F_OIDEQ, ObjectIdGetDatum(relation));
    store::OwnScan scan("pending", "pending_object", &key, 1);
    bool pending = false;
    while (HeapTuple row = scan.previous()) {
        pending = !but.contains(object_in(scan, row)) && !is_confirmed(xid_in(scan, row));
        if (pending) break;
    }
    scan.close();
    return pending;
}

void note(const Objects& objects) {
    const std::int64_t number = nextval_internal(store::own_relation("pending_number_seq"), false);
    const Oid table = store::own_relation("pending");
    for (int i = 0; i < objects.count; i++) {
        const Datum values[] = {Int64GetDatum(number), ObjectIdGetDatum(objects.object[i].relation),
                                Int64GetDatum(objects.object[i].hash),
                                UInt64GetDatum(U64FromFullTransactionId(GetTopFullTransactionId()))};
        store::insert_row(table, values);
    }
}

void refuse(Relation relation) {
    ereport(ERROR, (errcode(ERRCODE_OBJECT_IN_USE),
                    errmsg("row of table \"%s\" has a change that is not confirmed yet",
                           RelationGetRelationName(relation)),
                    errdetail("A change of another row was recorded after it (lock_pending)."),
                    errhint("Try again when onerepl has passed it on; onerepl_wait() waits for that."),
                    err_generic_string(PG_DIAG_TABLE_NAME, RelationGetRelationName(relation))));
}

}  // namespace

void take_turn() {
    // A key of our own in the space of advisory locks: applications use the two forms with a last field of 1
    // and 2.
    LOCKTAG tag;
    SET_LOCKTAG_ADVISORY(tag, MyDatabaseId, 0, 0, 0x6f72);
    (void)LockAcquire(&tag, ExclusiveLock, false, false);
}

void check_lock_rule(const CapturedTable& table, const RowVersions& row) {
    take_turn();
    const Objects objects = objects_of(table, row);
    const Newest newest = newest_record();
    bool all_newest = newest.own;
    for (int i = 0; i < objects.count; i++) {
        if (newest.objects.contains(objects.object[i])) continue;
        if (is_pending(objects.object[i])) refuse(row.relation);
        all_newest = false;
    }
    if (!all_newest) note(objects);
}

void check_lock_rule_for_truncate(const CapturedTable& table, Relation relation) {
    take_turn();
    if (any_is_pending(table.relation, newest_record().objects)) refuse(relation);
    Objects objects{};
    objects.object[objects.count++] = {table.relation, whole_table};
    note(objects);
}

}  // namespace onerepl::capture
