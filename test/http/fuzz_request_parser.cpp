// libFuzzer target: a request parsed in one piece and in many must come to the same end, whatever it is.

#include "http/request_parser.h"

#include <cstdlib>
#include <string>

using namespace onerepl;
using namespace onerepl::http;

namespace {

struct Outcome {
    RequestParser::Step step = RequestParser::Step::more;
    int status = 0;
    std::size_t consumed = 0;  // of a complete request
    Bytes body;
    std::string path;
    bool operator==(const Outcome&) const = default;
};

void require(bool condition) {
    if (!condition) std::abort();
}

/// `piece(at)`: the size of the piece that begins there.
template <class PieceSize>
Outcome parse(ByteView bytes, const PieceSize& piece_size) {
    ParserLimits limits;
    limits.header = 2000;
    limits.body = 3000;
    RequestParser parser(limits);
    Outcome outcome;
    std::size_t at = 0;
    while (at <= bytes.size()) {
        const std::size_t size = std::min<std::size_t>(piece_size(at), bytes.size() - at);
        const RequestParser::Fed fed = parser.feed(bytes.subspan(at, size));
        require(fed.consumed <= size);
        at += fed.consumed;
        outcome.step = fed.step;
        if (fed.step == RequestParser::Step::header) continue;
        if (fed.step == RequestParser::Step::failed) {
            require(!parser.error().reason.empty() && parser.error().status >= 400);
            outcome.status = parser.error().status;
            return outcome;
        }
        if (fed.step == RequestParser::Step::done) {
            outcome.consumed = at;
            outcome.path = parser.head().path;
            outcome.body = parser.take_body();
            return outcome;
        }
        require(fed.consumed == size);
        if (at == bytes.size()) return outcome;
    }
    return outcome;
}

/// The same end; but which of several errors is seen first depends on the pieces, and an error at the very
/// end of the bytes may need one more byte.
bool agree(const Outcome& one, const Outcome& other) {
    const auto unfinished = [](const Outcome& outcome) { return outcome.step != RequestParser::Step::done; };
    const auto failed = [](const Outcome& outcome) { return outcome.step == RequestParser::Step::failed; };
    return one == other || (unfinished(one) && unfinished(other) && (failed(one) || failed(other)));
}

}  // namespace

/// Freed memory is kept for less long than by default, to stay within the limit that the fuzzers are run
/// with.
extern "C" const char* __asan_default_options() {
    return "quarantine_size_mb=32";
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const ByteView bytes(data, size);
    const Outcome whole = parse(bytes, [](std::size_t) { return std::size_t{1} << 20; });
    const Outcome single = parse(bytes, [](std::size_t) { return std::size_t{1}; });
    const Outcome mixed = parse(bytes, [&](std::size_t at) { return 1 + (at < size ? data[at] % 13U : 0U); });
    require(whole.body.size() <= 3000);
    require(agree(whole, single) && agree(whole, mixed));
    return 0;
}
