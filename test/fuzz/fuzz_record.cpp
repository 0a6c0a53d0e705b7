// Any bytes as a record: refused, or written again as the same bytes.
#include "core/record.h"

#include "check.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace onerepl;
    // Used from one input to the next, as apply does.
    static Record record;
    const Bytes input(data, data + size);
    const bool good = decode_record(input, record);
    ONEREPL_DEMAND(good == decode_record(input).has_value());
    if (!good) return 0;
    Bytes again;
    encode_record(record, again);
    ONEREPL_DEMAND(again == input);
    return 0;
}
