// Any bytes as a table description: refused, or written again as the same bytes.
#include "core/record.h"

#include "check.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace onerepl;
    const Bytes input(data, data + size);
    const auto table = decode_description(input);
    if (!table) return 0;
    Bytes again;
    encode_description(*table, again);
    ONEREPL_DEMAND(again == input);
    for (std::size_t column : table->key()) ONEREPL_DEMAND(table->columns.at(column).key_position > 0);
    return 0;
}
