// Frames: vectors both ways, damage, and what is refused.
#include "core/frame.h"

#include "core/bytes.h"
#include "core/crypto.h"
#include "messages.h"
#include "vectors.h"

#include <gtest/gtest.h>

#include <random>

namespace onerepl {
namespace {

using test::parties;
using test::read_all;

FrameError error_of(const FrameResult& result) {
    const auto* error = std::get_if<FrameError>(&result.value);
    EXPECT_NE(error, nullptr) << "a message where an error was expected";
    return error ? *error : FrameError::truncated;
}

// ---------------------------------------------------------------- vectors

std::vector<Range> ranges_from(const std::string& text) {
    std::vector<Range> ranges;
    for (const std::string& word : test::words(text)) ranges.push_back(test::range_from(word));
    return ranges;
}

/// "40..44/0..4294967295": numbers, then parts.
std::vector<Missing> missing_from(const std::string& text) {
    std::vector<Missing> list;
    for (const std::string& word : test::words(text)) {
        const std::size_t slash = word.find('/');
        const Range parts = test::range_from(word.substr(slash + 1));
        list.push_back({test::range_from(word.substr(0, slash)), static_cast<std::uint32_t>(parts.first),
                        static_cast<std::uint32_t>(parts.last)});
    }
    return list;
}

ObjectTransfer transfer_from(const test::Section& section, const Bytes& record) {
    return {.n = section.number("n"),
            .last_of_transaction = section.flag("last_of_transaction"),
            .part = static_cast<std::uint32_t>(section.number("part")),
            .parts = static_cast<std::uint32_t>(section.number("parts")),
            .record = record};
}

/// `data` holds what the message points into.
Message message_from(const test::Section& section, Bytes& data) {
    switch (Kind{static_cast<std::uint8_t>(section.number("kind"))}) {
        case Kind::object_transfer:
            data = section.bytes("record");
            return transfer_from(section, data);
        case Kind::confirmation_request:
            return ConfirmationRequest{ranges_from(section.text("numbers"))};
        case Kind::remote_state:
            return RemoteState{section.number("echo")};
        case Kind::transfer_confirmation:
            return TransferConfirmation{ranges_from(section.text("numbers"))};
        case Kind::transfer_request:
            return TransferRequest{missing_from(section.text("missing"))};
        case Kind::state_request:
            return StateRequest{section.number("written")};
        case Kind::description_request: {
            DescriptionRequest request;
            for (const std::string& id : test::words(section.text("ids")))
                request.ids.push_back(std::stoull(id));
            return request;
        }
        case Kind::description:
            data = section.bytes("description");
            return Description{data};
    }
    ADD_FAILURE() << "unknown kind";
    return RemoteState{};
}

TEST(FrameVectors, EncodeAndDecodeBothWays) {
    std::set<Kind> kinds;
    for (const test::Section& section : test::read_vectors("frames.txt")) {
        SCOPED_TRACE(section.title);
        Bytes data;
        const Message message = message_from(section, data);
        const Parties from_to{section.id("remote"), section.id("central")};
        const Bytes frame = section.bytes("frame");
        EXPECT_EQ(to_hex(test::frames_of(from_to, {&message, 1})), to_hex(frame));

        const auto results = read_all(from_to, frame);
        ASSERT_EQ(results.size(), 1u);
        ASSERT_EQ(test::count_good(results), 1u);
        const Message& decoded = std::get<Message>(results[0].value);
        EXPECT_EQ(decoded.index(), message.index());
        EXPECT_TRUE(test::same(decoded, message));
        EXPECT_EQ(to_hex(results[0].bytes), to_hex(frame));
        kinds.insert(kind_of(message));
    }
    EXPECT_EQ(kinds.size(), 8u) << "a vector for each kind";
}

TEST(Frame, ListsKeepTheirContent) {
    const auto messages = test::one_of_each_kind();
    const Bytes frames = test::frames_of(parties, messages);
    const auto results = read_all(parties, frames);
    ASSERT_EQ(results.size(), messages.size());
    ASSERT_EQ(test::count_good(results), messages.size());
    const auto get = [&](std::size_t i) { return std::get<Message>(results[i].value); };
    EXPECT_EQ(std::get<ConfirmationRequest>(get(1)).numbers,
              std::get<ConfirmationRequest>(messages[1]).numbers);
    EXPECT_EQ(std::get<TransferRequest>(get(4)).numbers, std::get<TransferRequest>(messages[4]).numbers);
    EXPECT_EQ(std::get<DescriptionRequest>(get(6)).ids, std::get<DescriptionRequest>(messages[6]).ids);
    EXPECT_EQ(results[0].n, 42u);
}

// ---------------------------------------------------------------- damage (P1)

TEST(FrameDamage, EachByteCountsAndNeighboursAreStillRead) {
    const auto messages = test::one_of_each_kind();
    for (const Message& middle : messages) {
        const Message neighbour = ObjectTransfer{.n = 7, .record = view("neighbour")};
        const Bytes before = test::frames_of(parties, {&neighbour, 1});
        const Bytes damaged = test::frames_of(parties, {&middle, 1});
        Bytes frames = before;
        frames.insert(frames.end(), damaged.begin(), damaged.end());
        frames.insert(frames.end(), before.begin(), before.end());
        for (std::size_t at = 0; at < damaged.size(); ++at) {
            for (std::uint8_t flip : {0x01, 0x80, 0xff}) {
                SCOPED_TRACE(std::string(name_of(kind_of(middle))) + ", byte " + std::to_string(at));
                frames[before.size() + at] ^= flip;
                const auto results = read_all(parties, frames);
                frames[before.size() + at] ^= flip;
                EXPECT_EQ(test::count_good(results), 2u);
                EXPECT_TRUE(std::holds_alternative<Message>(results.front().value));
                EXPECT_TRUE(std::holds_alternative<Message>(results.back().value));
                EXPECT_GE(results.size(), 3u);
                if (testing::Test::HasFailure()) return;
            }
        }
    }
}

TEST(FrameDamage, CutAtEveryByteKeepsWhatIsWhole) {
    const auto messages = test::one_of_each_kind();
    const Bytes frames = test::frames_of(parties, messages);
    std::vector<std::size_t> ends;
    for (const auto& result : read_all(parties, frames))
        ends.push_back((ends.empty() ? 0 : ends.back()) + result.bytes.size());
    for (std::size_t size = 0; size < frames.size(); ++size) {
        const Bytes cut(frames.begin(), frames.begin() + static_cast<std::ptrdiff_t>(size));
        const auto whole =
            std::count_if(ends.begin(), ends.end(), [&](std::size_t end) { return end <= size; });
        EXPECT_EQ(test::count_good(read_all(parties, cut)), static_cast<std::size_t>(whole)) << size;
    }
}

TEST(FrameDamage, GarbageBetweenFramesIsSkipped) {
    const Message message = RemoteState{5};
    const Bytes frame = test::frames_of(parties, {&message, 1});
    Bytes frames(10, 'O');
    frames.insert(frames.end(), frame.begin(), frame.end());
    frames.insert(frames.end(), {'O', 'R', 'P'});
    frames.insert(frames.end(), frame.begin(), frame.end());
    const auto results = read_all(parties, frames);
    ASSERT_EQ(results.size(), 4u);
    EXPECT_EQ(error_of(results[0]), FrameError::magic);
    EXPECT_EQ(results[0].bytes.size(), 10u);
    EXPECT_EQ(error_of(results[2]), FrameError::magic);
    EXPECT_EQ(test::count_good(results), 2u);
}

TEST(FrameDamage, AFrameInsideADamagedOnesDataIsNotTakenForAMessage) {
    const Message inner = TransferConfirmation{{{1, 1000000}}};
    const Bytes data = test::frames_of(parties, {&inner, 1});
    const Message outer = ObjectTransfer{.n = 9, .record = data};
    Bytes frames = test::frames_of(parties, {&outer, 1});
    frames[30] ^= 1;
    const auto results = read_all(parties, frames);
    ASSERT_EQ(results.size(), 1u);
    EXPECT_EQ(error_of(results[0]), FrameError::checksum);
}

TEST(FrameDamage, RandomBytesNeverGiveAMessage) {
    std::mt19937 random(1);
    for (int round = 0; round < 2000; ++round) {
        Bytes bytes(std::uniform_int_distribution<std::size_t>(0, 400)(random));
        for (auto& byte : bytes) byte = static_cast<std::uint8_t>(random());
        if (bytes.size() >= 4) std::copy_n("ORPF", 4, bytes.begin());
        EXPECT_EQ(test::count_good(read_all(parties, bytes)), 0u);
    }
}

/// Every fourth byte begins a frame that claims the rest: a reader that checks each to the end would take
/// hours.
TEST(FrameDamage, ManyFalseFramesTakeLinearTime) {
    Bytes frames;
    while (frames.size() < 4'000'000) frames.insert(frames.end(), {'O', 'R', 'P', 'F'});
    ByteWriter writer(frames);
    for (std::size_t at = 0; at + 200 < frames.size(); at += 100) {
        const auto length =
            big_endian(static_cast<std::uint32_t>(frames.size() - at - frame_header_size - 1));
        std::copy(length.begin(), length.end(), frames.begin() + static_cast<std::ptrdiff_t>(at) + 72);
    }
    EXPECT_EQ(test::count_good(read_all(parties, frames)), 0u);
}

// ---------------------------------------------------------------- what is refused though its checksum is
// right

/// A frame of `message` with one field overwritten, and its checksum made right again.
Bytes altered(const Message& message, std::size_t at, ByteView with) {
    Bytes frame = test::frames_of(parties, {&message, 1});
    std::copy(with.begin(), with.end(), frame.begin() + static_cast<std::ptrdiff_t>(at));
    std::fill_n(frame.begin() + 8, 16, std::uint8_t{0});
    const Md5 checksum = md5(frame);
    std::copy(checksum.begin(), checksum.end(), frame.begin() + 8);
    return frame;
}

void expect_refused(const Message& message, std::size_t at, ByteView with, FrameError error) {
    const Bytes frame = altered(message, at, with);
    const auto results = read_all(parties, frame);
    ASSERT_EQ(results.size(), 1u);
    EXPECT_EQ(error_of(results[0]), error) << name_of(kind_of(message)) << ", at " << at;
}

TEST(FrameRefused, UnknownVersionKindAndFlags) {
    const Message transfer = ObjectTransfer{.n = 1, .record = view("x")};
    expect_refused(transfer, 4, big_endian(std::uint8_t{2}), FrameError::version);
    expect_refused(transfer, 5, big_endian(std::uint8_t{0}), FrameError::kind);
    expect_refused(transfer, 5, big_endian(std::uint8_t{9}), FrameError::kind);
    expect_refused(transfer, 6, big_endian(std::uint16_t{2}), FrameError::content);
    expect_refused(RemoteState{1}, 6, big_endian(std::uint16_t{1}), FrameError::content);
}

TEST(FrameRefused, NumbersAndPartsOutOfBounds) {
    const Message transfer = ObjectTransfer{.n = 1, .part = 1, .parts = 2, .record = view("x")};
    expect_refused(transfer, 56, big_endian(std::uint64_t{0}), FrameError::content);
    expect_refused(transfer, 56, big_endian(largest_number + 1), FrameError::content);
    expect_refused(transfer, 64, big_endian(std::uint32_t{2}), FrameError::content);
    expect_refused(transfer, 68, big_endian(std::uint32_t{0}), FrameError::content);
    expect_refused(transfer, 68, big_endian(most_parts + 1), FrameError::content);
    expect_refused(RemoteState{1}, 68, big_endian(std::uint32_t{2}), FrameError::content);
    expect_refused(RemoteState{1}, 56, big_endian(largest_number + 1), FrameError::content);
}

TEST(FrameRefused, ListsThatAreNotWhatTheySay) {
    const Message request = ConfirmationRequest{{{40, 44}, {47, 47}}};
    expect_refused(request, 56, big_endian(std::uint64_t{41}),
                   FrameError::content);  // N is not the first number
    expect_refused(request, 76, big_endian(std::uint32_t{1}), FrameError::content);
    expect_refused(request, 76, big_endian(std::uint32_t{0xffffffff}), FrameError::content);
    expect_refused(request, 88, big_endian(std::uint64_t{39}), FrameError::content);  // last < first
    expect_refused(request, 88, big_endian(largest_number + 1), FrameError::content);
    const Message parts = TransferRequest{{{.numbers = {40, 40}, .first_part = 1, .last_part = 2}}};
    expect_refused(parts, 88, big_endian(std::uint64_t{41}), FrameError::content);  // parts of two numbers
    expect_refused(parts, 100, big_endian(std::uint32_t{0}), FrameError::content);  // last part < first part
    expect_refused(parts, 100, big_endian(most_parts), FrameError::content);
    expect_refused(parts, 100, big_endian(std::uint32_t{0xffffffff}), FrameError::content);  // and not all
}

TEST(FrameRefused, OtherParties) {
    const Message message = RemoteState{5};
    const Bytes frame = test::frames_of(parties, {&message, 1});
    Parties other = parties;
    other.remote[15] ^= 1;
    EXPECT_EQ(error_of(read_all(other, frame).at(0)), FrameError::parties);
    other = parties;
    other.central[15] ^= 1;
    EXPECT_EQ(error_of(read_all(other, frame).at(0)), FrameError::parties);
}

TEST(Frame, APartyThatIsNotKnownYetIsNotCompared) {
    const Message message = RemoteState{5};
    const Parties unknown{parties.remote, {}};
    const Bytes first = test::frames_of(unknown, {&message, 1});
    EXPECT_EQ(test::count_good(read_all(parties, first)), 1u);
    const Bytes later = test::frames_of(parties, {&message, 1});
    EXPECT_EQ(test::count_good(read_all(unknown, later)), 1u);
}

TEST(Frame, NamesAndErrorsHaveTexts) {
    for (const Message& message : test::one_of_each_kind())
        EXPECT_STRNE(name_of(kind_of(message)), "unknown kind");
    for (int error = 0; error <= static_cast<int>(FrameError::content); ++error)
        EXPECT_STRNE(describe(static_cast<FrameError>(error)), "message cannot be read");
}

}  // namespace
}  // namespace onerepl
