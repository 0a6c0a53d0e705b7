// Which types' text depends on settings, and xml inside other values. Values around xml are taken apart down
// to the xml, and put together by the output functions of the same kind of value made of texts, which quote
// them.
#include "capture/render.h"

extern "C" {
#include "access/htup_details.h"
#include "access/tupdesc.h"
#include "catalog/pg_type.h"
#include "funcapi.h"
#include "lib/stringinfo.h"
#include "miscadmin.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/multirangetypes.h"
#include "utils/rangetypes.h"
#include "utils/typcache.h"
}

#include <cstdint>

namespace onerepl::capture {

namespace {

/// Whether the text that a type's output function gives may depend on settings.
bool depends_on_settings(Oid type) {
    Oid output;
    bool is_varlena;
    getTypeOutputInfo(type, &output, &is_varlena);
    switch (output) {
        case F_TEXTOUT:
        case F_VARCHAROUT:
        case F_BPCHAROUT:
        case F_NAMEOUT:
        case F_ENUM_OUT:
            return false;
        case F_ARRAY_OUT: {
            const Oid element = get_element_type(getBaseType(type));
            return !OidIsValid(element) || depends_on_settings(element);
        }
        default:
            return true;
    }
}

/// What the values of a type are made of. A domain's are what those of its base type are.
enum class Kind : std::uint8_t { other, xml, array, composite, range, multirange };
struct Parts {
    Oid type;  // a domain's base type
    Kind kind;
    Oid part;  // of an array, range or multirange: of its elements, bounds, ranges
};

Parts parts_of(Oid type) {
    const Oid base = getBaseType(type);
    if (base == XMLOID) return {base, Kind::xml, InvalidOid};
    if (const Oid element = get_element_type(base)) return {base, Kind::array, element};
    switch (get_typtype(base)) {
        case TYPTYPE_COMPOSITE:
            return {base, Kind::composite, InvalidOid};
        case TYPTYPE_RANGE:
            return {base, Kind::range, get_range_subtype(base)};
        case TYPTYPE_MULTIRANGE:
            return {base, Kind::multirange, get_multirange_range(base)};
        default:
            return {base, Kind::other, InvalidOid};
    }
}

/// `composite`: whether a composite type does.
template <class Composite>
bool holds_xml(Oid type, Composite composite) {
    check_stack_depth();
    const Parts parts = parts_of(type);
    switch (parts.kind) {
        case Kind::other:
            return false;
        case Kind::xml:
            return true;
        case Kind::composite:
            return composite(parts.type);
        default:
            return holds_xml(parts.part, composite);
    }
}

bool may_hold_xml(Oid type) {
    return holds_xml(type, [](Oid) { return true; });
}

bool composite_holds_xml(Oid type) {
    bool holds = false;
    TupleDesc attributes = lookup_rowtype_tupdesc(type, -1);
    for (int i = 0; i < attributes->natts && !holds; i++) {
        const Form_pg_attribute attribute = TupleDescAttr(attributes, i);
        holds = !attribute->attisdropped && holds_xml(attribute->atttypid, composite_holds_xml);
    }
    ReleaseTupleDesc(attributes);
    return holds;
}

char* exact_text(Oid type, Datum value);

char* text_of_array(Oid element, Datum value) {
    ArrayType* array = DatumGetArrayTypeP(value);
    int16 length;
    bool by_value;
    char align;
    Datum* elements;
    bool* nulls;
    int count;
    get_typlenbyvalalign(element, &length, &by_value, &align);
    deconstruct_array(array, element, length, by_value, align, &elements, &nulls, &count);
    for (int i = 0; i < count; i++)
        if (!nulls[i]) elements[i] = CStringGetTextDatum(exact_text(element, elements[i]));
    ArrayType* texts = construct_md_array(elements, nulls, ARR_NDIM(array), ARR_DIMS(array),
                                          ARR_LBOUND(array), TEXTOID, -1, false, TYPALIGN_INT);
    return OidOutputFunctionCall(F_ARRAY_OUT, PointerGetDatum(texts));
}

/// A row of `count` texts.
TupleDesc columns_of_text(int count) {
    TupleDesc columns = CreateTemplateTupleDesc(count);
    for (int i = 1; i <= count; i++)
        TupleDescInitEntry(columns, static_cast<AttrNumber>(i), "t", TEXTOID, -1, 0);
    return BlessTupleDesc(columns);
}

char* text_of_composite(Datum value) {
    HeapTupleHeader row = DatumGetHeapTupleHeader(value);
    TupleDesc attributes =
        lookup_rowtype_tupdesc(HeapTupleHeaderGetTypeId(row), HeapTupleHeaderGetTypMod(row));
    HeapTupleData tuple{};
    tuple.t_len = HeapTupleHeaderGetDatumLength(row);
    tuple.t_data = row;
    const Size natts = static_cast<Size>(attributes->natts);
    auto* values = static_cast<Datum*>(palloc(sizeof(Datum) * natts + 1));
    auto* nulls = static_cast<bool*>(palloc(sizeof(bool) * natts + 1));
    heap_deform_tuple(&tuple, attributes, values, nulls);
    int count = 0;  // without the dropped ones
    for (int i = 0; i < attributes->natts; i++) {
        const Form_pg_attribute attribute = TupleDescAttr(attributes, i);
        if (attribute->attisdropped) continue;
        nulls[count] = nulls[i];
        if (!nulls[i]) values[count] = CStringGetTextDatum(exact_text(attribute->atttypid, values[i]));
        count++;
    }
    ReleaseTupleDesc(attributes);
    HeapTuple texts = heap_form_tuple(columns_of_text(count), values, nulls);
    return OidOutputFunctionCall(F_RECORD_OUT, HeapTupleGetDatum(texts));
}

/// Quoted in any case, which every range's input function takes.
void append_bound(StringInfo out, Oid type, const RangeBound& bound) {
    if (bound.infinite) return;
    appendStringInfoChar(out, '"');
    for (const char* c = exact_text(type, bound.val); *c != '\0'; c++) {
        if (*c == '"' || *c == '\\') appendStringInfoChar(out, *c);
        appendStringInfoChar(out, *c);
    }
    appendStringInfoChar(out, '"');
}

char* text_of_range(Oid type, Oid bound, const RangeType* range) {
    RangeBound lower, upper;
    bool empty;
    range_deserialize(lookup_type_cache(type, TYPECACHE_RANGE_INFO), range, &lower, &upper, &empty);
    if (empty) return pstrdup("empty");
    StringInfoData out;
    initStringInfo(&out);
    appendStringInfoChar(&out, lower.inclusive ? '[' : '(');
    append_bound(&out, bound, lower);
    appendStringInfoChar(&out, ',');
    append_bound(&out, bound, upper);
    appendStringInfoChar(&out, upper.inclusive ? ']' : ')');
    return out.data;
}

char* text_of_multirange(Oid range, Oid type, const MultirangeType* multirange) {
    TypeCacheEntry* const cached = lookup_type_cache(type, TYPECACHE_MULTIRANGE_INFO);
    int32 count;
    RangeType** ranges;
    multirange_deserialize(cached->rngtype, multirange, &count, &ranges);
    StringInfoData out;
    initStringInfo(&out);
    for (int i = 0; i < count; i++) {
        appendStringInfoChar(&out, i == 0 ? '{' : ',');
        appendStringInfoString(&out, text_of_range(range, get_range_subtype(range), ranges[i]));
    }
    appendStringInfoString(&out, count == 0 ? "{}" : "}");
    return out.data;
}

char* output(Oid type, Datum value) {
    Oid function;
    bool is_varlena;
    getTypeOutputInfo(type, &function, &is_varlena);
    return OidOutputFunctionCall(function, value);
}

char* exact_text(Oid type, Datum value) {
    check_stack_depth();
    if (!holds_xml(type, composite_holds_xml)) return output(type, value);
    const Parts parts = parts_of(type);
    switch (parts.kind) {
        case Kind::xml:
            return TextDatumGetCString(value);
        case Kind::array:
            return text_of_array(parts.part, value);
        case Kind::composite:
            return text_of_composite(value);
        case Kind::range:
            return text_of_range(parts.type, parts.part, DatumGetRangeTypeP(value));
        case Kind::multirange:
            return text_of_multirange(parts.part, parts.type, DatumGetMultirangeTypeP(value));
        case Kind::other:
            break;
    }
    return output(type, value);
}

}  // namespace

void fill_text_form(TextForm& form, Oid type, MemoryContext memory) {
    Oid function;
    bool is_varlena;
    form.type = type;
    getTypeOutputInfo(type, &function, &is_varlena);
    fmgr_info_cxt(function, &form.output, memory);
    form.depends_on_settings = depends_on_settings(type);
    form.may_hold_xml = may_hold_xml(type);
}

char* text_of(TextForm& form, Datum value) {
    if (form.may_hold_xml) return exact_text(form.type, value);
    return OutputFunctionCall(&form.output, value);
}

}  // namespace onerepl::capture
