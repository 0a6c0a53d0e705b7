// Frames: how one message is written (P1). The layout is docs/protocol/wire.md, "Frames".
#include "core/frame.h"

#include "core/bytes.h"
#include "core/crypto.h"
#include "core/frame_layout.h"

#include <limits>
#include <stdexcept>

namespace onerepl {
namespace {

using namespace frame_layout;

/// Fills the header's fields that depend on the kind.
struct HeaderOf {
    Header& header;

    void operator()(const ObjectTransfer& message) const {
        header.n = message.n;
        header.flags = message.last_of_transaction ? flag_last_of_transaction : 0;
        header.part = message.part;
        header.parts = message.parts;
    }
    void operator()(const ConfirmationRequest& message) const { first_of(message.numbers); }
    void operator()(const TransferConfirmation& message) const { first_of(message.numbers); }
    void operator()(const TransferRequest& message) const {
        if (!message.numbers.empty()) header.n = message.numbers.front().numbers.first;
    }
    void operator()(const RemoteState& message) const { header.n = message.echo; }
    void operator()(const StateRequest& message) const { header.n = message.written; }
    void operator()(const DescriptionRequest&) const {}
    void operator()(const Description&) const {}

    void first_of(const std::vector<Range>& numbers) const {
        if (!numbers.empty()) header.n = numbers.front().first;
    }
};

struct DataOf {
    ByteWriter& writer;

    void operator()(const ObjectTransfer& message) const { writer.bytes(message.record); }
    void operator()(const ConfirmationRequest& message) const { ranges(message.numbers); }
    void operator()(const TransferConfirmation& message) const { ranges(message.numbers); }
    void operator()(const TransferRequest& message) const {
        writer.u32(static_cast<std::uint32_t>(message.numbers.size()));
        for (const Missing& missing : message.numbers) {
            range(missing.numbers);
            writer.u32(missing.first_part);
            writer.u32(missing.last_part);
        }
    }
    void operator()(const RemoteState&) const {}
    void operator()(const StateRequest&) const {}
    void operator()(const DescriptionRequest& message) const {
        writer.u32(static_cast<std::uint32_t>(message.ids.size()));
        for (std::uint64_t id : message.ids) writer.u64(id);
    }
    void operator()(const Description& message) const { writer.bytes(message.description); }

    void range(Range numbers) const {
        writer.u64(numbers.first);
        writer.u64(numbers.last);
    }
    void ranges(const std::vector<Range>& numbers) const {
        writer.u32(static_cast<std::uint32_t>(numbers.size()));
        for (Range one : numbers) range(one);
    }
};

/// Checksum and length are zero in it; they are filled in when the data is there.
void write_header(const Header& header, Bytes& out) {
    std::array<std::uint8_t, frame_header_size> bytes{};
    auto put = [at = bytes.begin()](const auto& field) mutable {
        at = std::copy(field.begin(), field.end(), at);
    };
    put(frame_magic);
    put(big_endian(header.version));
    put(big_endian(header.kind));
    put(big_endian(header.flags));
    put(Md5{});
    put(header.parties.remote);
    put(header.parties.central);
    put(big_endian(header.n));
    put(big_endian(header.part));
    put(big_endian(header.parts));
    out.insert(out.end(), bytes.begin(), bytes.end());
}

}  // namespace

Kind kind_of(const Message& message) {
    return Kind{static_cast<std::uint8_t>(message.index() + 1)};
}

const char* name_of(Kind kind) {
    switch (kind) {
        case Kind::object_transfer:
            return "object transfer";
        case Kind::confirmation_request:
            return "confirmation request";
        case Kind::remote_state:
            return "remote state";
        case Kind::transfer_confirmation:
            return "transfer confirmation";
        case Kind::transfer_request:
            return "transfer request";
        case Kind::state_request:
            return "state request";
        case Kind::description_request:
            return "description request";
        case Kind::description:
            return "description";
    }
    return "unknown kind";
}

const char* describe(FrameError error) {
    switch (error) {
        case FrameError::truncated:
            return "message is cut off";
        case FrameError::magic:
            return "message does not begin with its mark";
        case FrameError::version:
            return "message has an unknown version";
        case FrameError::kind:
            return "message is of an unknown kind";
        case FrameError::length:
            return "message announces more data than there is";
        case FrameError::checksum:
            return "message has a wrong checksum";
        case FrameError::parties:
            return "message is meant for another link";
        case FrameError::content:
            return "message has invalid content";
    }
    return "message cannot be read";
}

void encode_frame(const Parties& parties, const Message& message, Bytes& out) {
    const std::size_t start = out.size();
    Header header;
    header.kind = static_cast<std::uint8_t>(kind_of(message));
    header.parties = parties;
    std::visit(HeaderOf{header}, message);
    write_header(header, out);
    ByteWriter writer(out);
    std::visit(DataOf{writer}, message);

    const std::size_t length = out.size() - start - frame_header_size;
    if (length > std::numeric_limits<std::uint32_t>::max())
        throw std::length_error("message too long for a frame");
    const std::span<std::uint8_t> frame = std::span(out).subspan(start);
    const auto length_bytes = big_endian(static_cast<std::uint32_t>(length));
    std::copy(length_bytes.begin(), length_bytes.end(), frame.begin() + length_at);
    const Md5 checksum = md5(frame);
    std::copy(checksum.begin(), checksum.end(), frame.begin() + checksum_at);
}

}  // namespace onerepl
