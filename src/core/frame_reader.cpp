// Frames: how they are read, and how to go on after a damaged one (P1, P14). The layout is
// docs/protocol/wire.md, "Frames".
#include "core/frame.h"

#include "core/bytes.h"
#include "core/crypto.h"
#include "core/frame_layout.h"

#include <cassert>
#include <optional>

namespace onerepl {
namespace {

using namespace frame_layout;

bool starts_with_magic(ByteView bytes) {
    return bytes.size() >= frame_magic.size() &&
           std::equal(frame_magic.begin(), frame_magic.end(), bytes.begin());
}

/// Size of the frame at the beginning of `bytes` by its own account; nullopt if it cannot be that.
std::optional<std::size_t> announced_size(ByteView bytes) {
    if (bytes.size() < frame_header_size) return std::nullopt;
    ByteReader reader(bytes.subspan(length_at));
    const std::size_t length = reader.u32();
    if (length > bytes.size() - frame_header_size) return std::nullopt;
    return frame_header_size + length;
}

/// The checksum of a frame is taken with zeros in its place.
bool checksum_matches(ByteView frame) {
    std::array<std::uint8_t, frame_header_size> header;
    std::copy_n(frame.begin(), header.size(), header.begin());
    Md5 told;
    std::copy_n(header.begin() + checksum_at, told.size(), told.begin());
    std::fill_n(header.begin() + checksum_at, told.size(), std::uint8_t{0});
    return md5(header, frame.subspan(frame_header_size)) == told;
}

Header read_header(ByteView frame) {
    ByteReader reader(frame);
    Header header;
    reader.bytes(frame_magic.size());
    header.version = reader.u8();
    header.kind = reader.u8();
    header.flags = reader.u16();
    reader.bytes(sizeof(Md5));
    reader.array(header.parties.remote);
    reader.array(header.parties.central);
    header.n = reader.u64();
    header.part = reader.u32();
    header.parts = reader.u32();
    return header;
}

bool same_or_unknown(const Uuid& expected, const Uuid& told) {
    return expected == told || is_zero(expected) || is_zero(told);
}

bool is_valid(Range range) {
    return range.first >= 1 && !range.empty() && range.last <= largest_number;
}

Range read_range(ByteReader& reader) {
    const Number first = reader.u64();
    const Number last = reader.u64();
    return {first, last};
}

/// Reads `count` and as many items, `size` bytes each, which must be all that is left (so that nothing is
/// allocated for a count that only pretends). `read` returns whether the item is good.
template <class Read>
bool read_list(ByteReader& reader, std::size_t size, Read read) {
    const std::size_t count = reader.u32();
    if (!reader.ok() || reader.left() % size != 0 || reader.left() / size != count) return false;
    for (std::size_t i = 0; i < count; ++i)
        if (!read(count)) return false;
    return reader.ok();
}

bool read_ranges(ByteReader& reader, std::vector<Range>& ranges) {
    return read_list(reader, 16, [&](std::size_t count) {
        ranges.reserve(count);
        return is_valid(ranges.emplace_back(read_range(reader)));
    });
}

/// Parts are named of single numbers only.
bool is_valid(const Missing& missing) {
    const bool whole = missing.first_part == 0 && missing.last_part == UINT32_MAX;
    const bool some = missing.numbers.size() == 1 && missing.first_part <= missing.last_part &&
                      missing.last_part < most_parts;
    return is_valid(missing.numbers) && (whole || some);
}

bool read_missing(ByteReader& reader, std::vector<Missing>& list) {
    return read_list(reader, 24, [&](std::size_t count) {
        list.reserve(count);
        Missing& missing = list.emplace_back();
        missing.numbers = read_range(reader);
        missing.first_part = reader.u32();
        missing.last_part = reader.u32();
        return is_valid(missing);
    });
}

bool read_ids(ByteReader& reader, std::vector<std::uint64_t>& ids) {
    return read_list(reader, 8, [&](std::size_t count) {
        ids.reserve(count);
        return ids.emplace_back(reader.u64()) <= largest_number;
    });
}

std::optional<Message> read_transfer(const Header& header, ByteView data) {
    if ((header.flags & ~flag_last_of_transaction) != 0 || header.n == 0) return std::nullopt;
    if (header.part >= header.parts || header.parts > most_parts) return std::nullopt;
    ObjectTransfer message;
    message.n = header.n;
    message.last_of_transaction = (header.flags & flag_last_of_transaction) != 0;
    message.part = header.part;
    message.parts = header.parts;
    message.record = data;
    return message;
}

/// A message that is a list; N in the header repeats its first number.
template <class Kind, class List>
std::optional<Message> read_list_message(const Header& header, ByteReader& reader, List Kind::*list,
                                         bool (*read)(ByteReader&, List&), Number (*first)(const List&)) {
    Kind message;
    if (!read(reader, message.*list)) return std::nullopt;
    const Number n = (message.*list).empty() ? 0 : first(message.*list);
    if (n != header.n) return std::nullopt;
    return message;
}

Number first_range(const std::vector<Range>& ranges) {
    return ranges.front().first;
}
Number first_missing(const std::vector<Missing>& list) {
    return list.front().numbers.first;
}
Number no_number(const std::vector<std::uint64_t>&) {
    return 0;
}

/// nullopt: the content is not what the kind demands. The kind must be known.
std::optional<Message> read_message(const Header& header, ByteView data) {
    if (header.n > largest_number) return std::nullopt;
    const Kind kind{header.kind};
    if (kind == Kind::object_transfer) return read_transfer(header, data);
    if (header.flags != 0 || header.part != 0 || header.parts != 1) return std::nullopt;
    ByteReader reader(data);
    switch (kind) {
        case Kind::confirmation_request:
            return read_list_message(header, reader, &ConfirmationRequest::numbers, read_ranges, first_range);
        case Kind::transfer_confirmation:
            return read_list_message(header, reader, &TransferConfirmation::numbers, read_ranges,
                                     first_range);
        case Kind::transfer_request:
            return read_list_message(header, reader, &TransferRequest::numbers, read_missing, first_missing);
        case Kind::description_request:
            return read_list_message(header, reader, &DescriptionRequest::ids, read_ids, no_number);
        case Kind::remote_state:
            return data.empty() ? std::optional<Message>(RemoteState{header.n}) : std::nullopt;
        case Kind::state_request:
            return data.empty() ? std::optional<Message>(StateRequest{header.n}) : std::nullopt;
        case Kind::description:
            return header.n == 0 ? std::optional<Message>(Description{data}) : std::nullopt;
        case Kind::object_transfer:
            break;
    }
    return std::nullopt;
}

bool is_known_kind(std::uint8_t kind) {
    return kind >= static_cast<std::uint8_t>(Kind::object_transfer) &&
           kind <= static_cast<std::uint8_t>(Kind::description);
}

/// A frame whose checksum was right.
std::variant<Message, FrameError> read_frame(const Header& header, const Parties& expected, ByteView data) {
    if (header.version != version) return FrameError::version;
    if (!is_known_kind(header.kind)) return FrameError::kind;
    if (!same_or_unknown(expected.remote, header.parties.remote)) return FrameError::parties;
    if (!same_or_unknown(expected.central, header.parties.central)) return FrameError::parties;
    std::optional<Message> message = read_message(header, data);
    if (!message) return FrameError::content;
    return std::move(*message);
}

}  // namespace

/// Whether a frame of `size` bytes would end where the next one begins, or at the end.
bool FrameReader::ends_at_boundary(std::size_t size) const {
    return size == rest_.size() || starts_with_magic(rest_.subspan(size));
}

/// How far the next frame is away from a damaged one. The damaged frame's own length is believed if it leads
/// to a boundary; then nothing inside its data can be taken for a frame. Otherwise the next magic whose
/// length fits counts.
std::size_t FrameReader::damaged_size() const {
    if (const auto size = announced_size(rest_); size && ends_at_boundary(*size)) return *size;
    for (std::size_t at = 1; at + frame_header_size <= rest_.size(); ++at) {
        const auto found = std::search(rest_.begin() + static_cast<std::ptrdiff_t>(at), rest_.end(),
                                       frame_magic.begin(), frame_magic.end());
        at = static_cast<std::size_t>(found - rest_.begin());
        if (announced_size(rest_.subspan(at))) return at;
    }
    return rest_.size();
}

FrameResult FrameReader::skip_damaged(FrameError error, std::size_t size) {
    FrameResult result{error, 0, rest_.first(size)};
    if (starts_with_magic(rest_) && rest_.size() >= frame_header_size) result.n = read_header(rest_).n;
    rest_ = rest_.subspan(size);
    return result;
}

FrameResult FrameReader::next() {
    assert(!at_end());
    if (!starts_with_magic(rest_)) return skip_damaged(FrameError::magic, damaged_size());
    if (rest_.size() < frame_header_size) return skip_damaged(FrameError::truncated, rest_.size());
    const auto size = announced_size(rest_);
    if (!size) return skip_damaged(FrameError::length, damaged_size());

    const bool trusted = ends_at_boundary(*size);
    if (!trusted && *size > may_hash_in_vain_) return skip_damaged(FrameError::checksum, damaged_size());
    if (!checksum_matches(rest_.first(*size))) {
        if (!trusted) may_hash_in_vain_ -= *size;
        return skip_damaged(FrameError::checksum, damaged_size());
    }
    const ByteView frame = rest_.first(*size);
    rest_ = rest_.subspan(*size);
    const Header header = read_header(frame);
    return {read_frame(header, expected_, frame.subspan(frame_header_size)), header.n, frame};
}

}  // namespace onerepl
