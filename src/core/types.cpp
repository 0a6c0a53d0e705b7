// Hexadecimal, for journal entries and file names.
#include "core/types.h"

namespace onerepl {

std::string to_hex(ByteView bytes) {
    constexpr char digits[] = "0123456789abcdef";
    std::string text;
    text.reserve(bytes.size() * 2);
    for (std::uint8_t byte : bytes) {
        text.push_back(digits[byte >> 4]);
        text.push_back(digits[byte & 15]);
    }
    return text;
}

}  // namespace onerepl
