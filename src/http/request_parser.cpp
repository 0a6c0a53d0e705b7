// Boost.Beast's parser and the checks that it leaves to its user. The only file that includes Boost.

#include "http/chunk_guard.h"
#include "http/header_collector.h"
#include "http/request_parser.h"

// An assertion of Beast's about what a peer sent must not abort the process: it would take the whole database
// server with it. It becomes an exception, and the request is refused.
#define BOOST_ENABLE_ASSERT_HANDLER
// gcc 12 with sanitizers takes boost::optional for uninitialised.
#pragma GCC diagnostic push
#ifndef __clang__
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#include <boost/beast/http/basic_parser.hpp>
#pragma GCC diagnostic pop

#include <algorithm>
#include <stdexcept>
#include <string_view>

// Boost's names and signatures.
namespace boost {
void assertion_failed(const char* expression, const char*, const char*, long) {
    throw std::logic_error(expression);
}
void assertion_failed_msg(const char*, const char* message, const char*, const char*, long) {
    throw std::logic_error(message);
}
}  // namespace boost

namespace onerepl::http {

namespace {

namespace beast = boost::beast;
using beast::error_code;
using BeastError = beast::http::error;

// A chunk's size line. Beast has no limit for it.
constexpr std::size_t longest_chunk_line = 1024;
// The shortest that may end a body ("0", two line ends). Beast asserts that it is given no less once it has
// seen a size of 0.
constexpr std::size_t shortest_last_chunk = 5;

std::string_view to_std(beast::string_view text) {
    return {text.data(), text.size()};
}

char to_lower(char character) {
    return character >= 'A' && character <= 'Z' ? static_cast<char>(character - 'A' + 'a') : character;
}

std::string lower_case(std::string_view text) {
    std::string lower(text);
    std::transform(lower.begin(), lower.end(), lower.begin(), to_lower);
    return lower;
}

bool is_all_digits(std::string_view text) {
    return !text.empty() &&
           std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

/// What Beast tells while it parses. An error of ours goes to `problem`; Beast gets any error, to make it
/// stop.
class Machine final : public beast::http::basic_parser<true> {
  public:
    explicit Machine(const ParserLimits& limits) {
        header_limit(static_cast<std::uint32_t>(limits.header));
        body_limit(limits.body);
        eager(true);
    }

    RequestHead head;
    Bytes body;
    ParseError problem;  // ours; empty reason: none

    /// After the header: the rules that concern several fields.
    void check_fields() {
        if (hosts_ > 1 || (hosts_ == 0 && !head.is_http_1_0))
            return refuse(400, "exactly one Host field is needed");
        if (transfer_encodings_ > 0 && head.is_http_1_0)
            return refuse(400, "Transfer-Encoding in an HTTP/1.0 request");
        head.has_body = chunked() || content_length().value_or(0) > 0;
        if (content_lengths_ > 0) head.content_length = *content_length();
        head.keep_alive = keep_alive();
        if (head.method == Method::get && head.has_body) return refuse(400, "GET with a body");
        if (head.method == Method::post && content_lengths_ == 0 && !chunked())
            return refuse(411, "Content-Length or chunked encoding is needed");
    }

  private:
    void refuse(int status, std::string reason) {
        if (problem.reason.empty()) problem = {status, std::move(reason)};
    }
    void refuse(int status, std::string reason, error_code& code) {
        refuse(status, std::move(reason));
        code = BeastError::bad_field;
    }

    void on_request_impl(beast::http::verb verb, beast::string_view, beast::string_view target, int version,
                         error_code& code) override {
        head.is_http_1_0 = version == 10;
        if (verb == beast::http::verb::get) {
            head.method = Method::get;
        } else if (verb == beast::http::verb::post) {
            head.method = Method::post;
        } else {
            return refuse(405, "only GET and POST are served", code);
        }
        if (!take_target(to_std(target))) refuse(400, "request target is not a path", code);
    }

    bool take_target(std::string_view target) {
        // The absolute form is for proxies, yet every server must take it (RFC 9112, 3.2.2).
        for (std::string_view scheme : {"http://", "https://"}) {
            if (lower_case(target.substr(0, scheme.size())) != scheme) continue;
            const auto slash = target.find('/', scheme.size());
            target = slash == std::string_view::npos ? "/" : target.substr(slash);
        }
        if (target.empty() || target.front() != '/') return false;
        const auto question = target.find('?');
        head.path = target.substr(0, question);
        if (question != std::string_view::npos) head.query = target.substr(question + 1);
        return true;
    }

    void on_field_impl(beast::http::field field, beast::string_view, beast::string_view beast_value,
                       error_code& code) override {
        // Older versions of Beast tell trailers here.
        if (header_done_) return refuse(400, "trailer fields are not taken", code);
        const std::string_view value = to_std(beast_value);
        switch (field) {
            case beast::http::field::host:
                ++hosts_;
                break;
            case beast::http::field::content_length:
                take_content_length(value, code);
                break;
            case beast::http::field::transfer_encoding:
                take_transfer_encoding(value, code);
                break;
            case beast::http::field::content_type:
                take_content_type(value, code);
                break;
            case beast::http::field::content_encoding:
                if (lower_case(value) != "identity") refuse(415, "Content-Encoding is not taken", code);
                break;
            case beast::http::field::expect:
                if (lower_case(value) != "100-continue") return refuse(417, "unknown expectation", code);
                head.expects_continue = !head.is_http_1_0;
                break;
            default:
                break;
        }
    }

    void take_content_length(std::string_view value, error_code& code) {
        // Beast takes "5, 5" and the field given twice if both agree; others in the path may not see it the
        // same way.
        if (++content_lengths_ > 1 || !is_all_digits(value)) refuse(400, "bad Content-Length", code);
    }

    void take_transfer_encoding(std::string_view value, error_code& code) {
        if (++transfer_encodings_ > 1 || lower_case(value) != "chunked")
            refuse(400, "Transfer-Encoding other than chunked", code);
    }

    void take_content_type(std::string_view value, error_code& code) {
        if (++content_types_ > 1) return refuse(400, "more than one Content-Type", code);
        head.content_type = lower_case(media_type(value));
    }

    // Boost 1.90 tells trailers here (there this overrides; before, it is a function that nobody calls).
    virtual void on_trailer_field_impl(beast::http::field, beast::string_view, beast::string_view,
                                       error_code& code) {
        refuse(400, "trailer fields are not taken", code);
    }

    void on_header_impl(error_code&) override { header_done_ = true; }

    void on_body_init_impl(const boost::optional<std::uint64_t>& length, error_code&) override {
        if (length) body.reserve(std::min<std::size_t>(*length, reserved_at_once));
    }

    std::size_t on_body_impl(beast::string_view piece, error_code&) override { return append(piece); }

    void on_chunk_header_impl(std::uint64_t, beast::string_view, error_code&) override {}

    std::size_t on_chunk_body_impl(std::uint64_t, beast::string_view piece, error_code&) override {
        return append(piece);
    }

    std::size_t append(beast::string_view piece) {
        if (head.content_length && body.size() + piece.size() > body.capacity())
            body.reserve(*head.content_length);
        const ByteView bytes =
            view(to_std(piece));  // of the body's own type: copied at once, not byte by byte
        body.insert(body.end(), bytes.begin(), bytes.end());
        return piece.size();
    }

    void on_finish_impl(error_code&) override {}
    void on_response_impl(int, beast::string_view, int, error_code&) override {}

    int hosts_ = 0;
    int content_lengths_ = 0;
    int transfer_encodings_ = 0;
    int content_types_ = 0;
    bool header_done_ = false;
};

/// Whether the version in the start line is well-formed, so that it is only one that is not spoken here.
bool names_other_version(std::string_view start_line) {
    start_line = start_line.substr(0, start_line.find('\r'));
    const auto space = start_line.rfind(' ');
    if (space == std::string_view::npos) return false;
    const std::string_view version = start_line.substr(space + 1);
    const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
    if (!version.starts_with("HTTP/")) return false;
    if (version.size() == 6) return is_digit(version[5]);
    return version.size() == 8 && is_digit(version[5]) && version[6] == '.' && is_digit(version[7]);
}

ParseError to_parse_error(const error_code& code, std::string_view header, const ParserLimits& limits) {
    if (code == BeastError::body_limit)
        return {413, "body is larger than " + std::to_string(limits.body) + " bytes"};
    if (code == BeastError::header_limit)
        return {431, "header is larger than " + std::to_string(limits.header) + " bytes"};
    if (code == BeastError::bad_version && names_other_version(header))
        return {505, "HTTP version is not supported"};
    return {400, code.message()};
}

}  // namespace

class RequestParser::Implementation {
  public:
    explicit Implementation(const ParserLimits& limits)
        : limits_(limits), collector_(limits.header), machine_(limits) {}

