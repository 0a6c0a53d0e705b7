// Reading sequences without nextval's locks, and telling what has moved.
#include "sender/sequence_taker.h"

#include "log/chunk_record.h"
#include "pg/clock.h"
#include "pg/journal_buffer.h"
#include "pg/spi.h"
#include "pg/transaction.h"

extern "C" {
#include "access/htup_details.h"
#include "access/relation.h"
#include "catalog/pg_class.h"
#include "commands/sequence.h"
#include "mb/pg_wchar.h"
#include "storage/bufmgr.h"
#include "storage/lmgr.h"
#include "utils/inval.h"
#include "utils/rel.h"
#include "utils/syscache.h"
}

namespace onerepl::sender {

namespace {

constexpr Time quiet_interval = 1 * second;
constexpr Time purge_interval = 10 * second;
constexpr Time rest_of_sequences = 60 * second;

/// How often the list is to be loaded again: the snapshot of the step that hears of a change in the catalogue
/// may be older than the change, that of the next one is not.
int loads_due = 2;

void relation_changed(Datum, Oid) {
    loads_due = 2;
}

void schema_or_sequence_changed(Datum, int, uint32) {
    loads_due = 2;
}

struct Tuple {
    std::int64_t last_value;
    std::int64_t left;  // values that may still be given before WAL is written again
    bool is_called;
};

/// Plain. False: it is gone, or locked by somebody who drops or resets it.
bool read_tuple(Oid sequence, Tuple* read) {
    if (!ConditionalLockRelationOid(sequence, AccessShareLock)) return false;
    Relation relation = try_relation_open(sequence, NoLock);
    if (relation == nullptr) return false;
    const bool good = relation->rd_rel->relkind == RELKIND_SEQUENCE;
    if (good) {
        Buffer buffer = ReadBuffer(relation, 0);
        LockBuffer(buffer, BUFFER_LOCK_SHARE);
        Page page = BufferGetPage(buffer);
        auto* tuple =
            reinterpret_cast<HeapTupleHeader>(PageGetItem(page, PageGetItemId(page, FirstOffsetNumber)));
        const auto* data =
            reinterpret_cast<Form_pg_sequence_data>(reinterpret_cast<char*>(tuple) + tuple->t_hoff);
        *read = {data->last_value, data->log_cnt, data->is_called};
        UnlockReleaseBuffer(buffer);
    }
    relation_close(relation, AccessShareLock);
    return good;
}

/// Where a crash would leave it: as many values further as WAL has them already. So a record tells of some 30
/// values at once, as nextval() itself writes WAL.
std::int64_t value_after_crash(const Tuple& tuple, std::int64_t increment) {
    std::int64_t distance = 0;
    std::int64_t value = 0;
    const bool overflow = __builtin_mul_overflow(tuple.left, increment, &distance) ||
                          __builtin_add_overflow(tuple.last_value, distance, &value);
    return overflow ? tuple.last_value : value;
}

}  // namespace

SequenceTaker::SequenceTaker() {
    pg::call([] {
        CacheRegisterRelcacheCallback(relation_changed, 0);
        CacheRegisterSyscacheCallback(NAMESPACEOID, schema_or_sequence_changed, 0);
        // OWNED BY is no change of a relation.
        CacheRegisterSyscacheCallback(SEQRELID, schema_or_sequence_changed, 0);
    });
}

void SequenceTaker::load() {
    pg::call([] { AcceptInvalidationMessages(); });
    if (loads_due == 0) return;
    sequences_.clear();
    pg::query(
        "SELECT f.relation, f.schema, f.name, s.seqincrement FROM onerepl.followed_sequence AS f"
        " JOIN pg_catalog.pg_sequence AS s ON s.seqrelid = f.relation ORDER BY f.relation",
        {}, [&](const pg::Row& row) {
            sequences_.push_back({row.oid(0), row.text(1), row.text(2), row.int8(3)});
        });
    loads_due--;
}

/// All were dropped while nobody was here to tell it: then the newest record, which stays for this, still
/// tells of some (P20: what was told is known from the database alone).
bool SequenceTaker::have_all_gone() {
    if (!maybe_all_gone_ || !sequences_.empty()) return false;
    const auto newest = pg::query_int8("SELECT max(n) FROM onerepl.sequence_record HAVING count(*) > 0");
    const auto body = newest ? log::load_sequences(static_cast<Number>(*newest)) : std::nullopt;
    const std::optional<Record> told = body ? decode_record(*body) : std::nullopt;
    maybe_all_gone_ = told && !told->sequences.empty();
    return maybe_all_gone_;
}

/// One that was told is gone, or has another name.
bool SequenceTaker::is_list_other() const {
    std::size_t same = 0;
    for (const Sequence& sequence : sequences_) {
        const auto known = recorded_.find(sequence.relation);
        if (known != recorded_.end() && known->second.schema == sequence.schema &&
            known->second.name == sequence.name)
            same++;
    }
    return same != recorded_.size();
}

bool SequenceTaker::check(bool ahead) {
    moved_.clear();
    const bool list_is_other = is_list_other() || have_all_gone();
    std::size_t seen = 0;
    for (const Sequence& sequence : sequences_) {
        Tuple tuple{};
        if (!pg::call([&] { return read_tuple(sequence.relation, &tuple); })) continue;
        seen++;
        const State state{sequence.schema, sequence.name,
                          ahead ? value_after_crash(tuple, sequence.increment) : tuple.last_value,
                          tuple.is_called};
        const auto known = recorded_.find(sequence.relation);
        if (list_is_other || known == recorded_.end() || known->second != state)
            moved_[sequence.relation] = state;
    }
    // One that could not be read may still be there: the list is told in a later step.
    complete_ = seen == sequences_.size() && moved_.size() == seen && (list_is_other || recorded_.empty());
    return !moved_.empty() || (complete_ && list_is_other);
}

bool SequenceTaker::take(Number n, bool changes) {
    moved_.clear();
    complete_ = false;
    const Time now = pg::now();
    if (now < rests_until_ || (!changes && now - checked_ < quiet_interval)) return false;
    checked_ = now;
    load();
    const bool tells = check(changes);
    if (now - purged_ >= purge_interval) purge();
    if (!tells) return false;
    Record record;
    record.sequences_complete = complete_;
    record.operation = Operation::sequences;
    record.sequence_encoding = view(std::string_view(GetDatabaseEncodingName()));
    for (const Sequence& sequence : sequences_) {
        const auto moved = moved_.find(sequence.relation);
        if (moved == moved_.end()) continue;
        record.sequences.push_back(
            {view(sequence.schema), view(sequence.name), moved->second.last_value, moved->second.is_called});
    }
    Bytes encoded;
    encode_record(record, encoded);
    log::store_sequences(n, encoded);
    return true;
}

void SequenceTaker::committed() {
    if (complete_) recorded_.clear();
    if (complete_) maybe_all_gone_ = false;
    for (const auto& [relation, state] : moved_) recorded_[relation] = state;
    moved_.clear();
    complete_ = false;
}

void SequenceTaker::failed(const pg::ErrorReport& report) {
    moved_.clear();
    complete_ = false;
    loads_due = 2;
    if (pg::is_transient(report.sqlstate)) return;
    rests_until_ = pg::now() + rest_of_sequences;
    pg::in_transaction([&] {
        pg::write_journal_entry(0, {Level::critical,
                                    "P17",
                                    "sequences cannot be read: " + report.message,
                                    "They do not follow at the centrals until this is mended.",
                                    {}});
    });
}

void SequenceTaker::purge() {
    purged_ = pg::now();
    pg::execute(
        "DELETE FROM onerepl.sequence_record AS s"
        " WHERE n <= (SELECT min(onerepl.confirmed_to(id)) FROM onerepl.link WHERE role = 'remote')"
        " AND n < (SELECT max(n) FROM onerepl.sequence_record)");
}

}  // namespace onerepl::sender
