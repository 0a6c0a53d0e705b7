// Rows of foreign partitions, by SQL: what postgres_fdw makes of it is its business. A row is looked for
// first, which locks it there, and then written by its place in the table there (ctid).
#include "apply/rows/foreign_row.h"

#include "apply/rows/apply_transaction.h"
#include "apply/rows/foreign.h"
#include "apply/rows/write.h"

extern "C" {
#include "access/htup_details.h"
#include "catalog/pg_operator.h"
#include "executor/spi.h"
#include "foreign/foreign.h"
#include "lib/stringinfo.h"
#include "nodes/makefuncs.h"
#include "utils/builtins.h"
#include "utils/datum.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"
#include "utils/typcache.h"
}

namespace onerepl::apply {

/// The statements about one partition; they live to the end of the B transaction.
struct ForeignStatements {
    SPIPlanPtr insert;
    SPIPlanPtr update;
    SPIPlanPtr remove;
    SPIPlanPtr search;
    int search_count;
    AttrNumber* search_columns;
    bool search_by_image;
    uint64 rows_found;
};

namespace {

Form_pg_attribute attribute_of(const Table* table, int place) {
    return TupleDescAttr(RelationGetDescr(table->relation), place);
}

bool is_written(Form_pg_attribute attribute) {
    return !attribute->attisdropped && attribute->attgenerated == '\0';
}

const char* name_of_table(const Table* table) {
    return quote_qualified_identifier(get_namespace_name(RelationGetNamespace(table->relation)),
                                      RelationGetRelationName(table->relation));
}

const char* name_of_server(const Table* table) {
    return GetForeignServer(GetForeignTable(table->oid)->serverid)->servername;
}

// ---------------------------------------------------------------- statements

/// Parameters: all columns that are written, and one more.
int parameters_of(const Table* table, Oid* types) {
    int count = 0;
    for (int i = 0; i < RelationGetNumberOfAttributes(table->relation); i++)
        if (is_written(attribute_of(table, i))) types[count++] = attribute_of(table, i)->atttypid;
    types[count] = TIDOID;
    return count;
}

SPIPlanPtr prepare(const char* sql, int count, Oid* types) {
    MemoryContext before = CurrentMemoryContext;
    SPIPlanPtr plan = SPI_prepare(sql, count, types);
    MemoryContextSwitchTo(before);
    if (plan == nullptr) elog(ERROR, "could not prepare \"%s\": %s", sql, SPI_result_code_string(SPI_result));
    return plan;
}

Oid* room_for_types(const Table* table) {
    return static_cast<Oid*>(palloc(sizeof(Oid) * (RelationGetNumberOfAttributes(table->relation) + 1)));
}

SPIPlanPtr prepare_insert(const Table* table) {
    StringInfoData names, values, sql;
    initStringInfo(&names);
    initStringInfo(&values);
    initStringInfo(&sql);
    int count = 0;
    for (int i = 0; i < RelationGetNumberOfAttributes(table->relation); i++) {
        if (!is_written(attribute_of(table, i))) continue;
        const char* comma = count++ > 0 ? ", " : "";
        appendStringInfo(&names, "%s%s", comma, quote_identifier(NameStr(attribute_of(table, i)->attname)));
        appendStringInfo(&values, "%s$%d", comma, count);
    }
    appendStringInfo(&sql, "INSERT INTO %s (%s) VALUES (%s)", name_of_table(table), names.data, values.data);
    Oid* types = room_for_types(table);
    parameters_of(table, types);
    return prepare(sql.data, count, types);
}

SPIPlanPtr prepare_update(const Table* table) {
    StringInfoData sql;
    initStringInfo(&sql);
    appendStringInfo(&sql, "UPDATE %s SET ", name_of_table(table));
    int count = 0;
    for (int i = 0; i < RelationGetNumberOfAttributes(table->relation); i++) {
        if (!is_written(attribute_of(table, i))) continue;
        const char* comma = count++ > 0 ? ", " : "";
        appendStringInfo(&sql, "%s%s = $%d", comma,
                         quote_identifier(NameStr(attribute_of(table, i)->attname)), count);
    }
    appendStringInfo(&sql, " WHERE ctid = $%d", count + 1);
    Oid* types = room_for_types(table);
    parameters_of(table, types);
    return prepare(sql.data, count + 1, types);
}

SPIPlanPtr prepare_delete(const Table* table) {
    Oid types[] = {TIDOID};
    return prepare(psprintf("DELETE FROM %s WHERE ctid = $1", name_of_table(table)), 1, types);
}

/// "(column = $n)"; a type without equality is compared by its text.
void append_condition(StringInfo sql, Form_pg_attribute attribute, int number, bool may_be_null) {
    const char* column = quote_identifier(NameStr(attribute->attname));
    const Oid equality = lookup_type_cache(attribute->atttypid, TYPECACHE_EQ_OPR)->eq_opr;
    if (may_be_null) appendStringInfo(sql, "($%d IS NULL AND %s IS NULL OR ", number, column);
    if (OidIsValid(equality)) {
        HeapTuple tuple = SearchSysCache1(OPEROID, ObjectIdGetDatum(equality));
        if (!HeapTupleIsValid(tuple)) elog(ERROR, "operator %u is gone", equality);
        const Form_pg_operator form = reinterpret_cast<Form_pg_operator>(GETSTRUCT(tuple));
        appendStringInfo(sql, "%s OPERATOR(%s.%s) $%d", column,
                         quote_identifier(get_namespace_name(form->oprnamespace)), NameStr(form->oprname),
                         number);
        ReleaseSysCache(tuple);
    } else {
        appendStringInfo(sql, "CAST(%s AS pg_catalog.text) = CAST($%d AS pg_catalog.text)", column, number);
    }
    if (may_be_null) appendStringInfoChar(sql, ')');
}

SPIPlanPtr make_search(const Table* table, int count, const AttrNumber* columns, bool by_image) {
    StringInfoData sql;
    initStringInfo(&sql);
    appendStringInfoString(&sql, "SELECT ctid");
    for (int i = 0; i < RelationGetNumberOfAttributes(table->relation); i++) {
        const Form_pg_attribute attribute = attribute_of(table, i);
        appendStringInfo(&sql, ", %s",
                         attribute->attisdropped ? "NULL" : quote_identifier(NameStr(attribute->attname)));
    }
    appendStringInfo(&sql, " FROM %s WHERE ", name_of_table(table));
    Oid* types = static_cast<Oid*>(palloc(sizeof(Oid) * (count + 1)));
    for (int k = 0; k < count; k++) {
        const Form_pg_attribute attribute = attribute_of(table, columns[k] - 1);
        types[k] = attribute->atttypid;
        if (k > 0) appendStringInfoString(&sql, " AND ");
        append_condition(&sql, attribute, k + 1, by_image || !attribute->attnotnull);
    }
    appendStringInfoString(&sql, " FOR UPDATE");
    return prepare(sql.data, count, types);
}

ForeignStatements* statements_of(Table* table) {
    if (table->statements == nullptr) {
        table->statements =
            static_cast<ForeignStatements*>(MemoryContextAllocZero(table->memory, sizeof(ForeignStatements)));
    }
    return table->statements;
}

/// Mostly a table is searched by the same columns always.
void prepare_search(Table* table, int count, const AttrNumber* columns, bool by_image) {
    ForeignStatements* known = statements_of(table);
    if (known->search != nullptr && known->search_count == count && known->search_by_image == by_image &&
        memcmp(known->search_columns, columns, sizeof(AttrNumber) * count) == 0)
        return;
    if (known->search != nullptr) SPI_freeplan(known->search);
    known->search = make_search(table, count, columns, by_image);
    known->search_count = count;
    known->search_by_image = by_image;
    known->search_columns =
        static_cast<AttrNumber*>(MemoryContextAlloc(table->memory, sizeof(AttrNumber) * (count + 1)));
    memcpy(known->search_columns, columns, sizeof(AttrNumber) * count);
}

// ---------------------------------------------------------------- executing

/// Gives the number of rows. The result is to be freed.
uint64 execute(SPIPlanPtr plan, Datum* values, const char* nulls) {
    MemoryContext before = CurrentMemoryContext;
    const int result = SPI_execute_plan(plan, values, nulls, false, 0);
    MemoryContextSwitchTo(before);
    if (result < 0) elog(ERROR, "could not execute a statement: %s", SPI_result_code_string(result));
    return SPI_processed;
}

/// One row and no other: there may be triggers, rules and policies on the other server.
void expect_one(const Table* table, uint64 rows, const char* verb) {
    if (rows == 1) return;
    ereport(ERROR, (errcode(ERRCODE_FDW_ERROR),
                    errmsg("foreign server \"%s\" has %s %llu rows instead of one", name_of_server(table),
                           verb, static_cast<unsigned long long>(rows)),
                    errdetail("A trigger, a rule or a policy of its table interferes, or it is no ordinary "
                              "table there."),
                    errtable(table->relation)));
}

/// Executes a statement whose parameters are the columns of the fresh row, and its place if asked.
void write_fresh(Table* table, SPIPlanPtr plan, bool with_place, const char* verb) {
    TupleTableSlot* fresh = table->fresh;
    slot_getallattrs(fresh);
    const int columns = RelationGetNumberOfAttributes(table->relation);
    Datum* values = static_cast<Datum*>(palloc(sizeof(Datum) * (columns + 1)));
    char* nulls = static_cast<char*>(palloc(columns + 2));
    int count = 0;
    for (int i = 0; i < columns; i++) {
        if (!is_written(attribute_of(table, i))) continue;
        values[count] = fresh->tts_values[i];
        nulls[count++] = fresh->tts_isnull[i] ? 'n' : ' ';
    }
    if (with_place) {
        values[count] = PointerGetDatum(&table->found->tts_tid);
        nulls[count++] = ' ';
    }
    nulls[count] = '\0';
    expect_one(table, execute(plan, values, nulls), verb);
    ExecClearTuple(fresh);
}

/// What others may see is there, and what comes counts as written.
void begin_writing(ApplyTransaction& xact, Table* table) {
    if (!table->buffers_inserts) flush_all(xact);
    count_command(xact);
    if (table->place == nullptr) table->place = place_of(xact, table->oid);
    table->place->written = xact.n;
}

// ---------------------------------------------------------------- the row that was found

/// How alike the row is to the one that is wanted: only among equal ones it matters.
bool is_same_image(Table* table, HeapTuple row, TupleDesc description, const Datum* values,
                   const bool* nulls) {
    const ForeignStatements* search = table->statements;
    for (int k = 0; k < search->search_count; k++) {
        const Form_pg_attribute attribute = attribute_of(table, search->search_columns[k] - 1);
        bool is_null;
        const Datum value = heap_getattr(row, attribute->attnum + 1, description, &is_null);
        if (is_null != nulls[k]) return false;
        if (!is_null && !datum_image_eq(value, values[k], attribute->attbyval, attribute->attlen))
            return false;
    }
    return true;
}

/// Keeps a row of the result in table->found, in the memory context that we are in.
void keep(Table* table, HeapTuple row, TupleDesc description) {
    TupleTableSlot* found = table->found;
    ExecClearTuple(found);
    bool is_null;
    const Datum place = heap_getattr(row, 1, description, &is_null);
    if (DatumGetPointer(place) == nullptr) elog(ERROR, "a row of a foreign table has no place there");
    for (int i = 0; i < RelationGetNumberOfAttributes(table->relation); i++) {
        const Form_pg_attribute attribute = attribute_of(table, i);
        found->tts_isnull[i] = true;
        if (attribute->attisdropped) continue;
        const Datum value = heap_getattr(row, i + 2, description, &found->tts_isnull[i]);
        found->tts_values[i] =
            found->tts_isnull[i] ? 0 : datumCopy(value, attribute->attbyval, attribute->attlen);
    }
    ExecStoreVirtualTuple(found);
    found->tts_tid = *reinterpret_cast<ItemPointer>(DatumGetPointer(place));
}

}  // namespace

bool find_foreign(ApplyTransaction& xact, Table* table, int count, const AttrNumber* columns,
                  const Datum* values, const bool* nulls, bool by_image) {
    count_command(xact);
    prepare_search(table, count, columns, by_image);
    char* flags = static_cast<char*>(palloc(count + 1));
    for (int k = 0; k < count; k++) flags[k] = nulls[k] ? 'n' : ' ';
    flags[count] = '\0';
    const uint64 rows = execute(table->statements->search, const_cast<Datum*>(values), flags);
    table->statements->rows_found = rows;
    SPITupleTable* result = SPI_tuptable;
    uint64 best = 0;
    while (by_image && best + 1 < rows &&
           !is_same_image(table, result->vals[best], result->tupdesc, values, nulls))
        best++;
    if (rows > 0) keep(table, result->vals[best], result->tupdesc);
    SPI_freetuptable(result);
    return rows > 0;
}

std::uint64_t rows_found(const Table* table) {
    return table->statements->rows_found;
}

void insert_foreign(ApplyTransaction& xact, Table* table) {
    begin_writing(xact, table);
    ForeignStatements* statements = statements_of(table);
    if (statements->insert == nullptr) statements->insert = prepare_insert(table);
    write_fresh(table, statements->insert, false, "inserted");
}

void update_foreign(ApplyTransaction& xact, Table* table) {
    begin_writing(xact, table);
    ForeignStatements* statements = statements_of(table);
    if (statements->update == nullptr) statements->update = prepare_update(table);
    write_fresh(table, statements->update, true, "updated");
}

void delete_foreign(ApplyTransaction& xact, Table* table) {
    begin_writing(xact, table);
    ForeignStatements* statements = statements_of(table);
    if (statements->remove == nullptr) statements->remove = prepare_delete(table);
    Datum place = PointerGetDatum(&table->found->tts_tid);
    expect_one(table, execute(statements->remove, &place, nullptr), "deleted");
}

void close_foreign(Table* table) {
    ForeignStatements* statements = table->statements;
    if (statements == nullptr) return;
    for (SPIPlanPtr plan : {statements->insert, statements->update, statements->remove, statements->search})
        if (plan != nullptr) SPI_freeplan(plan);
}

}  // namespace onerepl::apply
