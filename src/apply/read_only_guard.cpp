// The read-only guard of B's tables (P8): a statement trigger that refuses every write but onerepl's.
#include "apply/read_only_guard.h"

#include "apply/rows/guard_triggers.h"
#include "pg/compat.h"
#include "pg/settings.h"
#include "pg/spi.h"

extern "C" {
#include "access/table.h"
#include "catalog/partition.h"
#include "catalog/pg_inherits.h"
#include "commands/extension.h"
#include "commands/trigger.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
}

namespace onerepl::apply {

namespace {

// How many WritingAllowed live. A plain flag: no role can reach it.
int writing_allowed = 0;

std::string quoted_name(Oid relation) {
    return pg::call([&] {
        return static_cast<const char*>(quote_qualified_identifier(
            get_namespace_name(get_rel_namespace(relation)), get_rel_name(relation)));
    });
}

bool has_trigger(Oid relation, const char* name) {
    return pg::call([&] {
        Relation table = table_open(relation, AccessShareLock);
        bool found = false;
        for (int i = 0; table->trigdesc != nullptr && i < table->trigdesc->numtriggers; i++) {
            const Trigger& trigger = table->trigdesc->triggers[i];
            found |= strcmp(trigger.tgname, name) == 0 && trigger.tgenabled == TRIGGER_FIRES_ALWAYS;
        }
        table_close(table, NoLock);
        return found;
    });
}

char kind_of(Oid relation) {
    return pg::call([&] { return get_rel_relkind(relation); });
}

bool has_guard(Oid relation) {
    return has_trigger(relation, guard_trigger) &&
           (kind_of(relation) != RELKIND_RELATION || has_trigger(relation, guard_row_trigger));
}

/// `relation`, its partitions at every level, and what it is a partition of.
std::vector<Oid> family_of(Oid relation) {
    std::vector<Oid> family;
    List* members = pg::call([&] {
        List* all = find_all_inheritors(relation, AccessShareLock, nullptr);
        if (get_rel_relispartition(relation)) all = list_concat(all, get_partition_ancestors(relation));
        return all;
    });
    ListCell* cell;
    foreach (cell, members) family.push_back(lfirst_oid(cell));
    return family;
}

std::string guarded_events(Oid relation) {
    const bool foreign = kind_of(relation) == RELKIND_FOREIGN_TABLE;
    return foreign && !compat::truncate_fires_on_foreign_tables ? "INSERT OR UPDATE OR DELETE"
                                                                : "INSERT OR UPDATE OR DELETE OR TRUNCATE";
}

void put_trigger(Oid relation, const char* name, const std::string& events, const char* level) {
    const std::string table = quoted_name(relation);
    const std::string trigger = std::string("\"") + name + "\"";
    pg::execute(("CREATE OR REPLACE TRIGGER " + trigger + " BEFORE " + events + " ON " + table +
                 " FOR EACH " + level + " EXECUTE FUNCTION onerepl.guard()")
                    .c_str());
    pg::execute(("ALTER TABLE " + table + " ENABLE ALWAYS TRIGGER " + trigger).c_str());
    // So that DROP EXTENSION takes the trigger along instead of stumbling over it.
    if (OidIsValid(pg::call([] { return get_extension_oid("onerepl", true); })))
        pg::execute(("ALTER TRIGGER " + trigger + " ON " + table + " DEPENDS ON EXTENSION onerepl").c_str());
}

void put_guard(Oid relation) {
    put_trigger(relation, guard_trigger, guarded_events(relation), "STATEMENT");
    if (kind_of(relation) == RELKIND_RELATION)
        put_trigger(relation, guard_row_trigger, "INSERT OR UPDATE OR DELETE", "ROW");
}

bool may_write(const TriggerData*) {
    return writing_allowed > 0 || settings::allow_writes;
}

/// What goes on through a row's trigger.
HeapTuple row_of(const TriggerData* data) {
    if (!TRIGGER_FIRED_FOR_ROW(data->tg_event)) return nullptr;
    return TRIGGER_FIRED_BY_UPDATE(data->tg_event) ? data->tg_newtuple : data->tg_trigtuple;
}

Datum guard(FunctionCallInfo fcinfo) {
    if (!CALLED_AS_TRIGGER(fcinfo)) throw pg::Error("39P01", "onerepl.guard() is a trigger function");
    const TriggerData* data = reinterpret_cast<TriggerData*>(fcinfo->context);
    if (may_write(data)) return PointerGetDatum(row_of(data));
    throw pg::Error("25006",
                    std::string("table \"") + RelationGetRelationName(data->tg_relation) +
                        "\" is written by onerepl only",
                    "Change the rows on the remote. A superuser who repairs a conflict can set "
                    "onerepl.allow_writes = on for the session.");
}

}  // namespace

WritingAllowed::WritingAllowed() {
    writing_allowed++;
}

WritingAllowed::~WritingAllowed() {
    writing_allowed--;
}

bool is_noted(Oid relation, int link) {
    return pg::query_int8("SELECT 1::int8 FROM onerepl.guarded WHERE relation = $1 AND link = $2",
                          {pg::Param::oid(relation), link})
        .has_value();
}

void lock_notes() {
    pg::execute("LOCK TABLE onerepl.guarded IN SHARE ROW EXCLUSIVE MODE");
}

bool ensure_guard(Oid relation, int link) {
    const std::vector<Oid> family = family_of(relation);
    // All before the first trigger: the event trigger that looks for new partitions comes by here, too.
    for (const Oid member : family)
        pg::execute("INSERT INTO onerepl.guarded (relation, link) VALUES ($1, $2) ON CONFLICT DO NOTHING",
                    {pg::Param::oid(member), pg::Param(link)});
    bool created = false;
    for (const Oid member : family) {
        if (has_guard(member)) continue;
        put_guard(member);
        created = true;
    }
    return created;
}

}  // namespace onerepl::apply

extern "C" {
PG_FUNCTION_INFO_V1(onerepl_guard);
PG_FUNCTION_INFO_V1(onerepl_ensure_guard);
PGDLLEXPORT Datum onerepl_guard(PG_FUNCTION_ARGS) {
    return onerepl::pg::entry([&] { return onerepl::apply::guard(fcinfo); });
}

PGDLLEXPORT Datum onerepl_ensure_guard(PG_FUNCTION_ARGS) {
    onerepl::pg::entry([&] {
        onerepl::pg::SpiConnection spi;
        onerepl::apply::ensure_guard(PG_GETARG_OID(0), PG_GETARG_INT32(1));
        spi.finish();
    });
    PG_RETURN_VOID();
}
}
