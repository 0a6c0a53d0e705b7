// Parses one HTTP/1.x request out of bytes that are fed to it; does no input or output itself.
// Under it is Boost.Beast's parser, plus the checks that Beast leaves to its user. Only request_parser.cpp
// includes Boost (and so takes its seconds to compile).
#pragma once

#include "http/message.h"

#include <memory>
#include <optional>

namespace onerepl::http {

struct ParserLimits {
    std::size_t header = 16 * 1024;       // start line and fields together
    std::size_t body = 64 * 1024 * 1024;  // more is 413
};

/// Why a request is refused.
struct ParseError {
    int status = 400;
    std::string reason;  // one short line for the answer's text and the journal
};

/// What is known when the header is there and before the body comes.
struct RequestHead {
    Method method = Method::get;
    std::string path;
    std::string query;
    std::string content_type;                     // lower case, without parameters
    std::optional<std::uint64_t> content_length;  // none: chunked, or no body
    bool has_body = false;
    bool expects_continue = false;
    bool keep_alive = false;
    bool is_http_1_0 = false;
};

/// For one request; make a new one for the next on the same connection.
class RequestParser {
  public:
    enum class Step : std::uint8_t {
        more,    // all bytes are consumed; feed what comes next
        header,  // the header is complete (told once): look at head(), then feed on
        done,    // the request is complete; bytes not consumed belong to the next one
        failed,  // error() says why; the parser is of no further use
    };
    struct Fed {
        Step step = Step::more;
        std::size_t consumed = 0;
    };

    explicit RequestParser(const ParserLimits& limits);
    ~RequestParser();
    RequestParser(RequestParser&&) noexcept;
    RequestParser& operator=(RequestParser&&) noexcept;

    /// Takes what it can of `bytes`; what it did not consume (after `header` and `done` only) is to be given
    /// again. Throws std::bad_alloc only.
    Fed feed(ByteView bytes);

    const RequestHead& head() const;
    const ParseError& error() const;
    /// Bytes of the body so far.
    std::size_t body_size() const;
    /// Takes the body out.
    Bytes take_body();

  private:
    class Implementation;
    std::unique_ptr<Implementation> implementation_;
};

}  // namespace onerepl::http
