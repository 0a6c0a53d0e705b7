// When A tries again, and what with (P16, P22).
#include "core/outage.h"

#include <gtest/gtest.h>

namespace onerepl {
namespace {

constexpr Time knock = 1 * second;
constexpr Time longest = 8 * second;
constexpr bool transfers = true;
constexpr bool empty = false;

Outage fresh() {
    Outage outage;
    outage.set_pace(knock, longest);
    return outage;
}

TEST(Outage, BeginsOnceAndEndsWithAnAnswer) {
    Outage outage = fresh();
    EXPECT_FALSE(outage.is_on());
    EXPECT_TRUE(outage.contact_lost(10 * second, 9 * second, transfers));
    EXPECT_TRUE(outage.is_on());
    EXPECT_EQ(outage.retry_at(), 11 * second);
    EXPECT_TRUE(outage.must_knock(11 * second));
    EXPECT_FALSE(outage.contact_lost(12 * second, 11 * second, empty)) << "the same outage";
    EXPECT_TRUE(outage.contact_found(13 * second, empty)) << "the central is in reach again";
    EXPECT_FALSE(outage.is_on());
    EXPECT_EQ(outage.retry_at(), 0);
}

TEST(Outage, BodiesOfOneTryCountOnce) {
    Outage outage = fresh();
    EXPECT_TRUE(outage.contact_lost(10 * second, 9 * second, transfers));
    for (int i = 0; i < 15; ++i) EXPECT_FALSE(outage.contact_lost(10 * second, 9 * second, transfers));
    outage.contact_found(11 * second, empty);
    EXPECT_EQ(outage.retry_at(), 11 * second) << "the pause is that of the first try";
}

TEST(Outage, OneLostBodyIsNone) {
    Outage outage = fresh();
    outage.contact_found(5 * second, transfers);
    EXPECT_FALSE(outage.contact_lost(10 * second, 4 * second, transfers));
    EXPECT_FALSE(outage.is_on());
}

TEST(Outage, TransfersThatFailWhileKnocksAreAnsweredWaitLongerAndLonger) {
    Outage outage = fresh();
    Time now = 100 * second;
    for (const Time pause : {1 * second, 2 * second, 4 * second, 8 * second, 8 * second}) {
        outage.contact_lost(now, now - 1, transfers);
        EXPECT_FALSE(outage.contact_found(now + 1, empty)) << "a knock says nothing about transfers";
        EXPECT_TRUE(outage.is_on());
        EXPECT_EQ(outage.must_knock(now + pause - 1), true);
        EXPECT_FALSE(outage.must_knock(now + pause));
        now += pause;
    }
    EXPECT_TRUE(outage.contact_found(now, transfers));
    outage.contact_lost(now + 10, now + 5, transfers);
    outage.contact_found(now + 11, empty);
    EXPECT_FALSE(outage.must_knock(now + 10 + knock)) << "the next outage begins anew";
}

TEST(Outage, NothingToSendEndsIt) {
    Outage outage = fresh();
    EXPECT_FALSE(outage.nothing_to_send());
    outage.contact_lost(10 * second, 9 * second, transfers);
    EXPECT_TRUE(outage.nothing_to_send());
    EXPECT_FALSE(outage.is_on());
}

TEST(Outage, BodiesThatAreNotTakenAgainRest) {
    Outage outage = fresh();
    outage.not_taken(10 * second, 3, 5);
    EXPECT_EQ(outage.retry_at(), 0) << "the next one names an answer";
    outage.not_taken(10 * second, 4, 5);
    EXPECT_EQ(outage.retry_at(), 0) << "it had left before";
    outage.not_taken(10 * second, 6, 6);
    EXPECT_EQ(outage.retry_at(), 11 * second);
}

}  // namespace
}  // namespace onerepl
