// Any bytes as frames: once as they are, and once with magic, length and checksum of each frame made right,
// so that the search gets past the checksum.
#include "core/bytes.h"
#include "core/crypto.h"
#include "core/frame.h"

#include "check.h"

#include <algorithm>

namespace {

using namespace onerepl;

constexpr std::size_t checksum_at = 8;
constexpr std::size_t length_at = 72;

/// Every byte is accounted for, and what is taken for a message is written again as the same bytes.
void read_all(const Bytes& frames) {
    FrameReader reader({}, frames);
    std::size_t seen = 0;
    while (!reader.at_end()) {
        const FrameResult result = reader.next();
        ONEREPL_DEMAND(!result.bytes.empty());
        ONEREPL_DEMAND(result.bytes.data() == frames.data() + seen);
        seen += result.bytes.size();
        const auto* message = std::get_if<Message>(&result.value);
        if (message == nullptr) continue;
        Parties parties;
        std::copy_n(result.bytes.begin() + 24, 16, parties.remote.begin());
        std::copy_n(result.bytes.begin() + 40, 16, parties.central.begin());
        Bytes again;
        encode_frame(parties, *message, again);
        ONEREPL_DEMAND(std::equal(again.begin(), again.end(), result.bytes.begin(), result.bytes.end()));
    }
    ONEREPL_DEMAND(seen == frames.size());
}

/// The input is cut into frames: a byte with the data's length, then the header's fields and the data.
Bytes repaired(ByteView input) {
    ByteReader reader(input);
    Bytes frames;
    while (reader.left() > frame_header_size) {
        const std::size_t length =
            std::min<std::size_t>(reader.u8(), reader.left() - (frame_header_size - 1));
        const ByteView bytes = reader.bytes(std::min(frame_header_size + length, reader.left()));
        const std::size_t start = frames.size();
        frames.insert(frames.end(), bytes.begin(), bytes.end());
        frames.resize(std::max(frames.size(), start + frame_header_size));
        const std::span<std::uint8_t> frame = std::span(frames).subspan(start);
        std::copy_n("ORPF\1", 5, frame.begin());
        const auto size = big_endian(static_cast<std::uint32_t>(frame.size() - frame_header_size));
        std::copy(size.begin(), size.end(), frame.begin() + length_at);
        std::fill_n(frame.begin() + checksum_at, 16, std::uint8_t{0});
        const Md5 checksum = md5(frame);
        std::copy(checksum.begin(), checksum.end(), frame.begin() + checksum_at);
    }
    return frames;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    read_all(Bytes(data, data + size));
    read_all(repaired({data, size}));
    return 0;
}
