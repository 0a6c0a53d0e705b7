// The layout of a relation as it is now, from the catalogue.
#include "log/layout.h"

#include "pg/compat.h"
#include "pg/error_boundary.h"
#include "pg/partition_condition.h"

extern "C" {
#include "access/genam.h"
#include "access/htup_details.h"
#include "access/sysattr.h"
#include "access/transam.h"
#include "catalog/partition.h"
#include "catalog/pg_index.h"
#include "catalog/pg_type.h"
#include "commands/trigger.h"
#include "common/hashfn.h"
#include "nodes/bitmapset.h"
#include "nodes/readfuncs.h"
#include "utils/builtins.h"
#include "optimizer/optimizer.h"
#include "utils/lsyscache.h"
#include "utils/relcache.h"
#include "utils/syscache.h"
}

namespace onerepl::log {

namespace {

constexpr const char* capture_trigger = "!onerepl_capture";

/// What of pg_type decides about a value's way. Plain data.
struct TypeFacts {
    NameData name;
    Oid name_space;
    char kind;
    char category;
    Oid element;
    bool has_binary_form;
};

TypeFacts facts_of(Oid type) {
    HeapTuple tuple = SearchSysCache1(TYPEOID, ObjectIdGetDatum(type));
    if (!HeapTupleIsValid(tuple)) elog(ERROR, "cache lookup failed for type %u", type);
    const auto* form = reinterpret_cast<Form_pg_type>(GETSTRUCT(tuple));
    TypeFacts facts{};
    facts.name = form->typname;
    facts.name_space = form->typnamespace;
    facts.kind = form->typtype;
    facts.category = form->typcategory;
    facts.element = form->typelem;
    facts.has_binary_form = OidIsValid(form->typsend) && OidIsValid(form->typreceive);
    ReleaseSysCache(tuple);
    return facts;
}

/// Built-in types whose bytes mean the same for ever. reg* hold OIDs of objects that can be renamed or
/// dropped. The receive functions of the vectors refuse what their send functions make of an empty one, and
/// so does that of tsquery from 18.6 on; those of types for internal use (pg_ndistinct, pg_node_tree) refuse
/// everything. An array of xml would be sent with other declarations than it has.
bool has_fixed_meaning(Oid type) {
    if (type >= FirstGenbkiObjectId || type == INT2VECTOROID || type == OIDVECTOROID || type == TSQUERYOID)
        return false;
    const TypeFacts facts = facts_of(type);
    if (facts.kind != TYPTYPE_BASE && facts.kind != TYPTYPE_RANGE && facts.kind != TYPTYPE_MULTIRANGE)
        return false;
    if (!facts.has_binary_form || strncmp(NameStr(facts.name), "reg", 3) == 0) return false;
    if (facts.element == XMLOID || (facts.category == TYPCATEGORY_INTERNAL && type != CHAROID)) return false;
    return !OidIsValid(facts.element) || has_fixed_meaning(facts.element);
}

/// A LayoutColumn without its strings.
struct ColumnFacts {
    bool rendered;
    Oid type;
    int16 length;
    bool by_value;
    char align;
    char storage;
    int32 typmod;
    NameData type_name;
    NameData type_schema;
};

void name_type(ColumnFacts& column, Oid type) {
    const TypeFacts facts = facts_of(type);
    column.type_name = facts.name;
    const char* schema = get_namespace_name(facts.name_space);
    namestrcpy(&column.type_schema, schema ? schema : "");
}

ColumnFacts column_facts(Form_pg_attribute attribute) {
    ColumnFacts column{};
    column.type = attribute->atttypid;
    column.length = attribute->attlen;
    column.by_value = attribute->attbyval;
    column.align = attribute->attalign;
    column.storage = attribute->attstorage;
    column.typmod = attribute->atttypmod;
    if (attribute->attisdropped) return column;
    int32 base_typmod = attribute->atttypmod;
    const Oid base = getBaseTypeAndTypmod(attribute->atttypid, &base_typmod);
    column.rendered = !has_fixed_meaning(base);
    if (column.rendered) {
        name_type(column, attribute->atttypid);
        column.type = TEXTOID;
        column.length = -1;
        column.by_value = false;
        column.align = TYPALIGN_INT;
        column.storage = TYPSTORAGE_EXTENDED;
    } else {
        column.type = base;
        column.typmod = base_typmod;
        name_type(column, base);
    }
    return column;
}

Oid key_index(Relation relation) {
    const Oid primary = compat::primary_key_index(relation);
    return OidIsValid(primary) ? primary : RelationGetReplicaIndex(relation);
}

/// What the indexes say. Plain data in CurrentMemoryContext.
struct IndexFacts {
    Bitmapset* unique_columns;  // attribute numbers, offset as pull_varattnos does; 0: the whole row
    List* sets;                 // integer lists of attribute numbers, the key's first
    bool has_key;
};

/// As it was stored: RelationGetIndexExpressions would simplify it, and so call functions of the table's
/// owner, with whatever rights we have (P19). Null: the index has none.
Node* stored_expression(Relation index, AttrNumber column) {
    bool is_null;
    const Datum stored = SysCacheGetAttr(INDEXRELID, index->rd_indextuple, column, &is_null);
    return is_null ? nullptr : static_cast<Node*>(stringToNode(TextDatumGetCString(stored)));
}

void read_index(Oid index, bool is_key, IndexFacts& facts) {
    Relation opened = index_open(index, AccessShareLock);
    const Form_pg_index form = opened->rd_index;
    if ((form->indisunique || form->indisexclusion) && form->indisready) {
        List* set = NIL;
        bool plain = form->indisunique;
        for (int i = 0; i < form->indnkeyatts; i++) {
            const AttrNumber number = form->indkey.values[i];
            if (number > 0) {
                set = lappend_int(set, number);
                facts.unique_columns =
                    bms_add_member(facts.unique_columns, number - FirstLowInvalidHeapAttributeNumber);
            } else {
                plain = false;
            }
        }
        pull_varattnos(stored_expression(opened, Anum_pg_index_indexprs), 1, &facts.unique_columns);
        pull_varattnos(stored_expression(opened, Anum_pg_index_indpred), 1, &facts.unique_columns);
        if (is_key)
            facts.sets = lcons(set, facts.sets);
        else if (plain)
            facts.sets = lappend(facts.sets, set);
        facts.has_key |= is_key;
    }
    index_close(opened, AccessShareLock);
}

IndexFacts index_facts(Relation relation) {
    IndexFacts facts{};
    List* indexes = RelationGetIndexList(relation);
    const Oid key = key_index(relation);
    ListCell* cell;
    foreach (cell, indexes) read_index(lfirst_oid(cell), lfirst_oid(cell) == key, facts);
    return facts;
}

/// All that the catalogue says, in plain data.
struct RelationFacts {
    int natts;
    ColumnFacts* columns;
    IndexFacts indexes;
    const char* schema;
    uint64 rules;
    Oid root;  // InvalidOid: the rest is null
    const char* root_schema;
    const char* root_table;
    const char* partition_condition;
};

/// The table that the relation is tracked with: of what it is a partition of, the one with our trigger that
/// is farthest up.
Oid tracked_root(Relation relation) {
    Oid root = InvalidOid;
    if (!relation->rd_rel->relispartition) return root;
    ListCell* cell;
    foreach (cell, get_partition_ancestors(RelationGetRelid(relation)))
        if (OidIsValid(get_trigger_oid(lfirst_oid(cell), capture_trigger, true))) root = lfirst_oid(cell);
    return root;
}

void read_partition(Relation relation, RelationFacts& facts) {
    facts.root = tracked_root(relation);
    if (!OidIsValid(facts.root)) return;
    facts.root_table = get_rel_name(facts.root);
    facts.root_schema = get_namespace_name(get_rel_namespace(facts.root));
    facts.partition_condition = pg::partition_condition(RelationGetRelid(relation));
}

void mix(uint64& hash, const char* text) {
    hash = hash_bytes_extended(reinterpret_cast<const unsigned char*>(text),
                               static_cast<int>(strlen(text)) + 1, hash);
}

/// A hash of what the table demands of its rows and gives them by itself, as it is stored.
uint64 rules_of(TupleDesc descriptor) {
    uint64 hash = 0;
    for (int i = 0; i < descriptor->natts; i++)
        if (TupleDescAttr(descriptor, i)->attnotnull) mix(hash, psprintf("%d", i));
    const TupleConstr* const rules = descriptor->constr;
    if (rules == nullptr) return hash;
    for (int i = 0; i < rules->num_defval; i++) {
        mix(hash, psprintf("%d", rules->defval[i].adnum));
        mix(hash, rules->defval[i].adbin);
    }
    for (int i = 0; i < rules->num_check; i++) {
        mix(hash, psprintf("%d", rules->check[i].ccvalid));
        mix(hash, rules->check[i].ccname);
        mix(hash, rules->check[i].ccbin);
    }
    return hash;
}

RelationFacts relation_facts(Relation relation) {
    TupleDesc descriptor = RelationGetDescr(relation);
    RelationFacts facts{};
    facts.natts = descriptor->natts;
    facts.columns =
        static_cast<ColumnFacts*>(palloc0(sizeof(ColumnFacts) * static_cast<Size>(facts.natts + 1)));
    for (int i = 0; i < facts.natts; i++) facts.columns[i] = column_facts(TupleDescAttr(descriptor, i));
    facts.indexes = index_facts(relation);
    const char* schema = get_namespace_name(RelationGetNamespace(relation));
    facts.schema = schema ? schema : "";
    facts.rules = rules_of(descriptor);
    read_partition(relation, facts);
    return facts;
}

bool is_among(const Bitmapset* numbers, AttrNumber number) {
    return bms_is_member(number - FirstLowInvalidHeapAttributeNumber, numbers);
}

LayoutColumn make_column(Form_pg_attribute attribute, const ColumnFacts& facts, const IndexFacts& indexes) {
    LayoutColumn column;
    column.number = attribute->attnum;
    column.name = NameStr(attribute->attname);
    column.dropped = attribute->attisdropped;
    column.generated = attribute->attgenerated != '\0';
    column.rendered = facts.rendered;
    column.unique = is_among(indexes.unique_columns, attribute->attnum) ||
                    (is_among(indexes.unique_columns, InvalidAttrNumber) && !attribute->attisdropped);
    column.type = facts.type;
    column.length = facts.length;
    column.by_value = facts.by_value;
    column.align = facts.align;
    column.storage = facts.storage;
    column.typmod = facts.typmod;
    column.type_schema = NameStr(facts.type_schema);
    column.type_name = NameStr(facts.type_name);
    return column;
}

void add_sets(const IndexFacts& indexes, Layout& layout) {
    ListCell* cell;
    foreach (cell, indexes.sets) {
        std::vector<std::uint16_t>& set = layout.unique_sets.emplace_back();
        ListCell* member;
        foreach (member, static_cast<List*>(lfirst(cell)))
            set.push_back(static_cast<std::uint16_t>(lfirst_int(member) - 1));
    }
    if (!indexes.has_key) return;
    std::uint16_t position = 0;
    for (std::uint16_t column : layout.unique_sets.front()) layout.columns[column].key_position = ++position;
}

}  // namespace

Layout layout_of(Relation relation) {
    const RelationFacts facts = pg::call([&] { return relation_facts(relation); });
    Layout layout;
    layout.relation = RelationGetRelid(relation);
    layout.schema = facts.schema;
    layout.table = RelationGetRelationName(relation);
    TupleDesc descriptor = RelationGetDescr(relation);
    for (int i = 0; i < facts.natts; i++)
        layout.columns.push_back(make_column(TupleDescAttr(descriptor, i), facts.columns[i], facts.indexes));
    add_sets(facts.indexes, layout);
    layout.rules = facts.rules;
    if (OidIsValid(facts.root)) {
        layout.root = facts.root;
        layout.root_schema = facts.root_schema ? facts.root_schema : "";
        layout.root_table = facts.root_table ? facts.root_table : "";
        layout.partition_condition = facts.partition_condition;
    }
    return layout;
}

}  // namespace onerepl::log
