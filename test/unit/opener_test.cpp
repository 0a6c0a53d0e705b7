// Bodies that wait: opened ahead or not, they are what open_body makes of them; and remotes take turns.
#include "receiver/fair_order.h"
#include "receiver/opener.h"

#include "messages.h"

#include <gtest/gtest.h>

namespace onerepl::receiver {
namespace {

constexpr std::size_t max_frames = 1 << 24;
const Bytes secret{'s', 'e', 'c', 'r', 'e', 't'};
const Bytes other_secret{'o', 't', 'h', 'e', 'r'};

/// Of `count` transfers, the first of number `first`.
Bytes sealed(Number first, Number count) {
    const Bytes record(50, 'x');
    Body body;
    body.parties = test::parties;
    body.header = RemoteHeader{.last = first + count};
    for (Number n = first; n < first + count; n++)
        encode_frame(body.parties, ObjectTransfer{.n = n, .last_of_transaction = true, .record = record},
                     body.frames);
    return encode_body(body, secret, {.compression = 1});
}

/// The first number and how many there are.
std::pair<Number, std::size_t> content(const Opened& opened) {
    const auto* body = std::get_if<OpenedBody>(&opened);
    if (!body || body->frames.size() != test::count_good(body->frames)) return {};
    return {body->frames.front().n, body->frames.size()};
}

struct Waiting {
    Opener opener;
    std::vector<std::shared_ptr<SealedBody>> bodies;

    explicit Waiting(Number count) {
        for (Number i = 1; i <= count; i++) {
            bodies.push_back(std::make_shared<SealedBody>(sealed(i * 1000, 200 + i)));
            opener.add(bodies.back(), i, secret, max_frames);
        }
    }
    std::pair<Number, std::size_t> take(std::size_t i) {
        return content(opener.take(*bodies[i], secret, max_frames));
    }
};

TEST(Opener, gives_each_body_in_its_turn) {
    Waiting waiting(100);
    for (Number i = 1; i <= 100; i++)
        EXPECT_EQ(waiting.take(i - 1), std::pair(i * 1000, std::size_t(200 + i)));
}

TEST(Opener, gives_them_in_any_order) {
    Waiting waiting(60);
    for (Number i = 60; i >= 1; i--)
        EXPECT_EQ(waiting.take(i - 1), std::pair(i * 1000, std::size_t(200 + i)));
}

TEST(Opener, forgets_a_body_whose_connection_has_ended) {
    Waiting waiting(30);
    EXPECT_NE(waiting.take(0).first, 0);
    for (std::size_t i = 1; i < 30; i++) {
        if (i % 3 == 0) {
            EXPECT_EQ(waiting.take(i).first, (i + 1) * 1000);
        } else {
            waiting.bodies[i].reset();
        }
    }
}

TEST(Opener, opens_anew_when_the_secret_has_changed_meanwhile) {
    Waiting waiting(4);
    EXPECT_NE(waiting.take(0).first, 0);
    const Opened refused = waiting.opener.take(*waiting.bodies[1], other_secret, max_frames);
    EXPECT_EQ(std::get<BodyError>(refused), BodyError::signature);
    const Opened too_large = waiting.opener.take(*waiting.bodies[2], secret, 100);
    EXPECT_EQ(std::get<BodyError>(too_large), BodyError::too_large);
    EXPECT_NE(waiting.take(3).first, 0);
}

TEST(Opener, tells_what_is_wrong_with_a_body) {
    Opener opener;
    Bytes damaged = sealed(1, 10);
    damaged[damaged.size() / 2] ^= 1;
    std::vector<std::shared_ptr<SealedBody>> bodies;
    for (Number i = 0; i < 10; i++) {
        bodies.push_back(std::make_shared<SealedBody>(damaged));
        opener.add(bodies.back(), i, secret, max_frames);
    }
    for (const auto& body : bodies)
        EXPECT_EQ(std::get<BodyError>(opener.take(*body, secret, max_frames)), BodyError::signature);
}

TEST(Opener, works_on_without_its_thread) {
    Waiting waiting(10);
    EXPECT_NE(waiting.take(0).first, 0);
    waiting.opener.stop();
    for (std::size_t i = 1; i < 10; i++) EXPECT_EQ(waiting.take(i).first, (i + 1) * 1000);
}

TEST(FairOrder, remotes_take_turns) {
    FairOrder order;
    const Uuid one{1}, two{2};
    EXPECT_EQ(order.next(one, "a"), 1);
    EXPECT_EQ(order.next(one, "a"), 2);
    EXPECT_EQ(order.next(one, "a"), 3);
    EXPECT_EQ(order.next(two, "b"), 1);
    order.begin(2);
    EXPECT_EQ(order.next(two, "b"), 2) << "it has its turn in the round at hand";
    EXPECT_EQ(order.next(two, "b"), 3);
    order.begin(3);
    order.begin(3);
    EXPECT_EQ(order.next(one, "a"), 4);
}

TEST(FairOrder, nobody_takes_the_turns_of_a_remote_elsewhere) {
    FairOrder order;
    const Uuid one{1};
    for (int i = 0; i < 5000; i++) order.next(one, "attacker");
    EXPECT_EQ(order.next(one, "a"), 1);
}

}  // namespace
}  // namespace onerepl::receiver