    Fed feed(ByteView bytes) {
        if (!error.reason.empty()) return {Step::failed, 0};
        try {
            return header_done_ ? feed_body(bytes) : feed_header(bytes);
        } catch (const std::logic_error&) {
            return fail({400, "malformed request"}, bytes.size());
        }
    }

    const RequestHead& head() const { return machine_.head; }
    Bytes& body() { return machine_.body; }
    const Bytes& body() const { return machine_.body; }

    ParseError error;

  private:
    Fed fail(ParseError problem, std::size_t consumed) {
        error = std::move(problem);
        return {Step::failed, consumed};
    }

    Fed feed_header(ByteView bytes) {
        const std::size_t consumed = collector_.feed(bytes);
        switch (collector_.state()) {
            case HeaderCollector::State::collecting:
                return {Step::more, consumed};
            case HeaderCollector::State::malformed:
                return fail({400, collector_.reason()}, consumed);
            case HeaderCollector::State::too_large:
                return fail(to_parse_error(BeastError::header_limit, {}, limits_), consumed);
            case HeaderCollector::State::complete:
                break;
        }
        return parse_header(consumed);
    }

    Fed parse_header(std::size_t consumed) {
        const std::string& text = collector_.text();
        error_code code;
        machine_.put(boost::asio::buffer(text), code);
        if (!machine_.problem.reason.empty()) return fail(machine_.problem, consumed);
        if (code) return fail(to_parse_error(code, text, limits_), consumed);
        if (!machine_.is_header_done()) return fail({400, "malformed header"}, consumed);
        machine_.check_fields();
        if (!machine_.problem.reason.empty()) return fail(machine_.problem, consumed);
        header_done_ = true;
        collector_ = HeaderCollector(limits_.header);  // gives its memory back
        return {Step::header, consumed};
    }

