// P9: identities against the vectors.
#include "core/history.h"

#include "vectors.h"

#include <gtest/gtest.h>

namespace onerepl {
namespace {

TEST(History, VectorsGiveTheirIdentities) {
    for (const test::Section& section : test::read_vectors("history.txt")) {
        SCOPED_TRACE(section.title);
        const Batch batch = test::batch_from(section.text("batch"));
        for (const std::string& line : section.all("identity")) {
            const auto fields = test::words(line);
            EXPECT_EQ(identity_at(batch, std::stoull(fields.at(0))), test::id_from_hex(fields.at(1))) << line;
        }
    }
}

TEST(History, BatchesFormAChain) {
    const auto sections = test::read_vectors("history.txt");
    const Batch first = test::batch_from(sections.at(0).text("batch"));
    const Batch next = test::batch_from(sections.at(1).text("batch"));
    EXPECT_EQ(first.before, identity_at_zero(test::id_from_hex("a1b2c3d4e5f60718293a4b5c6d7e8f90")));
    EXPECT_EQ(identity_at(first, first.numbers.last), next.before);
    EXPECT_EQ(identity_at(next, first.numbers.last), next.before);
}

TEST(History, EveryInputCounts) {
    const Batch batch{{5, 9}, {1}, {2}};
    Batch other = batch;
    other.before[15] ^= 1;
    EXPECT_NE(identity_at(batch, 7), identity_at(other, 7));
    other = batch;
    other.random[15] ^= 1;
    EXPECT_NE(identity_at(batch, 7), identity_at(other, 7));
    EXPECT_EQ(identity_at(batch, 4), identity_at(other, 4));
    EXPECT_NE(identity_at(batch, 7), identity_at(batch, 8));
}

}  // namespace
}  // namespace onerepl
