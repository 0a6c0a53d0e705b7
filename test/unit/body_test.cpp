// Bodies: vectors both ways, and everything that can be wrong with one (P10, P14).
#include "core/body.h"

#include "core/bytes.h"
#include "core/compression.h"
#include "core/crypto.h"
#include "messages.h"
#include "vectors.h"

#include <gtest/gtest.h>

#include <random>

namespace onerepl {
namespace {

constexpr std::size_t max_frames = 1 << 20;
constexpr BodyOptions stored{.compression = 0};

// ---------------------------------------------------------------- vectors

RemoteHeader remote_header_from(const test::Section& section) {
    RemoteHeader header{.process = section.id("process"),
                        .heard = section.number("heard"),
                        .start = section.number("start"),
                        .start_identity = section.id("start_identity"),
                        .confirmed = section.number("confirmed"),
                        .last = section.number("last"),
                        .sent = section.number("sent"),
                        .blocked_at = section.number("blocked_at"),
                        .oldest = section.number("oldest"),
                        .age = static_cast<Time>(section.number("age")),
                        .paused = section.flag("paused"),
                        .capture_stopped = false,
                        .stop = static_cast<Stop>(section.number("stop")),
                        .batches = {}};
    for (const std::string& line : section.all("batch")) header.batches.push_back(test::batch_from(line));
    return header;
}

CentralHeader central_header_from(const test::Section& section) {
    return {.started = section.flag("started"),
            .taken = section.flag("taken"),
            .hearing = section.number("hearing"),
            .written = section.number("written"),
            .identity = section.id("identity"),
            .held = section.number("held"),
            .room = section.number("room"),
            .flow = static_cast<FlowState>(section.number("flow")),
            .failed_at = section.number("failed_at"),
            .stop = static_cast<Stop>(section.number("stop"))};
}

Body body_from(const test::Section& section) {
    Body body{.parties = {section.id("remote"), section.id("central")},
              .nonce = section.id("nonce"),
              .reply_to = section.id("reply_to"),
              .header = {},
              .frames = section.bytes("frames")};
    if (section.number("direction") == 0)
        body.header = remote_header_from(section);
    else
        body.header = central_header_from(section);
    return body;
}

void expect_same(const Body& a, const Body& b) {
    EXPECT_EQ(a.parties, b.parties);
    EXPECT_EQ(a.nonce, b.nonce);
    EXPECT_EQ(a.reply_to, b.reply_to);
    EXPECT_EQ(a.header, b.header);
    EXPECT_EQ(to_hex(a.frames), to_hex(b.frames));
}

TEST(BodyVectors, EncodeAndDecodeBothWays) {
    for (const test::Section& section : test::read_vectors("bodies.txt")) {
        SCOPED_TRACE(section.title);
        const Body body = body_from(section);
        const Bytes key = section.bytes("key");
        const std::string signer = section.number("direction") == 0 ? "remote" : "central";
        EXPECT_EQ(to_hex(sha256(view("onerepl 1 " + signer + "\n" + section.text("secret")))), to_hex(key));
        const Bytes bytes = section.bytes("body");
        const bool compressed = (bytes.at(7) & 1) != 0;
        // What a compressor writes is its own affair; only a body that is not compressed has one encoding.
        if (!compressed) {
            EXPECT_EQ(to_hex(encode_body(body, key, stored)), to_hex(bytes));
        }
        const auto decoded = decode_body(bytes, key, max_frames);
        ASSERT_TRUE(std::holds_alternative<Body>(decoded));
        expect_same(std::get<Body>(decoded), body);

        const auto address = read_address(bytes);
        ASSERT_TRUE(std::holds_alternative<BodyAddress>(address));
        EXPECT_EQ(std::get<BodyAddress>(address).direction, section.number("direction"));
        EXPECT_EQ(std::get<BodyAddress>(address).parties, body.parties);
        EXPECT_EQ(test::count_good(test::read_all(body.parties, body.frames)),
                  test::read_all(body.parties, body.frames).size());
    }
}

// ---------------------------------------------------------------- what is refused

const Bytes secret(32, 's');

Body body_of_remote() {
    Body body{.parties = test::parties, .nonce = {1}, .reply_to = {}, .header = {}, .frames = {}};
    body.header = RemoteHeader{.start = 1, .last = 9, .batches = {{{5, 9}, {1}, {2}}}};
    body.frames = test::frames_of(test::parties, test::one_of_each_kind());
    return body;
}

Body body_of_central() {
    Body body = body_of_remote();
    body.reply_to = {1};
    body.header = CentralHeader{.started = true, .written = 4, .held = 5, .room = 1000};
    return body;
}

std::optional<BodyError> error_of(ByteView bytes, ByteView under = secret, std::size_t limit = max_frames) {
    const auto result = decode_body(bytes, under, limit);
    const auto* error = std::get_if<BodyError>(&result);
    return error ? std::optional(*error) : std::nullopt;
}

/// Encoded without compression, changed at `at`, and signed again.
Bytes altered(const Body& body, std::size_t at, ByteView with) {
    Bytes bytes = encode_body(body, secret, stored);
    std::copy(with.begin(), with.end(), bytes.begin() + static_cast<std::ptrdiff_t>(at));
    const Sha256 signature = hmac_sha256(secret, ByteView(bytes).first(bytes.size() - 32));
    std::copy(signature.begin(), signature.end(), bytes.end() - 32);
    return bytes;
}

TEST(Body, RoundTripWithAndWithoutCompression) {
    for (const Body& body : {body_of_remote(), body_of_central()}) {
        for (int level : {0, 1, 3, 19, 22}) {
            const Bytes bytes = encode_body(body, secret, {.compression = level});
            const auto decoded = decode_body(bytes, secret, max_frames);
            ASSERT_TRUE(std::holds_alternative<Body>(decoded)) << level;
            expect_same(std::get<Body>(decoded), body);
        }
    }
}

TEST(Body, IsCompressedOnlyIfThatPays) {
    Body body = body_of_remote();
    body.frames.assign(5000, 'a');
    EXPECT_LT(encode_body(body, secret, {.compression = 1}).size(), 500u);
    fill_random(body.frames);
    EXPECT_EQ(encode_body(body, secret, {.compression = 1}), encode_body(body, secret, stored));
    body.frames.clear();
    EXPECT_EQ(encode_body(body, secret, {.compression = 1}), encode_body(body, secret, stored));
    EXPECT_EQ(error_of(encode_body(body, secret, stored)), std::nullopt);
}

TEST(BodyRefused, CutAtEveryByte) {
    for (const Body& body : {body_of_remote(), body_of_central()}) {
        const Bytes bytes = encode_body(body, secret, {});
        for (std::size_t size = 0; size < bytes.size(); ++size) {
            const ByteView cut = ByteView(bytes).first(size);
            EXPECT_EQ(error_of(cut), BodyError::truncated) << size;
            EXPECT_TRUE(std::holds_alternative<BodyError>(read_address(cut))) << size;
        }
    }
}

TEST(BodyRefused, EveryBitFlipped) {
    for (const Body& body : {body_of_remote(), body_of_central()}) {
        Bytes bytes = encode_body(body, secret, {});
        for (std::size_t at = 0; at < bytes.size(); ++at) {
            for (int bit = 0; bit < 8; ++bit) {
                bytes[at] ^= static_cast<std::uint8_t>(1 << bit);
                const auto error = error_of(bytes);
                ASSERT_TRUE(error) << at;
                if (at >= 5 && at < 72) {
                    EXPECT_EQ(*error, BodyError::signature) << at;
                }
                bytes[at] ^= static_cast<std::uint8_t>(1 << bit);
            }
        }
    }
}

TEST(BodyRefused, BatchesThatDescendOrComeTwice) {
    Body body = body_of_remote();
    auto& batches = std::get<RemoteHeader>(body.header).batches;
    batches = {{{5, 9}, {1}, {2}}, {{10, 12}, {3}, {4}}};
    EXPECT_EQ(error_of(encode_body(body, secret, stored)), std::nullopt);
    for (const Range second : {Range{5, 9}, Range{9, 12}, Range{1, 4}}) {
        batches[1].numbers = second;
        EXPECT_EQ(error_of(encode_body(body, secret, stored)), BodyError::content) << second.first;
    }
}

TEST(BodyRefused, WrongSecret) {
    const Bytes bytes = encode_body(body_of_remote(), secret, {});
    EXPECT_EQ(error_of(bytes, view("another secret")), BodyError::signature);
    EXPECT_EQ(error_of(bytes, {}), BodyError::signature);
}

TEST(BodyRefused, LongerThanItSays) {
    Bytes bytes = encode_body(body_of_remote(), secret, {});
    bytes.push_back(0);
    EXPECT_EQ(error_of(bytes), BodyError::length);
    bytes.pop_back();
    const Bytes twice(bytes.size() * 2, 0);
    EXPECT_EQ(error_of(twice), BodyError::magic);
}

/// P10: a body sent back to its sender is told by its direction, which is signed.
TEST(BodyRefused, Reflected) {
    const auto decoded = decode_body(encode_body(body_of_remote(), secret, {}), secret, max_frames);
    EXPECT_FALSE(std::holds_alternative<CentralHeader>(std::get<Body>(decoded).header));
    Bytes turned = encode_body(body_of_remote(), secret, {});
    turned[5] = 1;
    EXPECT_EQ(error_of(turned), BodyError::signature);
}

TEST(BodyRefused, ContentThatIsSignedButInvalid) {
    const auto expect = [](const Body& body, std::size_t at, ByteView with, BodyError error) {
        EXPECT_EQ(error_of(altered(body, at, with)), error) << at;
    };
    const auto byte = [](int value) { return big_endian(static_cast<std::uint8_t>(value)); };
    const Body remote = body_of_remote();
    expect(remote, 4, byte(2), BodyError::version);
    expect(remote, 5, byte(2), BodyError::direction);
    expect(remote, 5, byte(1), BodyError::content);
    expect(remote, 6, big_endian(std::uint16_t{2}), BodyError::content);
    expect(remote, 6, big_endian(std::uint16_t{1}), BodyError::content);  // not compressed
    expect(remote, 104, byte(0x80), BodyError::content);                  // start beyond the largest number
    expect(remote, 160, byte(0x80), BodyError::content);                  // oldest
    expect(remote, 168, byte(0x80), BodyError::content);                  // age
    expect(remote, 176, byte(4), BodyError::content);                     // flags
    expect(remote, 177, byte(7), BodyError::content);                     // stop
    expect(remote, 178, big_endian(std::uint32_t{2}), BodyError::content);
    expect(remote, 178, big_endian(std::uint32_t{0xffffffff}), BodyError::content);
    expect(remote, 182, big_endian(std::uint64_t{0}), BodyError::content);   // batch from 0 on
    expect(remote, 182, big_endian(std::uint64_t{10}), BodyError::content);  // empty batch
    const Body central = body_of_central();
    expect(central, 5, byte(0), BodyError::content);
    expect(central, 80, byte(4), BodyError::content);      // flags
    expect(central, 81, byte(4), BodyError::content);      // flow
    expect(central, 82, byte(7), BodyError::content);      // stop
    expect(central, 91, byte(0x80), BodyError::content);   // written
    expect(central, 123, byte(0x40), BodyError::content);  // room
    expect(central, 131, byte(0x40), BodyError::content);  // failed_at
}

TEST(BodyRefused, LengthsThatAddUpDifferently) {
    // A byte of the frames moved to the header: the sum is right, the content is not.
    const Body remote = body_of_remote();
    const Bytes plain = encode_body(remote, secret, stored);
    ByteReader reader(ByteView(plain).subspan(72));
    const std::uint32_t header = reader.u32();
    const std::uint32_t frames = reader.u32();
    Bytes lengths;
    ByteWriter writer(lengths);
    writer.u32(header + 1);
    writer.u32(frames - 1);
    EXPECT_EQ(error_of(altered(remote, 72, lengths)), BodyError::content);
    EXPECT_EQ(error_of(altered(remote, 72, big_endian(std::uint64_t{0xffffffffffffffff}))),
              BodyError::truncated);
}

// ---------------------------------------------------------------- sizes (P14)

TEST(BodyRefused, MoreFramesThanTaken) {
    Body body = body_of_remote();
    body.frames.assign(1000, 'a');
    for (int level : {0, 1}) {
        const Bytes bytes = encode_body(body, secret, {.compression = level});
        EXPECT_EQ(error_of(bytes, secret, 1000), std::nullopt) << level;
        EXPECT_EQ(error_of(bytes, secret, 999), BodyError::too_large) << level;
    }
}

TEST(BodyRefused, ZstdBombIsNotUnpacked) {
    Body body = body_of_remote();
    body.frames.assign(64 << 20, 0);
    const Bytes bytes = encode_body(body, secret, {.compression = 19});
    EXPECT_LT(bytes.size(), 20000u);
    EXPECT_EQ(error_of(bytes), BodyError::too_large);
}

std::optional<DecompressError> decompress_error(const Bytes& bytes, std::size_t limit = max_frames) {
    DecompressError error{};
    return decompress(bytes, limit, error) ? std::nullopt : std::optional(error);
}

TEST(Decompress, RefusesWhatDoesNotSayItsSizeOrIsMoreThanOneFrame) {
    const Bytes content(3000, 'x');
    const Bytes good = *compress(content, 1);
    EXPECT_EQ(decompress_error(good), std::nullopt);
    Bytes two = good;
    two.insert(two.end(), good.begin(), good.end());
    EXPECT_EQ(decompress_error(two), DecompressError::malformed);
    // One raw block "x", without a size in the header (a descriptor that demands a window instead).
    EXPECT_EQ(decompress_error(test::from_hex("28b52ffd0000"
                                              "090000"
                                              "78")),
              DecompressError::malformed);
    // Announces 2^60 bytes.
    EXPECT_EQ(decompress_error(test::from_hex("28b52ffde0"
                                              "0000000000000010"
                                              "090000"
                                              "78")),
              DecompressError::too_large);
    // Announces two bytes and holds one.
    EXPECT_EQ(decompress_error(test::from_hex("28b52ffd2002"
                                              "090000"
                                              "78")),
              DecompressError::malformed);
    // A skippable frame.
    EXPECT_EQ(decompress_error(test::from_hex("502a4d18"
                                              "01000000"
                                              "78")),
              DecompressError::malformed);
    EXPECT_EQ(decompress_error({}), DecompressError::malformed);
}

TEST(Decompress, SurvivesGarbage) {
    std::mt19937 random(1);
    const Bytes good = *compress(Bytes(3000, 'x'), 1);
    for (int round = 0; round < 3000; ++round) {
        Bytes bytes = good;
        for (int flips = 0; flips < 3; ++flips)
            bytes[random() % bytes.size()] = static_cast<std::uint8_t>(random());
        DecompressError error{};
        decompress(bytes, max_frames, error);
    }
}

TEST(Body, ErrorsAndStopsHaveTexts) {
    for (int error = 0; error <= static_cast<int>(BodyError::too_large); ++error)
        EXPECT_STRNE(describe(static_cast<BodyError>(error)), "body cannot be read");
    for (int stop = 1; stop <= static_cast<int>(Stop::copies); ++stop)
        EXPECT_STRNE(describe(static_cast<Stop>(stop)), "the link is stopped for an unknown reason");
}

}  // namespace
}  // namespace onerepl
