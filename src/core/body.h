// A body: what one HTTP request or answer (or one file) carries. An authenticated header that says where its
// sender stands (P2, P9, P10, P15), and any number of frames (P1), compressed when that pays.
#pragma once

#include "core/frame.h"
#include "core/history.h"

#include <optional>
#include <variant>

namespace onerepl {

/// Why a link stands still for good (P9), until the administrator starts it anew. none: it does not.
enum class Stop : std::uint8_t {
    none = 0,
    central_lost_history = 1,  // S_a > S_b: B has lost what it confirmed
    remote_lost_history = 2,   // S_b > M_a: A has lost history
    other_history = 3,         // the identities at S_b differ: a fork, a clone, a restored A
    wrong_peer = 4,            // another database speaks than the one that the link was bound to
    promoted = 5,              // the central was made a database of its own by its administrator
    copies = 6,                // two copies of the remote speak in turn
};
/// What happened, for journal and status.
const char* describe(Stop stop);
/// The hint for it: the cure depends on more than the reason.
constexpr const char* see_status = "onerepl_status() says what to do, at both ends.";

/// No age on the wire is larger: some 140 years.
constexpr Time largest_age = Time{1} << 52;

/// What every body of A says.
struct RemoteHeader {
    Nonce process{};  // random, of the process that speaks; another one after a restart (core/speakers.h)
    std::uint64_t heard = 0;  // `hearing` of the last answer that it took; 0: none
    Number start = 0;         // N0 of this link (P17)
    Identity start_identity{};
    Number confirmed = 0;   // S_a
    Number last = 0;        // M_a
    Number sent = 0;        // last number sent successfully
    Number blocked_at = 0;  // first record in B that stops forming; 0: none
    /// The first record of which A does not know that B has written it, and how long ago it got its number;
    /// 0, 0: there is none. B's lag: the two clocks are not compared, one tells a span.
    Number oldest = 0;
    Time age = 0;  // 0 .. largest_age
    bool paused = false;
    bool capture_stopped = false;  // A's changes get no numbers any more: M_a is not all that happened
    Stop stop = Stop::none;
    /// The batches of all transfers in this body, in order: B writes nothing before the identity before its
    /// first number was found equal to its own (P9).
    std::vector<Batch> batches{};

    bool operator==(const RemoteHeader&) const = default;
};

/// P15: what B does with transfers just now.
enum class FlowState : std::uint8_t { running = 0, failed = 1, paused = 2, stopped = 3 };

/// What every body of B says.
struct CentralHeader {
    bool started = false;       // B has taken over N0 and its identity
    bool taken = false;         // the body answered belongs to this start, and B has looked into it (P10)
    std::uint64_t hearing = 0;  // to be told back (core/speakers.h)
    Number written = 0;         // S_b
    Identity identity{};        // of the history at S_b
    Number held = 0;            // up to which number B holds everything durably, >= S_b
    std::uint64_t room = 0;     // bytes of transfers that B takes beyond `held`
    FlowState flow = FlowState::running;
    Number failed_at = 0;  // F, if flow is failed
    Stop stop = Stop::none;

    bool operator==(const CentralHeader&) const = default;
};

struct Body {
    Parties parties{};
    Nonce nonce{};
    /// In a body of B: the nonce of the body answered. In a body of A: that of the last answer that A took;
    /// zero if none. By it a central knows a body of this start from a recorded one (P10).
    Nonce reply_to{};
    std::variant<RemoteHeader, CentralHeader> header{};
    Bytes frames{};
    /// `frames` as they travelled, if that was compressed; for `decode_body` only.
    Bytes compressed{};
};

constexpr std::uint8_t protocol_version = 1;

struct BodyOptions {
    /// Frames are compressed with zstd at this level when that makes them smaller; 0: never.
    int compression = 1;
};

/// `key`: of the side that signs (P10); decode_body takes that of the other side.
Bytes encode_body(const Body& body, ByteView key, const BodyOptions& options);

enum class BodyError : std::uint8_t {
    truncated,
    magic,
    version,
    length,
    signature,
    direction,
    content,
    too_large
};
const char* describe(BodyError error);

/// What can be read of a body before its signature was checked: enough to find the link's key, no more.
struct BodyAddress {
    std::uint8_t direction = 0;  // 0: A to B, 1: B to A
    Parties parties{};
};
std::variant<BodyAddress, BodyError> read_address(ByteView bytes);

/// Checks the signature before it looks at anything else, and the announced size before it allocates.
/// `max_frames` bounds the uncompressed frames, in bytes (a zstd bomb gives too_large).
std::variant<Body, BodyError> decode_body(ByteView bytes, ByteView key, std::size_t max_frames);

}  // namespace onerepl
