// Finding the row that a record is about: by the index whose columns are the key, else by reading the table.
#include "apply/rows/search.h"

#include "apply/rows/foreign.h"
#include "apply/rows/foreign_row.h"
#include "apply/rows/table.h"
#include "apply/rows/write.h"

extern "C" {
#include "access/nbtree.h"
#include "access/sysattr.h"
#include "catalog/pg_am.h"
#include "storage/lmgr.h"
#include "utils/datum.h"
#include "utils/lsyscache.h"
#include "utils/typcache.h"
}

namespace onerepl::apply {

namespace {

enum class Match { none, equal, same_bytes };

// ---------------------------------------------------------------- choosing the index

int position_of(int count, const AttrNumber* columns, AttrNumber column) {
    for (int i = 0; i < count; i++)
        if (columns[i] == column) return i;
    return -1;
}

/// How many columns of the index can be searched by `columns`: all of its key or, for our purpose, nothing.
int usable_columns(Relation index, const IndexInfo* info, int count, const AttrNumber* columns) {
    if (!index->rd_index->indisvalid || index->rd_rel->relam != BTREE_AM_OID) return 0;
    if (info->ii_Expressions != NIL || info->ii_Predicate != NIL) return 0;
    for (int i = 0; i < info->ii_NumIndexKeyAttrs; i++)
        if (position_of(count, columns, info->ii_IndexAttrNumbers[i]) < 0) return 0;
    return info->ii_NumIndexKeyAttrs;
}

/// A unique index over exactly the columns is best; else the unique or longest one over some of them.
int rank_of(Relation index, int usable, int count) {
    if (usable == 0) return 0;
    if (index->rd_index->indisunique && usable == count) return index->rd_index->indimmediate ? 10000 : 9000;
    return (index->rd_index->indisunique ? 5000 : 0) + usable;
}

int choose_index(const Table* table, int count, const AttrNumber* columns) {
    int best = -1;
    int best_rank = 0;
    for (int i = 0; i < table->result->ri_NumIndices; i++) {
        Relation index = table->result->ri_IndexRelationDescs[i];
        const int usable = usable_columns(index, table->result->ri_IndexRelationInfo[i], count, columns);
        const int rank = rank_of(index, usable, count);
        if (rank > best_rank) {
            best = i;
            best_rank = rank;
        }
    }
    return best;
}

void make_scan_key(Relation index, int i, ScanKeyData* key) {
    const Oid type = index->rd_opcintype[i];
    const Oid equality = get_opfamily_member(index->rd_opfamily[i], type, type, BTEqualStrategyNumber);
    const RegProcedure procedure = get_opcode(equality);
    if (!RegProcedureIsValid(procedure))
        elog(ERROR, "no equality operator for index \"%s\"", RelationGetRelationName(index));
    ScanKeyInit(key, static_cast<AttrNumber>(i + 1), BTEqualStrategyNumber, procedure, 0);
    key->sk_collation = index->rd_indcollation[i];
}

void use_index(Table* table, int number) {
    RowSearch& search = table->search;
    const IndexInfo* info = table->result->ri_IndexRelationInfo[number];
    search.index = table->result->ri_IndexRelationDescs[number];
    search.key_count = info->ii_NumIndexKeyAttrs;
    const Form_pg_index form = search.index->rd_index;
    search.index_decides = form->indisunique && form->indimmediate && search.key_count == search.count;
    search.order = static_cast<int*>(palloc(sizeof(int) * search.key_count));
    search.keys = static_cast<ScanKeyData*>(palloc0(sizeof(ScanKeyData) * search.key_count));
    for (int i = 0; i < search.key_count; i++) {
        search.order[i] = position_of(search.count, search.columns, info->ii_IndexAttrNumbers[i]);
        make_scan_key(search.index, i, &search.keys[i]);
    }
    search.scan = compat::begin_index_scan(table->relation, search.index, &table->dirty, search.key_count);
}

void find_equality(Table* table) {
    RowSearch& search = table->search;
    search.equal = static_cast<FmgrInfo**>(palloc0(sizeof(FmgrInfo*) * search.count));
    for (int i = 0; i < search.count; i++) {
        const Oid type = TupleDescAttr(RelationGetDescr(table->relation), search.columns[i] - 1)->atttypid;
        TypeCacheEntry* entry = lookup_type_cache(type, TYPECACHE_EQ_OPR_FINFO);
        if (OidIsValid(entry->eq_opr_finfo.fn_oid)) search.equal[i] = &entry->eq_opr_finfo;
    }
}

/// Most tables are searched by the same columns always, so the search is kept.
void prepare_search(Table* table, int count, const AttrNumber* columns) {
    RowSearch& search = table->search;
    if (search.memory != nullptr && search.count == count &&
        memcmp(search.columns, columns, sizeof(AttrNumber) * count) == 0)
        return;
    end_search(table);
    search.memory = AllocSetContextCreate(table->memory, "onerepl search", ALLOCSET_SMALL_SIZES);
    MemoryContext before = MemoryContextSwitchTo(search.memory);
    search.count = count;
    search.columns = static_cast<AttrNumber*>(palloc(sizeof(AttrNumber) * (count + 1)));
    memcpy(search.columns, columns, sizeof(AttrNumber) * count);
    find_equality(table);
    const int index = choose_index(table, count, columns);
    if (index >= 0) use_index(table, index);
    MemoryContextSwitchTo(before);
}

// ---------------------------------------------------------------- comparing

Match compare_value(const Table* table, int i, Datum ours, Datum wanted) {
    const Form_pg_attribute attribute =
        TupleDescAttr(RelationGetDescr(table->relation), table->search.columns[i] - 1);
    if (datum_image_eq(ours, wanted, attribute->attbyval, attribute->attlen)) return Match::same_bytes;
    FmgrInfo* equal = table->search.equal[i];
    if (equal == nullptr) return Match::none;
    return DatumGetBool(FunctionCall2Coll(equal, attribute->attcollation, ours, wanted)) ? Match::equal
                                                                                         : Match::none;
}

Match compare_row(Table* table, TupleTableSlot* slot, const Datum* values, const bool* nulls) {
    Match match = Match::same_bytes;
    for (int i = 0; i < table->search.count; i++) {
        bool is_null;
        const Datum ours = slot_getattr(slot, table->search.columns[i], &is_null);
        if (is_null != nulls[i]) return Match::none;
        if (is_null) continue;
        const Match one = compare_value(table, i, ours, values[i]);
        if (one == Match::none) return one;
        if (one == Match::equal) match = one;
    }
    return match;
}

// ---------------------------------------------------------------- searching

/// The candidates of one search, and the best one so far, in table->found.
struct Candidates {
    Table* table;
    const Datum* values;
    const bool* nulls;
    bool by_image;
    bool compare;  // the index alone does not decide
    Match match = Match::none;
};

/// Another transaction is writing this row: waits for its end. False: nobody is.
bool wait_for_writer(const Table* table) {
    const TransactionId writer =
        TransactionIdIsValid(table->dirty.xmin) ? table->dirty.xmin : table->dirty.xmax;
    if (!TransactionIdIsValid(writer)) return false;
    XactLockTableWait(writer, nullptr, nullptr, XLTW_None);
    return true;
}

/// Weighs the row in table->best. True: no better one can come.
bool consider(Candidates& candidates) {
    Table* table = candidates.table;
    Match match = Match::equal;
    if (candidates.compare) {
        MemoryContext before = MemoryContextSwitchTo(GetPerTupleMemoryContext(table->estate));
        match = compare_row(table, table->best, candidates.values, candidates.nulls);
        MemoryContextSwitchTo(before);
        ResetPerTupleExprContext(table->estate);
    }
    if (match == Match::none) return false;
    if (!candidates.by_image) match = Match::equal;
    // Two rows with one key exist while a deferrable constraint waits: the one that came first is to leave.
    const bool older = match == candidates.match && age_of(table->best) < age_of(table->found);
    if (match > candidates.match || older) {
        std::swap(table->found, table->best);
        candidates.match = match;
    }
    return candidates.by_image ? candidates.match == Match::same_bytes
                               : !table->has_deferrable || table->search.index_decides;
}

/// The next row of the index scan, in table->best. The scan lives from record to record, and the index keeps
/// memory of its own in it (the items it saw dead): that must not be the memory of one record.
bool next_candidate(Table* table) {
    MemoryContext before = MemoryContextSwitchTo(table->search.memory);
    const bool found = index_getnext_slot(table->search.scan, ForwardScanDirection, table->best);
    MemoryContextSwitchTo(before);
    return found;
}

bool search_by_index(Candidates& candidates) {
    Table* table = candidates.table;
    RowSearch& search = table->search;
    for (int i = 0; i < search.key_count; i++)
        search.keys[i].sk_argument = candidates.values[search.order[i]];
restart:
    candidates.match = Match::none;
    index_rescan(search.scan, search.keys, search.key_count, nullptr, 0);
    while (next_candidate(table)) {
        if (wait_for_writer(table)) goto restart;
        if (consider(candidates)) break;
    }
    return candidates.match != Match::none;
}

bool search_by_reading(Candidates& candidates) {
    Table* table = candidates.table;
    TableScanDesc scan = table_beginscan(table->relation, &table->dirty, 0, nullptr);
restart:
    candidates.match = Match::none;
    table_rescan(scan, nullptr);
    while (table_scan_getnextslot(scan, ForwardScanDirection, table->best)) {
        CHECK_FOR_INTERRUPTS();
        if (wait_for_writer(table)) goto restart;
        if (consider(candidates)) break;
    }
    table_endscan(scan);
    return candidates.match != Match::none;
}

/// A transaction that changes one row again and again: the index would lead to each of the row's dead
/// versions, which nobody can remove before it ends. The version that we made last is looked at first then.
/// It is the row if it has its unique key.
bool is_latest(Table* table, const Datum* values, const bool* nulls) {
    constexpr int enough = 8;
    if (table->times_again < enough || !table->search.index_decides) return false;
    if (!table_tuple_fetch_row_version(table->relation, &table->latest, &table->dirty, table->found))
        return false;
    return compare_row(table, table->found, values, nulls) == Match::same_bytes;
}

void note_whether_again(Table* table, bool found) {
    const bool again = found && ItemPointerEquals(&table->found->tts_tid, &table->latest);
    table->times_again = again ? table->times_again + 1 : 0;
}

bool index_can_be_used(const RowSearch& search, const bool* nulls) {
    if (search.index == nullptr) return false;
    for (int i = 0; i < search.key_count; i++)
        if (nulls[search.order[i]]) return false;
    return true;
}

}  // namespace

std::uint64_t age_of(TupleTableSlot* slot) {
    bool is_null;
    const TransactionId writer =
        DatumGetTransactionId(slot_getsysattr(slot, MinTransactionIdAttributeNumber, &is_null));
    if (!TransactionIdIsCurrentTransactionId(writer)) return 0;
    return 1 + static_cast<std::uint64_t>(
                   DatumGetCommandId(slot_getsysattr(slot, MinCommandIdAttributeNumber, &is_null)));
}

Relation index_for(Table* table, int count, const AttrNumber* columns) {
    prepare_search(table, count, columns);
    return table->search.index;
}

bool find_row(ApplyTransaction& xact, Table* table, int count, const AttrNumber* columns, const Datum* values,
              const bool* nulls, bool by_image) {
    if (table->is_foreign) return find_foreign(xact, table, count, columns, values, nulls, by_image);
    flush(xact, table);
    prepare_search(table, count, columns);
    const RowSearch& search = table->search;
    const bool by_index = index_can_be_used(search, nulls);
    const bool whole_key = by_index && search.key_count == search.count;
    Candidates candidates{table, values, nulls, by_image, by_image || !whole_key};
    if (whole_key && !by_image && is_latest(table, values, nulls)) return true;
    const bool found = by_index ? search_by_index(candidates) : search_by_reading(candidates);
    note_whether_again(table, found);
    return found;
}

void end_search(Table* table) {
    RowSearch& search = table->search;
    if (search.scan != nullptr) index_endscan(search.scan);
    if (search.memory != nullptr) MemoryContextDelete(search.memory);
    search = RowSearch{};
}

}  // namespace onerepl::apply
