// The encoding of onerepl.batch.transactions.
#include "log/batch.h"

// Not in the core, but without PostgreSQL too.
#include "log/batch.cpp"

#include <gtest/gtest.h>

namespace onerepl::log {
namespace {

const std::vector<NumberedTransaction> some{
    {.xid = 4294967400, .first = 11, .count = 1, .flags = 0, .table = 3},
    {.xid = 790, .first = 12, .count = 2'000'000, .flags = 1, .table = 0},
    {.xid = 791, .first = 2'000'012, .count = 5, .flags = 0, .table = 7}};

TEST(Batch, ComesBackAsItWas) {
    const Bytes encoded = encode_transactions(some);
    EXPECT_EQ(encoded[1], 0x89);  // the log tables in it
    EXPECT_EQ(decode_transactions(encoded, 11), some);
}

TEST(Batch, IsRefusedWhenItIsNone) {
    EXPECT_FALSE(decode_transactions({}, 1));
    const Bytes encoded = encode_transactions(some);
    Bytes other_version = encoded;
    other_version[0] = 9;
    EXPECT_FALSE(decode_transactions(other_version, 11));
    EXPECT_FALSE(decode_transactions(ByteView(encoded).first(encoded.size() - 1), 11));
    const Bytes no_records{1, 0, 2, 0, 0};
    EXPECT_FALSE(decode_transactions(no_records, 1));
    const Bytes endless{1, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff};
    EXPECT_FALSE(decode_transactions(endless, 1));
}

TEST(Batch, FindsTheTransactionOfANumber) {
    EXPECT_EQ(find_transaction(some, 11), 0u);
    EXPECT_EQ(find_transaction(some, 12), 1u);
    EXPECT_EQ(find_transaction(some, 2'000'011), 1u);
    EXPECT_EQ(find_transaction(some, 2'000'016), 2u);
    EXPECT_EQ(find_transaction(some, 10), 3u);
    EXPECT_EQ(find_transaction(some, 2'000'017), 3u);
}

}  // namespace
}  // namespace onerepl::log
