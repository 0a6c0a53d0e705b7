// chunk = 1*HEXDIG CRLF data CRLF; the last one: "0" CRLF CRLF.
#include "http/chunk_guard.h"

#include <algorithm>

namespace onerepl::http {

namespace {

constexpr int most_digits = 15;  // no sum of such sizes overflows before the body's limit stops it

int hexadecimal(std::uint8_t byte) {
    if (byte >= '0' && byte <= '9') return byte - '0';
    if (byte >= 'a' && byte <= 'f') return byte - 'a' + 10;
    if (byte >= 'A' && byte <= 'F') return byte - 'A' + 10;
    return -1;
}

}  // namespace

bool ChunkGuard::accept(ByteView bytes) {
    while (!bytes.empty() && state_ != State::done && state_ != State::malformed) {
        if (state_ != State::data) {
            state_ = next(bytes.front());
            bytes = bytes.subspan(1);
            continue;
        }
        const auto skipped = static_cast<std::size_t>(std::min<std::uint64_t>(left_, bytes.size()));
        left_ -= skipped;
        bytes = bytes.subspan(skipped);
        if (left_ == 0) state_ = State::data_cr;
    }
    return state_ != State::malformed;
}

ChunkGuard::State ChunkGuard::next(std::uint8_t byte) {
    switch (state_) {
        case State::size:
            return next_in_size(byte);
        case State::size_end:
            digits_ = 0;
            if (byte != '\n') return State::malformed;
            return left_ == 0 ? State::last_cr : State::data;
        case State::data_cr:
            return byte == '\r' ? State::data_lf : State::malformed;
        case State::data_lf:
            return byte == '\n' ? State::size : State::malformed;
        case State::last_cr:
            return byte == '\r' ? State::last_lf : State::malformed;
        case State::last_lf:
            return byte == '\n' ? State::done : State::malformed;
        default:
            return state_;
    }
}

ChunkGuard::State ChunkGuard::next_in_size(std::uint8_t byte) {
    if (byte == '\r' && digits_ > 0) return State::size_end;
    const int digit = hexadecimal(byte);
    if (digit < 0 || ++digits_ > most_digits) return State::malformed;
    left_ = (digits_ == 1 ? 0 : left_ * 16) + static_cast<std::uint64_t>(digit);
    return State::size;
}

}  // namespace onerepl::http
