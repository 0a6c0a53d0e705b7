// Matching a description to B's table, by names.
#include "apply/rows/map_columns.h"

#include "apply/rows/apply_transaction.h"
#include "apply/rows/relation_map.h"

extern "C" {
#include "access/htup_details.h"
#include "access/table.h"
#include "catalog/namespace.h"
#include "catalog/pg_type.h"
#include "mb/pg_wchar.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"
}

namespace onerepl::apply {

namespace {

Oid find_type(const ColumnDescription& column) {
    const Oid schema = get_namespace_oid(column.type_schema.c_str(), true);
    if (!OidIsValid(schema)) return InvalidOid;
    return GetSysCacheOid2(TYPENAMENSP, Anum_pg_type_oid, CStringGetDatum(column.type_name.c_str()),
                           ObjectIdGetDatum(schema));
}

Form_pg_attribute find_attribute(TupleDesc description, const char* name) {
    for (int i = 0; i < description->natts; i++) {
        const Form_pg_attribute attribute = TupleDescAttr(description, i);
        if (!attribute->attisdropped && strcmp(NameStr(attribute->attname), name) == 0) return attribute;
    }
    return nullptr;
}

void plan_input(ColumnPlan& plan, Oid type, MemoryContext memory) {
    Oid function;
    getTypeInputInfo(type, &function, &plan.input_parameter);
    fmgr_info_cxt(function, &plan.input, memory);
}

void plan_receive(ColumnPlan& plan, Oid type, std::int32_t typmod, MemoryContext memory) {
    Oid function;
    getTypeBinaryInputInfo(type, &function, &plan.receive_parameter);
    fmgr_info_cxt(function, &plan.receive, memory);
    plan.receive_typmod = typmod;
}

bool has_binary_input(Oid type) {
    HeapTuple tuple = SearchSysCache1(TYPEOID, ObjectIdGetDatum(type));
    if (!HeapTupleIsValid(tuple)) return false;
    const bool has = OidIsValid(reinterpret_cast<Form_pg_type>(GETSTRUCT(tuple))->typreceive);
    ReleaseSysCache(tuple);
    return has;
}

void plan_values(ColumnPlan& plan, const ColumnDescription& column, Form_pg_attribute attribute,
                 MemoryContext memory) {
    const Oid described = find_type(column);
    const Oid type = attribute->atttypid;
    plan.typmod = attribute->atttypmod;
    plan.is_domain = get_typtype(type) == TYPTYPE_DOMAIN;
    plan.described_type = column.type_name.c_str();
    plan_input(plan, type, memory);
    // Values of types that have no binary form, or that B lacks, travel as text.
    plan.unknown_type = !OidIsValid(described) || !has_binary_input(described);
    if (plan.unknown_type) return;
    if (described == type || described == getBaseType(type))
        return plan_receive(plan, type, plan.typmod, memory);
    plan.by_text = true;
    plan_receive(plan, described, column.typmod, memory);
    Oid function;
    bool is_varlena;
    getTypeOutputInfo(described, &function, &is_varlena);
    fmgr_info_cxt(function, &plan.output, memory);
}

[[noreturn]] void report_missing_column(Relation relation, const ColumnDescription& column) {
    ereport(ERROR, (errcode(ERRCODE_UNDEFINED_COLUMN),
                    errmsg("column \"%s\" of relation \"%s\" does not exist", column.name.c_str(),
                           RelationGetRelationName(relation)),
                    errdetail("The remote's table has a column \"%s\" of type %s.%s.", column.name.c_str(),
                              column.type_schema.c_str(), column.type_name.c_str()),
                    errhint("Add the column, then retry."),
                    err_generic_string(PG_DIAG_COLUMN_NAME, column.name.c_str()), errtable(relation)));
    pg_unreachable();
}

void plan_column(ColumnPlan& plan, const ColumnDescription& column, Relation relation, MemoryContext memory) {
    plan.name = column.name.c_str();
    const Form_pg_attribute attribute = find_attribute(RelationGetDescr(relation), plan.name);
    if (attribute == nullptr) {
        if (!column.generated) report_missing_column(relation, column);
        plan.ignored = true;
        return;
    }
    plan.attribute = attribute->attnum;
    plan.ignored = column.generated || attribute->attgenerated != '\0';
    if (column.generated && attribute->attgenerated == '\0')
        ereport(ERROR, (errcode(ERRCODE_DATATYPE_MISMATCH),
                        errmsg("column \"%s\" of relation \"%s\" is a generated column on the remote only",
                               plan.name, RelationGetRelationName(relation)),
                        errhint("Make it a generated column here too, or drop it here."),
                        errtablecol(relation, attribute->attnum)));
    plan_values(plan, column, attribute, memory);  // also when ignored: a key may hold it
}

bool is_brought(const RelationMap& target, AttrNumber attribute) {
    for (int i = 0; i < target.column_count; i++)
        if (target.columns[i].attribute == attribute) return true;
    return false;
}

void plan_missing(RelationMap& target, TupleDesc description) {
    target.missing = static_cast<AttrNumber*>(palloc(sizeof(AttrNumber) * (description->natts + 1)));
    for (int i = 0; i < description->natts; i++) {
        const Form_pg_attribute attribute = TupleDescAttr(description, i);
        if (attribute->attisdropped || attribute->attgenerated != '\0') continue;
        if (!is_brought(target, attribute->attnum))
            target.missing[target.missing_count++] = attribute->attnum;
    }
}

void add_key_column(RelationMap& target, int place) {
    target.key_places[target.key_count] = place;
    target.key_attributes[target.key_count] = target.columns[place].attribute;
    target.key_count++;
}

/// The columns that rows are found by. Without a key these are all that travel, which generated ones do not.
void plan_key(RelationMap& target) {
    target.key_places = static_cast<int*>(palloc(sizeof(int) * (target.column_count + 1)));
    target.key_attributes = static_cast<AttrNumber*>(palloc(sizeof(AttrNumber) * (target.column_count + 1)));
    for (const std::size_t place : target.key) add_key_column(target, static_cast<int>(place));
    if (target.has_key()) return;
    for (int i = 0; i < target.column_count; i++)
        if (!target.columns[i].ignored) add_key_column(target, i);
}

RangeVar* range_var(const RelationMap& target) {
    return makeRangeVar(pstrdup(target.schema.c_str()), pstrdup(target.name.c_str()), -1);
}

[[noreturn]] void report_missing_table(const RelationMap& target) {
    const char* name = quote_qualified_identifier(target.schema.c_str(), target.name.c_str());
    ereport(ERROR, (errcode(ERRCODE_UNDEFINED_TABLE), errmsg("relation %s does not exist", name),
                    errdetail("The rows of the remote's table %s go there.",
                              quote_qualified_identifier(target.description.schema.c_str(),
                                                         target.description.name.c_str())),
                    errhint("Create the table, then retry."),
                    err_generic_string(PG_DIAG_SCHEMA_NAME, target.schema.c_str()),
                    err_generic_string(PG_DIAG_TABLE_NAME, target.name.c_str())));
    pg_unreachable();
}

}  // namespace

Oid find_relation(const RelationMap& target, LOCKMODE lock) {
    return RangeVarGetRelid(range_var(target), lock, true);
}

void map_columns(RelationMap& target) {
    if (target.memory != nullptr)
        MemoryContextReset(target.memory);
    else
        target.memory = AllocSetContextCreate(TopMemoryContext, "onerepl target", ALLOCSET_SMALL_SIZES);
    MemoryContext before = MemoryContextSwitchTo(target.memory);
    target.key_count = target.missing_count = 0;
    target.matched = false;
    target.table = nullptr;
    target.generation = 0;
    target.relation = find_relation(target, RowExclusiveLock);
    if (!OidIsValid(target.relation)) report_missing_table(target);
    if (target.relation != target.reached)
        ereport(ERROR, (errcode(ERRCODE_T_R_SERIALIZATION_FAILURE),
                        errmsg("another table was given the name \"%s\" meanwhile", target.name.c_str())));
    target.holds = true;
    Relation relation = table_open(target.relation, NoLock);
    check_is_table(relation);
    target.columns_of_table = RelationGetNumberOfAttributes(relation);
    target.column_count = static_cast<int>(target.description.columns.size());
    target.columns = static_cast<ColumnPlan*>(palloc0(sizeof(ColumnPlan) * (target.column_count + 1)));
    for (int i = 0; i < target.column_count; i++)
        plan_column(target.columns[i], target.description.columns[i], relation, target.memory);
    plan_missing(target, RelationGetDescr(relation));
    plan_key(target);
    table_close(relation, NoLock);
    MemoryContextSwitchTo(before);
    target.matched = target.holds;
}

}  // namespace onerepl::apply
