// From the wire's values to B's datums.
#include "apply/rows/values.h"

#include "apply/rows/relation_map.h"

extern "C" {
#include "lib/stringinfo.h"
#include "mb/pg_wchar.h"
}

namespace onerepl::apply {

namespace {

constexpr std::size_t small_value = 256;

char* terminated_copy(const Value& value) {
    char* copy = static_cast<char*>(MemoryContextAllocHuge(CurrentMemoryContext, value.bytes.size() + 1));
    memcpy(copy, value.bytes.data(), value.bytes.size());
    copy[value.bytes.size()] = '\0';
    return copy;
}

Datum from_text(const RelationMap& target, const ColumnPlan& plan, const Value& value) {
    char* text = terminated_copy(value);
    if (strlen(text) != value.bytes.size())
        ereport(ERROR, (errcode(ERRCODE_CHARACTER_NOT_IN_REPERTOIRE),
                        errmsg("value of column \"%s\" contains a zero byte", plan.name)));
    text = pg_any_to_server(text, static_cast<int>(value.bytes.size()), target.encoding);
    return InputFunctionCall(const_cast<FmgrInfo*>(&plan.input), text, plan.input_parameter, plan.typmod);
}

/// Receive functions of PostgreSQL 15 write into their buffer and one byte after it: so it is a copy.
Datum receive(const ColumnPlan& plan, const Value& value) {
    char small[small_value];
    StringInfoData buffer;
    const std::size_t size = value.bytes.size();
    if (size < small_value) {
        memcpy(small, value.bytes.data(), size);
        small[size] = '\0';
        buffer.data = small;
    } else {
        buffer.data = terminated_copy(value);
    }
    buffer.len = static_cast<int>(size);
    buffer.maxlen = buffer.len + 1;
    buffer.cursor = 0;
    const Datum datum = ReceiveFunctionCall(const_cast<FmgrInfo*>(&plan.receive), &buffer,
                                            plan.receive_parameter, plan.receive_typmod);
    if (buffer.cursor != buffer.len)
        ereport(ERROR, (errcode(ERRCODE_INVALID_BINARY_REPRESENTATION),
                        errmsg("incorrect binary data format for column \"%s\"", plan.name)));
    return datum;
}

/// Of a type that B's column does not have: as if it were written and read again.
Datum from_other_type(const ColumnPlan& plan, const Value& value) {
    char* text = OutputFunctionCall(const_cast<FmgrInfo*>(&plan.output), receive(plan, value));
    return InputFunctionCall(const_cast<FmgrInfo*>(&plan.input), text, plan.input_parameter, plan.typmod);
}

Datum from_binary(const ColumnPlan& plan, const Value& value) {
    if (plan.unknown_type)
        ereport(ERROR,
                (errcode(ERRCODE_UNDEFINED_OBJECT),
                 errmsg("type \"%s\" of the remote's column \"%s\" does not exist, or cannot be read in "
                        "its binary form",
                        plan.described_type, plan.name)));
    return plan.by_text ? from_other_type(plan, value) : receive(plan, value);
}

/// A domain may forbid nulls; other types give a null for a null without being asked.
Datum from_null(const ColumnPlan& plan) {
    if (plan.is_domain)
        return InputFunctionCall(const_cast<FmgrInfo*>(&plan.input), nullptr, plan.input_parameter,
                                 plan.typmod);
    return 0;
}

}  // namespace

Datum convert_value(const RelationMap& target, const ColumnPlan& plan, const Value& value, bool* is_null) {
    *is_null = value.kind == ValueKind::null;
    switch (value.kind) {
        case ValueKind::null:
            return from_null(plan);
        case ValueKind::text:
            return from_text(target, plan, value);
        case ValueKind::binary:
            return from_binary(plan, value);
        case ValueKind::unchanged:
            break;
    }
    ereport(ERROR, (errcode(ERRCODE_INVALID_BINARY_REPRESENTATION),
                    errmsg("the record does not bring the value of column \"%s\"", plan.name)));
    return 0;
}

}  // namespace onerepl::apply
