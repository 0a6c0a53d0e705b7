// Two copies of a remote that speak in turn (P9): what proves it, and what does not.
#include "core/speakers.h"

#include <gtest/gtest.h>

namespace onerepl {
namespace {

struct Site {
    Speakers speakers{};
    std::uint64_t drawn = 0;

    bool hear(std::uint8_t process, std::uint64_t heard) {
        return speak_in_turn(speakers, Nonce{process}, heard, ++drawn + 1000);
    }
    /// As a process speaks that takes each answer.
    bool speaks(std::uint8_t process) { return hear(process, speakers.hearing); }
};

TEST(Speakers, OneProcessAfterTheOther) {
    Site site;
    for (std::uint8_t process = 1; process < 200; ++process)
        for (int i = 0; i < 3; ++i) EXPECT_FALSE(site.speaks(process));
}

TEST(Speakers, TwoInTurn) {
    Site site;
    EXPECT_FALSE(site.speaks(1));
    EXPECT_FALSE(site.speaks(2));
    EXPECT_TRUE(site.speaks(1));
}

TEST(Speakers, TwoInTurnThatTakeTheirOwnAnswersOnly) {
    Site site;
    std::uint64_t heard[3] = {};
    int found = 0;
    for (int i = 0; i < 8; ++i) {
        const std::uint8_t process = i % 2 == 0 ? 1 : 2;
        found += site.hear(process, heard[process]) ? 1 : 0;
        heard[process] = site.speakers.hearing;
    }
    EXPECT_GT(found, 0);
}

TEST(Speakers, WhatComesLateProvesNothing) {
    Site site;
    EXPECT_FALSE(site.speaks(1));
    const std::uint64_t before = site.speakers.hearing;
    EXPECT_FALSE(site.speaks(2));
    for (int i = 0; i < 10; ++i) EXPECT_FALSE(site.hear(1, before));
    EXPECT_FALSE(site.hear(1, 0));
    EXPECT_FALSE(site.speaks(2));
}

TEST(Speakers, ANewStartOfTheCentralForgets) {
    Site site;
    site.speaks(1);
    site.speaks(2);
    site.speakers = {};
    EXPECT_FALSE(site.speaks(1));
}

TEST(Speakers, AProcessWithoutANameIsNobody) {
    Site site;
    EXPECT_FALSE(site.speaks(0));
    EXPECT_FALSE(site.speaks(1));
    EXPECT_FALSE(site.speaks(0));
    EXPECT_FALSE(site.speaks(1));
}

}  // namespace
}  // namespace onerepl