    Fed feed_body(ByteView bytes) {
        if (machine_.is_done()) return {Step::done, 0};
        if (bytes.empty()) return {Step::more, 0};
        if (machine_.chunked() && !chunks_.accept(bytes)) return fail({400, "malformed chunk"}, bytes.size());
        if (rest_.empty()) return put_body(bytes, bytes.size());
        // A chunk's size line came in pieces.
        rest_.insert(rest_.end(), bytes.begin(), bytes.end());
        if (rest_.size() < shortest_last_chunk) return {Step::more, bytes.size()};
        const Bytes joined = std::move(rest_);
        rest_.clear();
        return put_body(joined, bytes.size());
    }

    /// `fresh`: how many bytes at the end of `bytes` are new to us.
    Fed put_body(ByteView bytes, std::size_t fresh) {
        error_code code;
        const std::size_t taken = machine_.put(boost::asio::buffer(bytes.data(), bytes.size()), code);
        const std::size_t left = bytes.size() - taken;
        if (!machine_.problem.reason.empty()) return fail(machine_.problem, fresh);
        if (code && code != BeastError::need_more) return fail(to_parse_error(code, {}, limits_), fresh);
        if (machine_.is_done()) return {Step::done, fresh - std::min(left, fresh)};
        return keep_rest(bytes.subspan(taken), fresh);
    }

    /// What is left is the beginning of a chunk's size line.
    Fed keep_rest(ByteView rest, std::size_t fresh) {
        if (rest.size() > longest_chunk_line) return fail({400, "chunk header is too long"}, fresh);
        for (std::size_t i = 0; i < rest.size(); ++i)
            if (rest[i] == '\n' && (i == 0 || rest[i - 1] != '\r'))
                return fail({400, "line feed without carriage return in a chunk header"}, fresh);
        rest_.assign(rest.begin(), rest.end());
        return {Step::more, fresh};
    }

    ParserLimits limits_;
    HeaderCollector collector_;
    Machine machine_;
    ChunkGuard chunks_;
    Bytes rest_;
    bool header_done_ = false;
};

RequestParser::RequestParser(const ParserLimits& limits)
    : implementation_(std::make_unique<Implementation>(limits)) {}
RequestParser::~RequestParser() = default;
RequestParser::RequestParser(RequestParser&&) noexcept = default;
RequestParser& RequestParser::operator=(RequestParser&&) noexcept = default;

RequestParser::Fed RequestParser::feed(ByteView bytes) {
    return implementation_->feed(bytes);
}
const RequestHead& RequestParser::head() const {
    return implementation_->head();
}
const ParseError& RequestParser::error() const {
    return implementation_->error;
}
std::size_t RequestParser::body_size() const {
    return implementation_->body().size();
}
Bytes RequestParser::take_body() {
    return std::move(implementation_->body());
}

}  // namespace onerepl::http
