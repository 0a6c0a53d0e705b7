// Messages and their frames: one message is one frame, with a header and a checksum of its own (P1).
// docs/protocol/wire.md is the byte-for-byte description.
#pragma once

#include "core/ranges.h"

#include <variant>

namespace onerepl {

/// The six kinds of the specification, and the two by which a table description that B lacks is asked for
/// (P17).
enum class Kind : std::uint8_t {
    object_transfer = 1,
    confirmation_request = 2,
    remote_state = 3,
    transfer_confirmation = 4,
    transfer_request = 5,
    state_request = 6,
    description_request = 7,
    description = 8,
};

/// One logged change, or one part of it. `n` is in the frame's header.
struct ObjectTransfer {
    Number n = 0;
    /// P5: the last record of its transaction on A.
    bool last_of_transaction = false;
    /// P1: part i of `parts`, from 0. The record is the concatenation of its parts.
    std::uint32_t part = 0;
    std::uint32_t parts = 1;
    /// The record (core/record.h), or the part of it.
    ByteView record{};
};

/// Which of these numbers have you written?
struct ConfirmationRequest {
    std::vector<Range> numbers{};
};

/// A's state, when there is nothing to send (P2). S_a, M_a, sent, blocked-at and paused are in the body's
/// header.
struct RemoteState {
    /// The S_b that the answered state request carried.
    Number echo = 0;
};

struct TransferConfirmation {
    std::vector<Range> numbers{};
};

/// One range of numbers to send again; if it is a single number, some parts of it.
/// A record has no more parts: they are counted in a signed 32-bit integer too.
constexpr std::uint32_t most_parts = 0x7fff'ffff;

struct Missing {
    Range numbers{};
    /// Parts of numbers.first to send, from 0. The defaults mean the whole record; a range of several numbers
    /// has them.
    std::uint32_t first_part = 0;
    std::uint32_t last_part = UINT32_MAX;

    bool operator==(const Missing&) const = default;
};

struct TransferRequest {
    std::vector<Missing> numbers{};
};

struct StateRequest {
    /// S_b when the request was formed.
    Number written = 0;
};

struct DescriptionRequest {
    std::vector<std::uint64_t> ids{};
};

/// A table description outside the sequence, as the answer to a description request. core/record.h has the
/// content.
struct Description {
    ByteView description{};
};

using Message = std::variant<ObjectTransfer, ConfirmationRequest, RemoteState, TransferConfirmation,
                             TransferRequest, StateRequest, DescriptionRequest, Description>;

Kind kind_of(const Message& message);
/// The name in the specification, as "object transfer".
const char* name_of(Kind kind);

/// Who speaks to whom; part of every frame's header.
struct Parties {
    Uuid remote{};
    Uuid central{};

    bool operator==(const Parties&) const = default;
};

constexpr std::size_t frame_header_size = 76;

/// Appends the message's frame, checksum included, to `out`.
void encode_frame(const Parties& parties, const Message& message, Bytes& out);

/// Why a frame cannot be used.
enum class FrameError : std::uint8_t { truncated, magic, version, kind, length, checksum, parties, content };
const char* describe(FrameError error);

/// What the next frame in a run of bytes is. Damage of one frame leaves the next readable as long as its
/// length is plausible; otherwise the reader looks for the next magic (P1).
struct FrameResult {
    std::variant<Message, FrameError> value;
    Number n = 0;      // as far as it could be read, for the journal
    ByteView bytes{};  // the frame as it travelled, or what was skipped as damaged
};

class FrameReader {
  public:
    /// `frames` must outlive the reader and the messages, which point into it. A frame belongs here if it
    /// names the expected parties; a party that is not known yet (all zero), here or there, is not compared.
    FrameReader(const Parties& expected, ByteView frames)
        : expected_(expected), rest_(frames), may_hash_in_vain_(frames.size()) {}
    bool at_end() const { return rest_.empty(); }
    /// The next message, or why there is none; goes on after it. Not to be called at the end.
    FrameResult next();

  private:
    FrameResult skip_damaged(FrameError error, std::size_t size);
    bool ends_at_boundary(std::size_t size) const;
    std::size_t damaged_size() const;

    Parties expected_;
    ByteView rest_;
    /// Bytes of frames that may still be checked without being skipped when the check fails: keeps the work
    /// linear.
    std::size_t may_hash_in_vain_;
};

}  // namespace onerepl
