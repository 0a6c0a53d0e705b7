// Rows of records into the tuple store of a set-returning function.
#include "functions/record_output.h"

extern "C" {
#include "funcapi.h"
#include "utils/timestamp.h"
}

namespace onerepl {

namespace {

void put_text(const std::optional<std::string>& text, Datum& value, bool& null) {
    null = !text;
    value = null ? Datum{0}
                 : PointerGetDatum(cstring_to_text_with_len(text->data(), static_cast<int>(text->size())));
}

}  // namespace

RecordOutput::RecordOutput(FunctionCallInfo fcinfo)
    : result_(reinterpret_cast<ReturnSetInfo*>(fcinfo->resultinfo)) {
    pg::call([&] { InitMaterializedSRF(fcinfo, 0); });
}

void RecordOutput::put(const Place& place, const RecordText& text) {
    pg::call([&] {
        Datum values[7] = {};
        bool nulls[7] = {};
        values[0] = Int64GetDatum(static_cast<int64>(place.n));
        put_text(text.relation, values[1], nulls[1]);
        put_text(text.object_id, values[2], nulls[2]);
        put_text(text.moved_to, values[3], nulls[3]);
        put_text(text.operation, values[4], nulls[4]);
        values[5] = BoolGetDatum(place.last_of_transaction);
        nulls[6] = !place.made_at;
        values[6] = TimestampTzGetDatum(place.made_at.value_or(0));
        tuplestore_putvalues(result_->setResult, result_->setDesc, values, nulls);
        for (int i = 1; i <= 4; i++)
            if (!nulls[i]) pfree(DatumGetPointer(values[i]));
    });
}

}  // namespace onerepl
