// Messages for tests.
#include "messages.h"

#include <algorithm>

namespace onerepl::test {

std::vector<Message> one_of_each_kind() {
    static const Bytes record(100, 0x5a);
    return {ObjectTransfer{.n = 42, .last_of_transaction = true, .part = 1, .parts = 3, .record = record},
            ConfirmationRequest{{{40, 44}, {47, 47}}},
            RemoteState{39},
            TransferConfirmation{{{40, 44}}},
            TransferRequest{{{.numbers = {40, 44}}, {.numbers = {47, 47}, .first_part = 1, .last_part = 2}}},
            StateRequest{39},
            DescriptionRequest{{7, 9}},
            Description{record}};
}

bool same(const Message& a, const Message& b) {
    return frames_of(parties, {&a, 1}) == frames_of(parties, {&b, 1});
}

Bytes frames_of(const Parties& from_to, std::span<const Message> messages) {
    Bytes frames;
    for (const Message& message : messages) encode_frame(from_to, message, frames);
    return frames;
}

std::vector<FrameResult> read_all(const Parties& expected, ByteView frames) {
    std::vector<FrameResult> results;
    FrameReader reader(expected, frames);
    while (!reader.at_end()) results.push_back(reader.next());
    return results;
}

std::size_t count_good(std::span<const FrameResult> results) {
    return static_cast<std::size_t>(std::count_if(results.begin(), results.end(), [](const FrameResult& one) {
        return std::holds_alternative<Message>(one.value);
    }));
}

}  // namespace onerepl::test
