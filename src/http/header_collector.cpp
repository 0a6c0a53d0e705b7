// The first checks of a request, byte by byte: line ends, control characters, folded fields, size.

#include "http/header_collector.h"

namespace onerepl::http {

namespace {

constexpr std::size_t longest_method = 16;

bool is_allowed_in_line(char byte) {
    const auto value = static_cast<unsigned char>(byte);
    return value == '\t' || (value >= 0x20 && value != 0x7f);
}

}  // namespace

std::size_t HeaderCollector::feed(ByteView bytes) {
    std::size_t taken = 0;
    while (taken < bytes.size() && state_ == State::collecting) {
        take(static_cast<char>(bytes[taken++]));
        if (state_ == State::collecting && text_.size() >= limit_) state_ = State::too_large;
    }
    return taken;
}

void HeaderCollector::take(char byte) {
    text_.push_back(byte);
    if (after_return_) {
        after_return_ = false;
        return byte == '\n' ? end_line() : refuse("carriage return without line feed in the header");
    }
    if (byte == '\r') {
        after_return_ = true;
        return;
    }
    if (byte == '\n') return refuse("line feed without carriage return in the header");
    if (in_method_) return take_in_method(byte);
    if (!is_allowed_in_line(byte)) return refuse("control character in the header");
    // A line that begins with white space continues the field before it ("obs-fold"): parsers disagree about
    // those.
    if (line_length_ == 0 && (byte == ' ' || byte == '\t')) return refuse("folded line in the header");
    ++line_length_;
}

void HeaderCollector::take_in_method(char byte) {
    if (byte == ' ' && line_length_ > 0) {
        in_method_ = false;
    } else if (byte < 'A' || byte > 'Z' || line_length_ >= longest_method) {
        return refuse("not an HTTP request");
    }
    ++line_length_;
}

void HeaderCollector::end_line() {
    if (in_method_) return refuse("not an HTTP request");
    if (line_length_ == 0) state_ = State::complete;
    line_length_ = 0;
}

}  // namespace onerepl::http
