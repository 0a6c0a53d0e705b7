// Collects the bytes of a request's header up to its empty line and refuses at the first byte that cannot be
// right, so that somebody who speaks another protocol (TLS, SSH ...) is told at once and not after a timeout.
#pragma once

#include "core/types.h"

#include <string>

namespace onerepl::http {

class HeaderCollector {
  public:
    enum class State : std::uint8_t { collecting, complete, too_large, malformed };

    explicit HeaderCollector(std::size_t limit) : limit_(limit) {}

    /// Takes bytes until the header is complete or refused; returns how many.
    std::size_t feed(ByteView bytes);
    State state() const { return state_; }
    /// Why it is malformed.
    const char* reason() const { return reason_; }
    /// Start line, fields and the empty line.
    const std::string& text() const { return text_; }

  private:
    void take(char byte);
    void take_in_method(char byte);
    void end_line();
    void refuse(const char* reason) {
        state_ = State::malformed;
        reason_ = reason;
    }

    std::size_t limit_;
    std::string text_;
    State state_ = State::collecting;
    const char* reason_ = "";
    std::size_t line_length_ = 0;  // of the line that comes in, without its end
    bool in_method_ = true;
    bool after_return_ = false;
};

}  // namespace onerepl::http
