// The positions that other servers keep, and which partitions are there.
#include "apply/rows/foreign.h"

#include "pg/error_boundary.h"

extern "C" {
#include "access/relation.h"
#include "catalog/namespace.h"
#include "catalog/partition.h"
#include "catalog/pg_foreign_table.h"
#include "catalog/pg_inherits.h"
#include "catalog/pg_type.h"
#include "commands/defrem.h"
#include "executor/spi.h"
#include "foreign/foreign.h"
#include "utils/builtins.h"
#include "utils/datum.h"
#include "utils/guc.h"
#include "utils/inval.h"
#include "utils/lsyscache.h"
#include "utils/uuid.h"
}

namespace onerepl::apply {

namespace {

constexpr const char* positions_schema = "onerepl_foreign";

constexpr const char* make_positions_there =
    "On that server: CREATE SCHEMA onerepl_foreign; CREATE TABLE onerepl_foreign.position (link uuid, server "
    "text, relation oid, written int8 NOT NULL, PRIMARY KEY (link, server, relation)); and GRANT its user "
    "USAGE on the schema, SELECT, INSERT, UPDATE on the table. Then retry.";

// ---------------------------------------------------------------- which tables have foreign partitions

struct Known {
    Oid relation;
    bool has_foreign;
};

HTAB* known = nullptr;  // emptied by any change of a table's definition
bool known_is_stale = true;

void forget_known(Datum, Oid) {
    known_is_stale = true;
}

void refresh_known() {
    if (!known_is_stale) return;
    static bool registered = false;
    if (!registered) CacheRegisterRelcacheCallback(forget_known, 0);
    registered = true;
    if (known != nullptr) hash_destroy(known);
    known = nullptr;
    HASHCTL control;
    memset(&control, 0, sizeof control);
    control.keysize = sizeof(Oid);
    control.entrysize = sizeof(Known);
    known = hash_create("onerepl foreign partitions", 64, &control, HASH_ELEM | HASH_BLOBS);
    known_is_stale = false;
}

bool find_foreign_partitions(Oid relation) {
    ListCell* cell;
    foreach (cell, find_all_inheritors(relation, AccessShareLock, nullptr))
        if (get_rel_relkind(lfirst_oid(cell)) == RELKIND_FOREIGN_TABLE) return true;
    return false;
}

// ---------------------------------------------------------------- SQL

/// Runs a statement in the memory context that we are in; gives the number of its rows.
uint64 run_sql(const char* sql, int count, Oid* types, Datum* values) {
    MemoryContext before = CurrentMemoryContext;
    const int result = SPI_execute_with_args(sql, count, types, values, nullptr, false, 0);
    MemoryContextSwitchTo(before);
    if (result < 0) elog(ERROR, "could not execute \"%s\": %s", sql, SPI_result_code_string(result));
    return SPI_processed;
}

/// A number of the first row of the latest result; 0 if it is null.
Number number_of_result(int column) {
    bool is_null;
    const Datum value = SPI_getbinval(SPI_tuptable->vals[0], SPI_tuptable->tupdesc, column, &is_null);
    return is_null ? 0 : static_cast<Number>(DatumGetInt64(value));
}

pg::Rights become_user_of(const ForeignPlace* place) {
    return pg::become(place->user);
}

// ---------------------------------------------------------------- the foreign table of positions

/// Our foreign table that shows the server's positions; InvalidOid: there is none.
Oid find_positions(Oid server) {
    const Oid schema = get_namespace_oid(positions_schema, true);
    if (!OidIsValid(schema)) return InvalidOid;
    Oid types[] = {OIDOID, OIDOID};
    Datum values[] = {ObjectIdGetDatum(server), ObjectIdGetDatum(schema)};
    const uint64 count = run_sql(
        "SELECT c.oid, o.rolsuper FROM pg_foreign_table AS f JOIN pg_class AS c ON c.oid = f.ftrelid"
        " JOIN pg_authid AS o ON o.oid = c.relowner WHERE f.ftserver = $1 AND c.relnamespace = $2",
        2, types, values);
    if (count == 0) return InvalidOid;
    bool is_null;
    HeapTuple row = SPI_tuptable->vals[0];
    const Oid found = DatumGetObjectId(SPI_getbinval(row, SPI_tuptable->tupdesc, 1, &is_null));
    if (!DatumGetBool(SPI_getbinval(row, SPI_tuptable->tupdesc, 2, &is_null)))
        ereport(ERROR, (errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
                        errmsg("foreign table \"%s.%s\" is not a superuser's", positions_schema,
                               get_rel_name(found))));
    return found;
}

/// What others have made under our schema's name we do not trust.
void make_schema() {
    const Oid schema = get_namespace_oid(positions_schema, true);
    if (!OidIsValid(schema)) run_sql("CREATE SCHEMA onerepl_foreign", 0, nullptr, nullptr);
}

Oid make_positions(Oid server) {
    // Two receivers may come here at the same time.
    run_sql("SELECT pg_advisory_xact_lock('onerepl.foreign_position'::regclass::oid::int8)", 0, nullptr,
            nullptr);
    Oid positions = find_positions(server);
    if (OidIsValid(positions)) return positions;
    make_schema();
    const char* name = quote_identifier(GetForeignServer(server)->servername);
    run_sql(psprintf("CREATE FOREIGN TABLE onerepl_foreign.%s (link uuid NOT NULL, server text NOT NULL, "
                     "relation oid NOT NULL, written int8 NOT NULL) SERVER %s OPTIONS (schema_name "
                     "'onerepl_foreign', table_name 'position')",
                     name, name),
            0, nullptr, nullptr);
    return find_positions(server);
}

/// The owner of the rows moves the position, since it must be in the transaction of the rows.
void grant_positions(const ForeignPlace* place) {
    Oid types[] = {OIDOID, OIDOID};
    Datum values[] = {ObjectIdGetDatum(place->user), ObjectIdGetDatum(place->positions)};
    const uint64 count = run_sql(
        "SELECT WHERE has_schema_privilege($1, 'onerepl_foreign', 'USAGE') AND has_table_privilege($1, $2, "
        "'SELECT') AND has_table_privilege($1, $2, 'INSERT') AND has_table_privilege($1, $2, 'UPDATE')",
        2, types, values);
    if (count > 0) return;
    const char* user = quote_identifier(GetUserNameFromId(place->user, false));
    run_sql(psprintf("GRANT USAGE ON SCHEMA onerepl_foreign TO %s", user), 0, nullptr, nullptr);
    run_sql(psprintf("GRANT SELECT, INSERT, UPDATE ON onerepl_foreign.%s TO %s",
                     quote_identifier(get_rel_name(place->positions)), user),
            0, nullptr, nullptr);
}

// ---------------------------------------------------------------- a server's position

/// Says what has to be made on the other server, if it is missing there.
void add_hint(void*) {
    if (geterrcode() == ERRCODE_UNDEFINED_TABLE || geterrcode() == ERRCODE_UNDEFINED_SCHEMA ||
        geterrcode() == ERRCODE_INSUFFICIENT_PRIVILEGE)
        errhint("%s", make_positions_there);
}

/// By name: pg_upgrade gives servers other OIDs.
Datum name_of_server(const ForeignPlace* place) {
    return CStringGetTextDatum(GetForeignServer(place->server)->servername);
}

/// A statement about the place's row of positions: the first three parameters say which it is.
uint64 run_on_position(ForeignPlace* place, Datum link, const char* format, Number number) {
    const pg::Rights before = become_user_of(place);
    ErrorContextCallback context;
    context.callback = add_hint;
    context.arg = nullptr;
    context.previous = error_context_stack;
    error_context_stack = &context;
    Oid types[] = {UUIDOID, TEXTOID, OIDOID, INT8OID};
    Datum values[] = {link, name_of_server(place), ObjectIdGetDatum(place->table),
                      Int64GetDatum(static_cast<int64>(number))};
    const uint64 count =
        run_sql(psprintf(format, quote_identifier(get_rel_name(place->positions))), 4, types, values);
    error_context_stack = context.previous;
    pg::return_from(before);
    return count;
}

/// The lock is what keeps a transaction of an earlier worker, whose COMMIT is still on its way to the server,
/// from coming after our look.
void lock_position(ForeignPlace* place, Datum link) {
    const uint64 count = run_on_position(
        place, link,
        "SELECT written FROM onerepl_foreign.%s WHERE link = $1 AND server = $2 AND relation = $3 FOR "
        "UPDATE",
        0);
    if (count > 0) {
        place->held = number_of_result(1);
        return;
    }
    if (run_on_position(place, link,
                        "INSERT INTO onerepl_foreign.%s (link, server, relation, written) VALUES ($1, $2, "
                        "$3, $4) ON CONFLICT DO NOTHING",
                        0) == 0)
        ereport(ERROR, (errcode(ERRCODE_T_R_SERIALIZATION_FAILURE),
                        errmsg("the position on foreign server \"%s\" is being made by another transaction",
                               GetForeignServer(place->server)->servername)));
    place->held = 0;
}

/// What identifies this start of the link, and what we know of the server's position.
Datum link_and_known(const ApplyTransaction& xact, const ForeignPlace* place, Number* known_position) {
    Oid types[] = {INT4OID, TEXTOID, OIDOID};
    Datum values[] = {Int32GetDatum(xact.link), name_of_server(place), ObjectIdGetDatum(place->table)};
    if (run_sql("SELECT l.challenge, f.written FROM onerepl.link AS l LEFT JOIN onerepl.foreign_position AS "
                "f ON f.link = l.id AND f.server = $2 AND f.relation = $3 WHERE l.id = $1",
                3, types, values) == 0)
        elog(ERROR, "link %d is gone", xact.link);
    bool is_null;
    const Datum link = SPI_getbinval(SPI_tuptable->vals[0], SPI_tuptable->tupdesc, 1, &is_null);
    MemoryContext before = MemoryContextSwitchTo(xact.memory);
    const Datum copy = datumCopy(link, false, UUID_LEN);
    MemoryContextSwitchTo(before);
    *known_position = number_of_result(2);
    return copy;
}

/// P9 for the server: it may have been restored from a backup.
void check_position(const ForeignPlace* place, Number known_position) {
    if (place->held >= known_position) return;
    const char* server = GetForeignServer(place->server)->servername;
    ereport(
        ERROR,
        (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
         errmsg("foreign server \"%s\" has lost changes of table \"%s\" that it had committed", server,
                get_rel_name(place->table)),
         errdetail("It has the records up to number %llu, and had those up to %llu.",
                   static_cast<unsigned long long>(place->held),
                   static_cast<unsigned long long>(known_position)),
         errhint("Start the link anew with a refresh (onerepl_restart_link); or, if you bring the rows there "
                 "by other means, delete the server's row of onerepl.foreign_position and retry.")));
}

ForeignPlace* open_place(ApplyTransaction& xact, Oid server, Oid table, Oid user) {
    MemoryContext before = MemoryContextSwitchTo(xact.memory);
    ForeignPlace* place = static_cast<ForeignPlace*>(palloc0(sizeof(ForeignPlace)));
    place->server = server;
    place->table = table;
    place->user = user;
    const pg::Rights caller = pg::become(xact.user, 0, false);
    Number known_position;
    const Datum link = link_and_known(xact, place, &known_position);
    place->positions = find_positions(server);
    if (!OidIsValid(place->positions)) place->positions = make_positions(server);
    grant_positions(place);
    lock_position(place, link);
    check_position(place, known_position);
    pg::return_from(caller);
    MemoryContextSwitchTo(before);
    place->next = xact.places;
    xact.places = place;
    return place;
}

Oid topmost_of(Oid partition) {
    List* ancestors = get_partition_ancestors(partition);
    return ancestors == NIL ? partition : llast_oid(ancestors);
}

const ForeignDataWrapper* wrapper_of(Oid relation) {
    return GetForeignDataWrapper(GetForeignServer(GetForeignTable(relation)->serverid)->fdwid);
}

/// Whether a statement has to go there; if so, it counts as written.
bool takes_statement(ApplyTransaction& xact, Oid part, Oid owner) {
    if (get_rel_relkind(part) != RELKIND_FOREIGN_TABLE) return true;
    Relation partition = relation_open(part, RowExclusiveLock);
    check_foreign_partition(partition, owner);
    relation_close(partition, NoLock);
    ForeignPlace* place = place_of(xact, part);
    if (has_record(xact, place)) return false;
    place->written = xact.n;
    return true;
}

}  // namespace

bool has_foreign_partitions(Oid relation) {
    constexpr int tries = 3;  // others may change the catalog all the time
    bool has_foreign = false;
    for (int i = 0; i < tries; i++) {
        refresh_known();
        bool found;
        const Known* const entry =
            static_cast<const Known*>(hash_search(known, &relation, HASH_FIND, &found));
        if (found) return entry->has_foreign;
        has_foreign = find_foreign_partitions(relation);
        // What came meanwhile may be news of this very table: such an answer is not kept (P21).
        if (known_is_stale) continue;
        static_cast<Known*>(hash_search(known, &relation, HASH_ENTER, &found))->has_foreign = has_foreign;
        break;
    }
    return has_foreign;
}

bool is_of_postgres(Oid relation) {
    const Oid handler = wrapper_of(relation)->fdwhandler;
    const char* name = OidIsValid(handler) ? get_func_name(handler) : nullptr;
    return name != nullptr && strcmp(name, "postgres_fdw_handler") == 0;
}

void check_foreign_partition(Relation partition, Oid owner) {
    if (!is_of_postgres(RelationGetRelid(partition)))
        ereport(ERROR,
                (errcode(ERRCODE_WRONG_OBJECT_TYPE),
                 errmsg("cannot write to \"%s\": it is a foreign table of \"%s\"",
                        RelationGetRelationName(partition), wrapper_of(RelationGetRelid(partition))->fdwname),
                 errdetail("Only foreign tables of postgres_fdw are written."), errtable(partition)));
    if (partition->rd_rel->relowner != owner)
        ereport(ERROR,
                (errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
                 errmsg("foreign partition \"%s\" has another owner than the table that it is a part of",
                        RelationGetRelationName(partition)),
                 errhint("Give it the same owner, for whose user mapping its rows are written."),
                 errtable(partition)));
}

ForeignPlace* place_of(ApplyTransaction& xact, Oid partition) {
    const Oid server = GetForeignTable(partition)->serverid;
    const Oid table = topmost_of(partition);
    for (ForeignPlace* place = xact.places; place != nullptr; place = place->next)
        if (place->server == server && place->table == table) return place;
    return open_place(xact, server, table, pg::owner_of(partition));
}

bool is_left_out(ApplyTransaction& xact, Table* partition) {
    if (!partition->is_foreign) return false;
    if (partition->place == nullptr) partition->place = place_of(xact, partition->oid);
    return has_record(xact, partition->place);
}

List* parts_to_write(ApplyTransaction& xact, Oid relation) {
    const bool is_part = get_rel_relkind(relation) == RELKIND_FOREIGN_TABLE;
    if (!is_part && !has_foreign_partitions(relation)) return list_make1_oid(relation);
    const Oid owner = pg::owner_of(relation);
    List* parts = NIL;
    ListCell* cell;
    foreach (cell, find_all_inheritors(relation, RowExclusiveLock, nullptr)) {
        const Oid part = lfirst_oid(cell);
        if (get_rel_relkind(part) == RELKIND_PARTITIONED_TABLE) continue;
        if (takes_statement(xact, part, owner)) parts = lappend_oid(parts, part);
    }
    return parts;
}

void move_positions(ApplyTransaction& xact) {
    for (ForeignPlace* place = xact.places; place != nullptr; place = place->next) {
        if (place->written <= place->held) continue;
        const pg::Rights caller = pg::become(xact.user, 0, false);
        Number before;
        const Datum link = link_and_known(xact, place, &before);
        if (run_on_position(place, link,
                            "UPDATE onerepl_foreign.%s SET written = $4 WHERE link = $1 AND server = $2 AND "
                            "relation = $3",
                            place->written) != 1)
            elog(ERROR, "the position on foreign server %u is gone", place->server);
        Oid types[] = {INT4OID, TEXTOID, OIDOID, INT8OID};
        Datum values[] = {Int32GetDatum(xact.link), name_of_server(place), ObjectIdGetDatum(place->table),
                          Int64GetDatum(static_cast<int64>(place->written))};
        run_sql(
            "INSERT INTO onerepl.foreign_position AS p (link, server, relation, written) VALUES ($1, $2, "
            "$3, $4) ON CONFLICT (link, server, relation) DO UPDATE SET written = excluded.written",
            4, types, values);
        pg::return_from(caller);
    }
}

}  // namespace onerepl::apply
