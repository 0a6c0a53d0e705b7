// Bodies: the authenticated envelope (P1, P2, P9, P10, P15). The layout is docs/protocol/wire.md, "Bodies".
#include "core/body.h"

#include "core/bytes.h"
#include "core/compression.h"
#include "core/crypto.h"

#include <limits>
#include <stdexcept>

namespace onerepl {
namespace {

constexpr std::array<std::uint8_t, 4> body_magic{'O', 'R', 'P', 'B'};
constexpr std::uint8_t direction_to_central = 0;
constexpr std::uint8_t direction_to_remote = 1;
constexpr std::uint16_t flag_compressed = 1;
/// Magic, version, direction, flags, parties, nonces, length of the header, length of the frames as they
/// travel.
constexpr std::size_t fixed_size = 80;
constexpr std::size_t lengths_at = 72;
constexpr std::size_t signature_size = sizeof(Sha256);
constexpr std::size_t batch_size = 48;
constexpr std::uint8_t flag_paused = 1;
constexpr std::uint8_t flag_capture_stopped = 2;
constexpr std::uint8_t flag_started = 1;
constexpr std::uint8_t flag_taken = 2;

// ---------------------------------------------------------------- writing

void write(ByteWriter& writer, const RemoteHeader& header) {
    writer.bytes(header.process);
    writer.u64(header.heard);
    writer.u64(header.start);
    writer.bytes(header.start_identity);
    writer.u64(header.confirmed);
    writer.u64(header.last);
    writer.u64(header.sent);
    writer.u64(header.blocked_at);
    writer.u64(header.oldest);
    writer.u64(static_cast<std::uint64_t>(header.age));
    writer.u8(static_cast<std::uint8_t>((header.paused ? flag_paused : 0) |
                                        (header.capture_stopped ? flag_capture_stopped : 0)));
    writer.u8(static_cast<std::uint8_t>(header.stop));
    writer.u32(static_cast<std::uint32_t>(header.batches.size()));
    for (const Batch& batch : header.batches) {
        writer.u64(batch.numbers.first);
        writer.u64(batch.numbers.last);
        writer.bytes(batch.before);
        writer.bytes(batch.random);
    }
}

void write(ByteWriter& writer, const CentralHeader& header) {
    writer.u8((header.started ? flag_started : 0) | (header.taken ? flag_taken : 0));
    writer.u8(static_cast<std::uint8_t>(header.flow));
    writer.u8(static_cast<std::uint8_t>(header.stop));
    writer.u64(header.hearing);
    writer.u64(header.written);
    writer.bytes(header.identity);
    writer.u64(header.held);
    writer.u64(header.room);
    writer.u64(header.failed_at);
}

std::uint32_t length32(std::size_t length) {
    if (length > std::numeric_limits<std::uint32_t>::max()) throw std::length_error("too much for one body");
    return static_cast<std::uint32_t>(length);
}

void put_lengths(std::size_t header, std::size_t frames, Bytes& out) {
    const auto header_length = big_endian(length32(header));
    const auto frames_length = big_endian(length32(frames));
    auto at = out.begin() + lengths_at;
    at = std::copy(header_length.begin(), header_length.end(), at);
    std::copy(frames_length.begin(), frames_length.end(), at);
}

// ---------------------------------------------------------------- reading

bool is_number(Number n) {
    return n <= largest_number;
}

bool read_stop(ByteReader& reader, Stop& stop) {
    stop = Stop{reader.u8()};
    return stop <= Stop::copies;
}

bool read_batches(ByteReader& reader, std::vector<Batch>& batches) {
    const std::size_t count = reader.u32();
    if (!reader.ok() || reader.left() % batch_size != 0 || reader.left() / batch_size != count) return false;
    batches.reserve(count);
    for (std::size_t i = 0; i < count; ++i) {
        Batch& batch = batches.emplace_back();
        batch.numbers.first = reader.u64();
        batch.numbers.last = reader.u64();
        reader.array(batch.before);
        reader.array(batch.random);
        if (batch.numbers.first == 0 || batch.numbers.empty() || !is_number(batch.numbers.last)) return false;
        // Ascending, each once.
        if (i > 0 && batch.numbers.first <= batches[i - 1].numbers.last) return false;
    }
    return true;
}

std::optional<RemoteHeader> read_remote_header(ByteView bytes) {
    ByteReader reader(bytes);
    RemoteHeader header;
    reader.array(header.process);
    header.heard = reader.u64();
    header.start = reader.u64();
    reader.array(header.start_identity);
    header.confirmed = reader.u64();
    header.last = reader.u64();
    header.sent = reader.u64();
    header.blocked_at = reader.u64();
    header.oldest = reader.u64();
    const std::uint64_t age = reader.u64();
    const std::uint8_t flags = reader.u8();
    header.paused = (flags & flag_paused) != 0;
    header.capture_stopped = (flags & flag_capture_stopped) != 0;
    bool good = (flags & ~(flag_paused | flag_capture_stopped)) == 0;
    good = read_stop(reader, header.stop) && good;
    good = good && is_number(header.start) && is_number(header.confirmed) && is_number(header.last);
    good = good && is_number(header.sent) && is_number(header.blocked_at) && is_number(header.oldest);
    good = good && age <= static_cast<std::uint64_t>(largest_age);
    header.age = static_cast<Time>(age);
    if (!good || !read_batches(reader, header.batches)) return std::nullopt;
    return header;
}

std::optional<CentralHeader> read_central_header(ByteView bytes) {
    ByteReader reader(bytes);
    CentralHeader header;
    const std::uint8_t flags = reader.u8();
    header.started = (flags & flag_started) != 0;
    header.taken = (flags & flag_taken) != 0;
    header.flow = FlowState{reader.u8()};
    bool good = (flags & ~(flag_started | flag_taken)) == 0 && header.flow <= FlowState::stopped;
    good = read_stop(reader, header.stop) && good;
    header.hearing = reader.u64();
    header.written = reader.u64();
    reader.array(header.identity);
    header.held = reader.u64();
    header.room = reader.u64();
    header.failed_at = reader.u64();
    good = good && is_number(header.written) && is_number(header.held) && is_number(header.room) &&
           is_number(header.failed_at);
    if (!good || !reader.ok() || reader.left() != 0) return std::nullopt;
    return header;
}

/// The fixed part, read without judging it.
struct Fixed {
    BodyAddress address;
    std::uint16_t flags = 0;
    Nonce nonce{};
    Nonce reply_to{};
    std::size_t header_length = 0;
    std::size_t frames_length = 0;
};

/// Only what must be known to find the signature is judged: mark, version and lengths.
std::variant<Fixed, BodyError> read_fixed(ByteView bytes) {
    ByteReader reader(bytes);
    const ByteView mark = reader.bytes(std::min(body_magic.size(), bytes.size()));
    if (!std::equal(mark.begin(), mark.end(), body_magic.begin())) return BodyError::magic;
    Fixed fixed;
    if (reader.u8() != protocol_version && reader.ok()) return BodyError::version;
    fixed.address.direction = reader.u8();
    fixed.flags = reader.u16();
    reader.array(fixed.address.parties.remote);
    reader.array(fixed.address.parties.central);
    reader.array(fixed.nonce);
    reader.array(fixed.reply_to);
    fixed.header_length = reader.u32();
    fixed.frames_length = reader.u32();
    if (!reader.ok()) return BodyError::truncated;
    const std::size_t announced = fixed.header_length + fixed.frames_length + signature_size;
    if (reader.left() < announced) return BodyError::truncated;
    if (reader.left() > announced) return BodyError::length;
    return fixed;
}

bool signature_matches(ByteView bytes, ByteView key) {
    const ByteView content = bytes.first(bytes.size() - signature_size);
    return equal_in_constant_time(hmac_sha256(key, content), bytes.last(signature_size));
}

std::optional<BodyError> read_frames(ByteView travelled, bool compressed, std::size_t max_frames,
                                     Bytes& frames) {
    if (!compressed) {
        if (travelled.size() > max_frames) return BodyError::too_large;
        frames.assign(travelled.begin(), travelled.end());
        return std::nullopt;
    }
    DecompressError error{};
    std::optional<Bytes> content = decompress(travelled, max_frames, error);
    if (!content) return error == DecompressError::too_large ? BodyError::too_large : BodyError::content;
    frames = std::move(*content);
    return std::nullopt;
}

bool read_header(const Fixed& fixed, ByteView bytes, Body& body) {
    if (fixed.address.direction == direction_to_central) {
        auto header = read_remote_header(bytes);
        // A body of A answers nothing.
        if (!header) return false;
        body.header = std::move(*header);
    } else {
        auto header = read_central_header(bytes);
        if (!header) return false;
        body.header = *header;
    }
    return true;
}

}  // namespace

const char* describe(BodyError error) {
    switch (error) {
        case BodyError::truncated:
            return "body is cut off";
        case BodyError::magic:
            return "body does not begin with its mark";
        case BodyError::version:
            return "body has an unknown protocol version";
        case BodyError::length:
            return "body is longer than it says";
        case BodyError::signature:
            return "body has a wrong signature";
        case BodyError::direction:
            return "body has an unknown direction";
        case BodyError::content:
            return "body has invalid content";
        case BodyError::too_large:
            return "body announces more data than is taken";
    }
    return "body cannot be read";
}

Bytes encode_body(const Body& body, ByteView key, const BodyOptions& options) {
    const auto* remote = std::get_if<RemoteHeader>(&body.header);
    const std::optional<Bytes> compressed = compress(body.frames, options.compression);
    const ByteView frames = compressed ? ByteView(*compressed) : ByteView(body.frames);
    Bytes out;
    const std::size_t batches = remote ? remote->batches.size() * batch_size : 0;
    out.reserve(2 * fixed_size + batches + frames.size() + signature_size);

    ByteWriter writer(out);
    writer.bytes(body_magic);
    writer.u8(protocol_version);
    writer.u8(remote ? direction_to_central : direction_to_remote);
    writer.u16(compressed ? flag_compressed : 0);
    writer.bytes(body.parties.remote);
    writer.bytes(body.parties.central);
    writer.bytes(body.nonce);
    writer.bytes(body.reply_to);
    writer.u64(0);  // both lengths, below
    std::visit([&](const auto& header) { write(writer, header); }, body.header);
    put_lengths(out.size() - fixed_size, frames.size(), out);
    writer.bytes(frames);
    writer.bytes(hmac_sha256(key, out));
    return out;
}

std::variant<BodyAddress, BodyError> read_address(ByteView bytes) {
    const auto fixed = read_fixed(bytes);
    if (const auto* error = std::get_if<BodyError>(&fixed)) return *error;
    return std::get<Fixed>(fixed).address;
}

std::variant<Body, BodyError> decode_body(ByteView bytes, ByteView key, std::size_t max_frames) {
    const auto read = read_fixed(bytes);
    if (const auto* error = std::get_if<BodyError>(&read)) return *error;
    if (!signature_matches(bytes, key)) return BodyError::signature;

    const Fixed& fixed = std::get<Fixed>(read);
    if (fixed.address.direction > direction_to_remote) return BodyError::direction;
    if ((fixed.flags & ~flag_compressed) != 0) return BodyError::content;
    Body body;
    body.parties = fixed.address.parties;
    body.nonce = fixed.nonce;
    body.reply_to = fixed.reply_to;
    if (!read_header(fixed, bytes.subspan(fixed_size, fixed.header_length), body)) return BodyError::content;
    const ByteView frames = bytes.subspan(fixed_size + fixed.header_length, fixed.frames_length);
    const bool compressed = (fixed.flags & flag_compressed) != 0;
    if (const auto error = read_frames(frames, compressed, max_frames, body.frames)) return *error;
    if (compressed) body.compressed.assign(frames.begin(), frames.end());
    return body;
}

}  // namespace onerepl
