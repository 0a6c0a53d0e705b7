// Inserts, updates and deletes of single rows, found by the remote's key or by the whole row. Strict: a row
// that should be there and is not, or the other way round, is an error, unless the incoming row was resolved
// to win.
#include "apply/rows/row.h"

#include "apply/rows/apply_transaction.h"
#include "apply/rows/foreign.h"
#include "apply/rows/foreign_row.h"
#include "apply/rows/map_columns.h"
#include "apply/rows/partition.h"
#include "apply/rows/pending.h"
#include "apply/rows/search.h"
#include "apply/rows/values.h"
#include "apply/rows/write.h"

extern "C" {
#include "lib/stringinfo.h"
#include "mb/pg_wchar.h"
#include "utils/datum.h"
#include "utils/lsyscache.h"
}

namespace onerepl::apply {

namespace {

/// One record being written: its values as B's datums. By number of B's column - 1.
struct Row {
    ApplyTransaction& xact;
    RelationMap& target;
    Operation operation;
    Table* table;
    const Record* record = nullptr;  // null: its values are here already
    Datum* values = nullptr;
    bool* nulls = nullptr;
    bool* given = nullptr;
    Datum* key = nullptr;
    bool* key_nulls = nullptr;
    int column = -1;  // being converted, for the error's context
};

void add_context(void* argument) {
    const Row& row = *static_cast<const Row*>(argument);
    const TableDescription& description = row.target.description;
    if (row.column >= 0)
        errcontext("column \"%s\" of the %s with number %llu, table %s.%s",
                   description.columns[row.column].name.c_str(), name_of(row.operation),
                   static_cast<unsigned long long>(row.xact.n), description.schema.c_str(),
                   description.name.c_str());
    else
        errcontext("%s with number %llu, table %s.%s", name_of(row.operation),
                   static_cast<unsigned long long>(row.xact.n), description.schema.c_str(),
                   description.name.c_str());
}

void begin_context(ErrorContextCallback& context, Row& row) {
    context.callback = add_context;
    context.arg = &row;
    context.previous = error_context_stack;
    error_context_stack = &context;
}

// ---------------------------------------------------------------- values

[[noreturn]] void report_shape() {
    ereport(ERROR, (errcode(ERRCODE_INVALID_BINARY_REPRESENTATION),
                    errmsg("the record does not have the columns of its table description")));
    pg_unreachable();
}

void convert_row(Row& row) {
    const RelationMap& target = row.target;
    if (static_cast<int>(row.record->row.size()) != target.column_count) report_shape();
    const int columns = target.columns_of_table;
    row.values = static_cast<Datum*>(palloc(sizeof(Datum) * columns));
    row.nulls = static_cast<bool*>(palloc(sizeof(bool) * columns * 2));
    row.given = row.nulls + columns;
    memset(row.nulls, true, sizeof(bool) * columns);
    memset(row.given, false, sizeof(bool) * columns);
    for (int i = 0; i < target.column_count; i++) {
        const ColumnPlan& plan = target.columns[i];
        if (plan.ignored || row.record->row[i].kind == ValueKind::unchanged) continue;
        row.column = i;
        const int place = plan.attribute - 1;
        row.values[place] = convert_value(target, plan, row.record->row[i], &row.nulls[place]);
        row.given[place] = true;
    }
    row.column = -1;
}

/// Puts the new row into the table's fresh slot: what the record brings, else what `old` has, else defaults.
void fill_fresh(Row& row, TupleTableSlot* old) {
    TupleTableSlot* fresh = row.table->fresh;
    if (old != nullptr) slot_getallattrs(old);
    ExecClearTuple(fresh);
    for (int i = 0; i < row.target.columns_of_table; i++) {
        const bool ours = row.given[i] || old == nullptr;
        // Rows that come here have had their values read.
        // NOLINTNEXTLINE(clang-analyzer-core.NullDereference)
        fresh->tts_values[i] = ours ? row.values[i] : old->tts_values[i];
        fresh->tts_isnull[i] = ours ? row.nulls[i] : old->tts_isnull[i];
    }
    for (int i = 0; old == nullptr && i < row.target.missing_count; i++) {
        const AttrNumber attribute = row.target.missing[i];
        fresh->tts_values[attribute - 1] =
            default_of(row.table, attribute, &fresh->tts_isnull[attribute - 1]);
    }
    ExecStoreVirtualTuple(fresh);
}

bool brings_whole_row(const Row& row) {
    for (int i = 0; i < row.target.column_count; i++) {
        const ColumnPlan& plan = row.target.columns[i];
        if (!plan.ignored && !row.given[plan.attribute - 1]) return false;
    }
    return true;
}

void convert_old_key(Row& row) {
    const RelationMap& target = row.target;
    const std::vector<Value>& old = *row.record->old_key;
    if (old.size() != (target.has_key() ? target.key.size() : target.description.columns.size()))
        report_shape();
    for (int k = 0; k < target.key_count; k++) {
        row.column = target.key_places[k];
        row.key[k] =
            convert_value(target, target.columns[row.column], old[target.old_place(k)], &row.key_nulls[k]);
    }
    row.column = -1;
}

/// A generated column of the key, computed from the record's own columns.
void compute_generated(Row& row, int place) {
    const Form_pg_attribute attribute = TupleDescAttr(RelationGetDescr(row.table->relation), place);
    if (attribute->attgenerated == '\0' || !brings_whole_row(row)) report_shape();
    fill_fresh(row, nullptr);
    TupleTableSlot* fresh = row.table->fresh;
    ExecComputeStoredGenerated(row.table->result, row.table->estate, fresh, CMD_INSERT);
    const Datum value = slot_getattr(fresh, attribute->attnum, &row.nulls[place]);
    if (!row.nulls[place]) row.values[place] = datumCopy(value, attribute->attbyval, attribute->attlen);
}

/// The key did not change: it is part of the new row.
void take_key_from_row(Row& row) {
    for (int k = 0; k < row.target.key_count; k++) {
        const int place = row.target.key_attributes[k] - 1;
        if (place < 0) report_shape();
        if (!row.given[place]) compute_generated(row, place);
        row.key[k] = row.values[place];
        row.key_nulls[k] = row.nulls[place];
    }
}

void form_key(Row& row) {
    const int count = row.target.key_count;
    row.key = static_cast<Datum*>(palloc(sizeof(Datum) * (count + 1)));
    row.key_nulls = static_cast<bool*>(palloc(sizeof(bool) * (count + 1)));
    if (row.record->old_key) return convert_old_key(row);
    if (!row.target.has_key() || row.operation != Operation::update) report_shape();
    take_key_from_row(row);
}

// ---------------------------------------------------------------- missing rows

void append_key(const Row& row, StringInfo text) {
    const RelationMap& target = row.target;
    TupleDesc description = RelationGetDescr(row.table->relation);
    for (int k = 0; k < target.key_count; k++)
        appendStringInfo(text, "%s%s", k > 0 ? ", " : "(", target.columns[target.key_places[k]].name);
    appendStringInfoString(text, ")=(");
    for (int k = 0; k < target.key_count; k++) {
        if (k > 0) appendStringInfoString(text, ", ");
        Oid function;
        bool is_varlena;
        getTypeOutputInfo(TupleDescAttr(description, target.key_attributes[k] - 1)->atttypid, &function,
                          &is_varlena);
        const char* value = row.key_nulls[k] ? "null" : OidOutputFunctionCall(function, row.key[k]);
        const int length = static_cast<int>(strlen(value));
        appendBinaryStringInfo(text, value, pg_mbcliplen(value, length, 200));
    }
    appendStringInfoChar(text, ')');
}

[[noreturn]] void report_missing_row(const Row& row) {
    StringInfoData key;
    initStringInfo(&key);
    append_key(row, &key);
    const char* verb = row.operation == Operation::update ? "updated" : "deleted";
    const char* table = RelationGetRelationName(row.table->relation);
    const char* detail = row.target.has_key() ? "Key %s is not present in table \"%s\".%s"
                                              : "No row with %s is present in table \"%s\".%s";
    // Otherwise a row would have been inserted.
    const char* why =
        row.xact.incoming_wins && row.operation == Operation::update
            ? " The change cannot become an insert, since it leaves out large values that did not change: "
              "skip it, and mend the table by onerepl_refresh(..., 'repair') at the remote."
            : "";
    ereport(ERROR, (errcode(ERRCODE_NO_DATA_FOUND), errmsg("row to be %s does not exist", verb),
                    errdetail(detail, key.data, table, why), errtable(row.table->relation)));
    pg_unreachable();
}

// ---------------------------------------------------------------- operations

/// The incoming row wins: of what may be in its way on another server, only a row with its key is known.
void remove_same_key(Row& row, Table* partition) {
    const RelationMap& target = row.target;
    if (!row.xact.incoming_wins || !partition->is_foreign || !target.has_key()) return;
    TupleTableSlot* fresh = row.table->fresh;
    Datum* key = static_cast<Datum*>(palloc(sizeof(Datum) * target.key_count));
    bool* nulls = static_cast<bool*>(palloc(sizeof(bool) * target.key_count));
    for (int k = 0; k < target.key_count; k++)
        key[k] = slot_getattr(fresh, target.key_attributes[k], &nulls[k]);
    std::uint64_t left = UINT64_MAX;
    while (
        find_in_partition(row.xact, partition, target.key_count, target.key_attributes, key, nulls, false)) {
        // P22: a trigger on that server may bring the row back.
        if (rows_found(partition) >= left) report_kept(partition->oid);
        left = rows_found(partition);
        delete_row(row.xact, partition);
    }
}

void insert_into_partition(Row& row, Table* partition) {
    if (is_left_out(row.xact, partition)) return;
    remove_same_key(row, partition);
    to_partition(partition, row.table->fresh);
    insert_row(row.xact, partition);
}

void insert_fresh(Row& row) {
    Table* table = row.table;
    if (!table->is_partitioned) return insert_row(row.xact, table);
    insert_into_partition(row, route_row(row.xact, table, table->fresh));
}

void write_insert(Row& row) {
    convert_row(row);
    if (!brings_whole_row(row)) report_shape();
    fill_fresh(row, nullptr);
    insert_fresh(row);
}

/// The table, or the partition, in whose `found` slot the row is; null: there is none.
Table* find_old(Row& row, Table* likely) {
    const RelationMap& target = row.target;
    const bool by_image = !target.has_key();
    if (row.table->is_partitioned)
        return find_partitioned(row.xact, row.table, target.key_count, target.key_attributes, row.key,
                                row.key_nulls, by_image, likely);
    const bool found = find_row(row.xact, row.table, target.key_count, target.key_attributes, row.key,
                                row.key_nulls, by_image);
    return found ? row.table : nullptr;
}

void update_missing(Row& row) {
    if (row.xact.missing_is_left_to_copy && !brings_whole_row(row)) return;
    if (!row.xact.incoming_wins || !brings_whole_row(row)) report_missing_row(row);
    fill_fresh(row, nullptr);
    insert_fresh(row);
}

// ---------------------------------------------------------------- rows on servers that have the record

[[noreturn]] void report_given_away(const Row& row) {
    StringInfoData key;
    initStringInfo(&key);
    append_key(row, &key);
    ereport(
        ERROR,
        (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
         errmsg("a row has left a foreign partition of table \"%s\" already, and the change does not "
                "bring all its values",
                RelationGetRelationName(row.table->relation)),
         errdetail("The row with %s belongs to another partition now. The foreign server committed before "
                   "this one could. Insert the row as it is on the remote (SET onerepl.allow_writes = on), "
                   "then skip the record.",
                   key.data),
         errtable(row.table->relation)));
    pg_unreachable();
}

bool tells_partition(const Row& row) {
    int column = -1;
    while ((column = bms_next_member(routing_columns(row.xact, row.table), column)) >= 0)
        if (!row.given[column - 1]) return false;
    return true;
}

/// An update whose old row is gone from where it was, since that server has the record. What is left to do is
/// to bring the new row to where it is not yet.
void finish_move(Row& row) {
    if (!tells_partition(row)) report_given_away(row);
    fill_fresh(row, nullptr);
    Table* partition = route_row(row.xact, row.table, row.table->fresh);
    if (is_left_out(row.xact, partition)) return;
    // Columns that only we have went with the old row.
    if (!brings_whole_row(row) || row.target.missing_count > 0) report_given_away(row);
    insert_into_partition(row, partition);
}

bool is_done_elsewhere(Row& row, Table* likely) {
    return may_be_left_out(row.xact, row.table, row.target.key_count, row.target.key_attributes, likely);
}

/// A record must lead to the same partition whenever it is written.
void check_routing(const Row& row) {
    for (int i = 0; i < row.target.missing_count; i++)
        if (bms_is_member(row.target.missing[i], routing_columns(row.xact, row.table)))
            ereport(
                ERROR,
                (errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
                 errmsg("column \"%s\" decides which partition of table \"%s\" a row belongs to, and the "
                        "remote does not bring it",
                        get_attname(row.table->oid, row.target.missing[i], false),
                        RelationGetRelationName(row.table->relation)),
                 errdetail("Partition the table by columns that the remote has: some partitions are foreign "
                           "tables."),
                 errtable(row.table->relation)));
}

/// Whether a chunk's row in `fresh` is in `old` already, byte by byte.
bool is_same_row(const Row& row, TupleTableSlot* fresh, TupleTableSlot* old) {
    TupleDesc description = fresh->tts_tupleDescriptor;
    slot_getallattrs(old);
    for (int i = 0; i < row.target.columns_of_table; i++) {
        const Form_pg_attribute attribute = TupleDescAttr(description, i);
        if (attribute->attisdropped || attribute->attgenerated != '\0') continue;
        if (fresh->tts_isnull[i] != old->tts_isnull[i]) return false;
        if (!fresh->tts_isnull[i] &&
            !datum_image_eq(fresh->tts_values[i], old->tts_values[i], attribute->attbyval, attribute->attlen))
            return false;
    }
    return true;
}

/// False: the row changed under our hands.
bool update_in_partitions(Row& row, Table* old) {
    to_root(old, row.table);
    fill_fresh(row, row.table->found);
    if (row.xact.copying && is_same_row(row, row.table->fresh, row.table->found)) return true;
    Table* partition = route_row(row.xact, row.table, row.table->fresh);
    to_partition(partition, row.table->fresh);
    if (partition == old) return update_row(row.xact, old);
    const Deletion deletion = delete_row(row.xact, old);
    if (deletion == Deletion::kept) report_kept(old->oid);
    if (deletion == Deletion::changed) return false;
    insert_into_partition(row, partition);
    // What is buffered may point into the old row's page.
    flush(row.xact, partition);
    return true;
}

/// Puts the key into the fresh slot, and nulls into all other columns.
void fill_key(const Row& row) {
    TupleTableSlot* fresh = row.table->fresh;
    ExecClearTuple(fresh);
    memset(fresh->tts_isnull, true, sizeof(bool) * row.target.columns_of_table);
    for (int k = 0; k < row.target.key_count; k++) {
        const int place = row.target.key_attributes[k] - 1;
        fresh->tts_values[place] = row.key[k];
        fresh->tts_isnull[place] = row.key_nulls[k];
    }
    ExecStoreVirtualTuple(fresh);
}

/// Where the row is if the update does not move it, or must be if its key tells the partition. A key is not
/// asked where the row may be missing without harm: there may be no partition for it.
Table* likely_partition(Row& row) {
    if (!row.table->is_partitioned) return nullptr;
    const bool key_changed = row.record != nullptr && row.record->old_key;
    const bool told = row.values != nullptr && !key_changed &&
                      (brings_whole_row(row) || (row.table->has_foreign && tells_partition(row)));
    if (told) {
        fill_fresh(row, nullptr);
        return route_row(row.xact, row.table, row.table->fresh);
    }
    if (row.xact.incoming_wins) return nullptr;

    if (!is_routed_by(row.xact, row.table, row.target.key_count, row.target.key_attributes)) return nullptr;
    fill_key(row);
    return route_row(row.xact, row.table, row.table->fresh);
}

void update_found_row(Row& row) {
    Table* likely = likely_partition(row);
    for (;;) {
        Table* old = find_old(row, likely);
        if (old == nullptr) return is_done_elsewhere(row, likely) ? finish_move(row) : update_missing(row);
        bool done;
        if (row.table->is_partitioned) {
            done = update_in_partitions(row, old);
        } else {
            fill_fresh(row, row.table->found);
            done = (row.xact.copying && is_same_row(row, row.table->fresh, row.table->found)) ||
                   update_row(row.xact, row.table);
        }
        if (done) return;
        CHECK_FOR_INTERRUPTS();
    }
}

/// Whether the update is kept for later. Large ones would fill the memory that many small ones need.
bool is_to_wait(const Row& row) {
    constexpr std::size_t largest = 8192;
    if (row.record->old_key || row.xact.incoming_wins || row.xact.copying) return false;
    if (!may_wait(row.xact, row.table, row.target)) return false;
    std::size_t size = 0;
    for (const Value& value : row.record->row) size += value.bytes.size();
    return size <= largest;
}

void write_update(Row& row) {
    const bool waits = is_to_wait(row);
    convert_row(row);
    form_key(row);
    if (!waits) return update_found_row(row);
    add_pending(row.xact, row.table, {row.xact.n, row.values, row.nulls, row.given, row.key, row.key_nulls});
}

void write_delete(Row& row) {
    form_key(row);
    Table* likely = likely_partition(row);
    for (;;) {
        Table* old = find_old(row, likely);
        if (old == nullptr && (row.xact.incoming_wins || is_done_elsewhere(row, likely))) return;
        if (old == nullptr) report_missing_row(row);
        // A trigger may keep it: that is the administrator's own rule for deletes.
        if (delete_row(row.xact, old) != Deletion::changed) return;
        CHECK_FOR_INTERRUPTS();
    }
}

void write_operation(Row& row) {
    if (row.table->has_foreign) check_routing(row);
    switch (row.operation) {
        case Operation::insert:
            return write_insert(row);
        case Operation::update:
            return write_update(row);
        default:
            return write_delete(row);
    }
}

Table* table_of(ApplyTransaction& xact, RelationMap& target) {
    if (target.table != nullptr && target.generation == xact.generation) return target.table;
    Table* table = open_table(xact, target.relation);
    // Somebody changed the table before we got its lock. Its shape cannot change again; what else does is
    // seen by the next transaction (P22).
    for (int tries = 0; !target.matched && tries < 3; tries++) map_columns(target);
    target.table = table;
    target.generation = xact.generation;
    return table;
}

void use_encoding(int encoding) {
    if (SetClientEncoding(encoding) == 0) return;
    if (PrepareClientEncoding(encoding) < 0 || SetClientEncoding(encoding) < 0)
        ereport(ERROR, (errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
                        errmsg("values in encoding %s cannot be converted to this database's %s",
                               pg_encoding_to_char(encoding), GetDatabaseEncodingName())));
}

}  // namespace

void write_pending_update(ApplyTransaction& xact, RelationMap& target, Table* table,
                          const PendingUpdate& update) {
    Row row{xact, target, Operation::update, table};
    row.values = update.values;
    row.nulls = update.nulls;
    row.given = update.given;
    row.key = update.key;
    row.key_nulls = update.key_nulls;
    ErrorContextCallback context;
    begin_context(context, row);
    update_found_row(row);
    error_context_stack = context.previous;
}

void write_row(ApplyTransaction& xact, RelationMap& target, const Record& record) {
    CHECK_FOR_INTERRUPTS();
    MemoryContextReset(xact.record_memory);
    MemoryContext before = MemoryContextSwitchTo(xact.record_memory);
    Row row{xact, target, record.operation, nullptr, &record};
    ErrorContextCallback context;
    begin_context(context, row);
    row.table = table_of(xact, target);
    const pg::Rights rights = become_owner(row.table);
    if (target.converts) use_encoding(target.encoding);
    write_operation(row);
    if (target.converts) SetClientEncoding(GetDatabaseEncoding());
    pg::return_from(rights);
    error_context_stack = context.previous;
    MemoryContextSwitchTo(before);
}

}  // namespace onerepl::apply
