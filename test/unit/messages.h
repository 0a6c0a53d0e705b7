// Messages of every kind for tests, and comparison of messages, which hold views.
#pragma once

#include "core/frame.h"

namespace onerepl::test {

inline const Parties parties{{0xa1, 0xb2, 0xc3}, {0x0f, 0x1e, 0x2d}};

/// One of each kind, with content.
std::vector<Message> one_of_each_kind();

/// By content, through the encoding.
bool same(const Message& a, const Message& b);

/// The frames of all messages, one after the other.
Bytes frames_of(const Parties& parties, std::span<const Message> messages);

/// What a reader gives for `frames`, to the end.
std::vector<FrameResult> read_all(const Parties& expected, ByteView frames);

/// How many of the results are messages.
std::size_t count_good(std::span<const FrameResult> results);

}  // namespace onerepl::test
