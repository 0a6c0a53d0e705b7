// Any bytes as a body: once as they are, and once with mark, version, lengths and signature made right, so
// that the search gets past the signature.
#include "core/body.h"
#include "core/bytes.h"
#include "core/crypto.h"

#include "check.h"

#include <algorithm>

namespace {

using namespace onerepl;

constexpr std::size_t max_frames = 1 << 16;
constexpr std::size_t fixed_size = 80;
constexpr std::size_t lengths_at = 72;

ByteView secret() {
    return view("a secret of the fuzzer");
}

/// What is taken for a body says the same when it is written and read again.
void read(const Bytes& bytes) {
    const auto result = decode_body(bytes, secret(), max_frames);
    const auto* body = std::get_if<Body>(&result);
    if (body == nullptr) return;
    ONEREPL_DEMAND(body->frames.size() <= max_frames);
    const Bytes again = encode_body(*body, secret(), {.compression = 0});
    const bool compressed = (bytes[7] & 1) != 0;
    ONEREPL_DEMAND(compressed || again == bytes);
    const auto reread = decode_body(again, secret(), max_frames);
    ONEREPL_DEMAND(std::get<Body>(reread).header == body->header);
    ONEREPL_DEMAND(std::get<Body>(reread).frames == body->frames);
}

/// The first two bytes say how long the header is; what follows is the body without its signature.
Bytes repaired(ByteView input) {
    ByteReader reader(input);
    const std::size_t wanted = reader.u16();
    const ByteView rest = reader.bytes(reader.left());
    Bytes bytes(rest.begin(), rest.end());
    bytes.resize(std::max(bytes.size(), fixed_size));
    std::copy_n("ORPB\1", 5, bytes.begin());
    const std::size_t header = std::min(wanted, bytes.size() - fixed_size);
    Bytes lengths;
    ByteWriter writer(lengths);
    writer.u32(static_cast<std::uint32_t>(header));
    writer.u32(static_cast<std::uint32_t>(bytes.size() - fixed_size - header));
    std::copy(lengths.begin(), lengths.end(), bytes.begin() + lengths_at);
    const Sha256 signature = hmac_sha256(secret(), bytes);
    bytes.insert(bytes.end(), signature.begin(), signature.end());
    return bytes;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    read(Bytes(data, data + size));
    read(repaired({data, size}));
    return 0;
}
