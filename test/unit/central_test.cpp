// The central's rules, each once by name, and the subtle cases of P3, P5, P9, P12, P15 and P16.
#include "core/central.h"

#include "recording_journal.h"

#include <gtest/gtest.h>

namespace onerepl {
namespace {

using test::one_batch;

constexpr Time tr = 10 * second;
constexpr Time ts = 40 * second;
const Bytes record(10, 0x17);

/// A central that has written up to a number of A's only batch; a turn a body.
class CentralTest : public testing::Test {
  protected:
    void begin(Number written) {
        state.started = true;
        state.start_identity = identity_at(one_batch(1000), 0);
        state.written = written;
        state.identity = identity_at(one_batch(1000), written);
    }
    static RemoteHeader remote(Number confirmed, Number last = 100) {
        RemoteHeader header;
        header.start_identity = identity_at(one_batch(1000), 0);
        header.confirmed = confirmed;
        header.last = last;
        header.sent = confirmed;
        header.batches = {one_batch(1000)};
        return header;
    }
    static ObjectTransfer transfer(Number n, bool end = true, std::uint32_t part = 0,
                                   std::uint32_t parts = 1) {
        return {n, end, part, parts, record};
    }
    Central& turn() {
        central.emplace(now, CentralConfig{tr, ts, room}, state, waits, journal);
        return *central;
    }
    /// One body: what is ready is written; the answer.
    Reply body(const RemoteHeader& header, std::vector<Message> messages = {}) {
        turn();
        std::optional<Number> echo;
        for (const Message& message : messages)
            if (auto* told = std::get_if<RemoteState>(&message)) echo = told->echo;
        const bool admitted = central->admit(now, header, echo);
        offers.clear();
        for (const Message& message : messages) {
            if (auto* object = std::get_if<ObjectTransfer>(&message)) {
                if (admitted) offers.push_back(central->offer(*object));
            } else {
                central->take(message);
            }
        }
        if (const Ready ready = central->ready(); !ready.numbers.empty())
            central->applied(ready.numbers.last);
        return commit();
    }
    Reply commit() {
        central->spooled();
        state = central->state();
        return central->reply(now);
    }
    template <class Kind>
    static const Kind* find(const Reply& reply) {
        for (const Message& message : reply.messages)
            if (auto* found = std::get_if<Kind>(&message)) return found;
        return nullptr;
    }
    static std::vector<Range> confirmed(const Reply& reply) {
        auto* found = find<TransferConfirmation>(reply);
        return found == nullptr ? std::vector<Range>{} : found->numbers;
    }
    static std::vector<Missing> requested(const Reply& reply) {
        auto* found = find<TransferRequest>(reply);
        return found == nullptr ? std::vector<Missing>{} : found->numbers;
    }
    static Missing whole(Number first, Number last) { return {{first, last}, 0, UINT32_MAX}; }

    Time now = 100 * second;
    std::uint64_t room = 1000;
    CentralState state;
    CentralWaits waits{};
    test::RecordingJournal journal;
    std::optional<Central> central;
    std::vector<Offer> offers;
};

TEST_F(CentralTest, P17TakesOverTheStartOnce) {
    RemoteHeader header = remote(20);
    header.start = 20;
    header.start_identity = identity_at(one_batch(1000), 20);
    const Reply reply = body(header);
    EXPECT_TRUE(state.started);
    EXPECT_EQ(reply.header.written, 20u);
    EXPECT_EQ(reply.header.identity, header.start_identity);
    header.start = 30;
    body(header);
    EXPECT_EQ(state.start, 20u);
}

TEST_F(CentralTest, P9TakesOverNoStartOfARemoteWithConfirmations) {
    body(remote(1), {transfer(2)});
    EXPECT_FALSE(state.started);
    EXPECT_TRUE(offers.empty());
    EXPECT_EQ(journal.entries.back().level, Level::critical);
    body(remote(1));
    EXPECT_EQ(journal.count("P9"), 1);
    body(remote(0), {transfer(1)});
    EXPECT_EQ(state.written, 1u);
}

// ---------------------------------------------------------------- C1

TEST_F(CentralTest, C1cAsksForTheStateAfterTs) {
    begin(5);
    body(remote(5));
    now += ts - 1;
    EXPECT_FALSE(find<StateRequest>(body(remote(5))));
    now += 1;
    const Reply reply = body(remote(5));
    ASSERT_TRUE(find<StateRequest>(reply));
    EXPECT_EQ(find<StateRequest>(reply)->written, 5u);
}

TEST_F(CentralTest, C1aWaitsForTheAnswerAndC1bRepeats) {
    begin(5);
    body(remote(5));
    now += ts;
    ASSERT_TRUE(find<StateRequest>(body(remote(5))));
    now += tr - 1;
    EXPECT_FALSE(find<StateRequest>(body(remote(5)))) << "C1a";
    now += 1;
    EXPECT_TRUE(find<StateRequest>(body(remote(5)))) << "C1b";
    EXPECT_EQ(journal.count("C1b"), 1);
    now += tr;
    EXPECT_TRUE(find<StateRequest>(body(remote(5))));
    EXPECT_EQ(journal.count("C1b"), 1) << "told once";
}

TEST_F(CentralTest, C1bIsToldWithoutABodyToo) {
    begin(5);
    body(remote(5));
    now += ts;
    body(remote(5));
    EXPECT_EQ(turn().tick(now), now + tr);
    now += tr;
    turn().tick(now);
    EXPECT_EQ(journal.count("C1b"), 1);
    EXPECT_EQ(journal.count("P12"), 1);
    turn().tick(now + tr);
    EXPECT_EQ(journal.count("P12"), 1);
}

TEST_F(CentralTest, AnyMessageAnswersAStateRequest) {
    begin(5);
    body(remote(5));
    now += ts;
    ASSERT_TRUE(find<StateRequest>(body(remote(5))));
    body(remote(5), {transfer(6)});
    now += tr;
    EXPECT_FALSE(find<StateRequest>(body(remote(6))));
    EXPECT_EQ(journal.count("C1b"), 0);
}

// ---------------------------------------------------------------- C2

TEST_F(CentralTest, C2aWritesAndConfirms) {
    begin(5);
    const Reply reply = body(remote(5), {transfer(6), transfer(7)});
    EXPECT_EQ(state.written, 7u);
    EXPECT_EQ(state.identity, identity_at(one_batch(1000), 7));
    EXPECT_EQ(reply.header.written, 7u);
    EXPECT_EQ(confirmed(reply), (std::vector<Range>{{6, 7}}));
}

TEST_F(CentralTest, C2aAFailureHoldsBackWhatFollows) {
    begin(5);
    turn().admit(now, remote(5), {});
    for (Number n : {6, 7, 8}) central->offer(transfer(n));
    ASSERT_EQ(central->ready().numbers, (Range{6, 8}));
    central->applied(6);
    central->failed(7, "duplicate key");
    EXPECT_TRUE(central->ready().numbers.empty());
    const Reply reply = commit();
    EXPECT_EQ(reply.header.flow, FlowState::failed);
    EXPECT_EQ(reply.header.failed_at, 7u);
    EXPECT_EQ(reply.header.held, 8u);
    EXPECT_EQ(confirmed(reply), (std::vector<Range>{{6, 6}}));
    EXPECT_EQ(journal.entries.back().level, Level::critical);
    EXPECT_TRUE(turn().ready().numbers.empty());
    state.failed_at.reset();  // resolved
    EXPECT_EQ(turn().ready().numbers, (Range{7, 8}));
}

TEST_F(CentralTest, C2bDropsWhatIsWritten) {
    begin(5);
    body(remote(5), {transfer(4), transfer(6)});
    EXPECT_EQ(offers, (std::vector<Offer>{Offer::drop, Offer::take}));
}

TEST_F(CentralTest, C2cAsksForTheGapAndKeepsWhatCame) {
    begin(5);
    const Reply reply = body(remote(5), {transfer(8), transfer(9)});
    EXPECT_EQ(state.written, 5u);
    EXPECT_EQ(requested(reply), (std::vector<Missing>{whole(6, 7)}));
    EXPECT_EQ(reply.header.held, 5u);
    const Reply next = body(remote(5), {transfer(6), transfer(7)});
    EXPECT_EQ(next.header.written, 9u);
    EXPECT_TRUE(requested(next).empty());
}

TEST_F(CentralTest, C2cNamesMissingParts) {
    begin(5);
    const Reply reply = body(remote(5), {transfer(6, true, 1, 4), transfer(6, true, 3, 4), transfer(7)});
    EXPECT_EQ(requested(reply), (std::vector<Missing>{{{6, 6}, 0, 0}, {{6, 6}, 2, 2}}));
    EXPECT_EQ(body(remote(5), {transfer(6, true, 0, 4), transfer(6, true, 2, 4)}).header.written, 7u);
}

// ---------------------------------------------------------------- C3, C4, P2, P3

TEST_F(CentralTest, C3RemoteStateShowsThatBothAreIdentical) {
    begin(5);
    body(remote(5, 5), {RemoteState{5}});
    EXPECT_EQ(journal.count("C3"), 1);
    EXPECT_TRUE(waits.reported_identical);
    body(remote(5, 5), {RemoteState{5}});
    EXPECT_EQ(journal.count("C3"), 1);
}

TEST_F(CentralTest, P2AsksForWhatWasSentAndIsMissing) {
    begin(5);
    RemoteHeader header = remote(5, 20);
    header.sent = 9;
    EXPECT_EQ(requested(body(header, {RemoteState{5}})), (std::vector<Missing>{whole(6, 9)}));
}

TEST_F(CentralTest, P2ConfirmsAgainWhatAHasNotHeard) {
    begin(5);
    waits.begun = true;
    waits.confirmed_to = 5;
    EXPECT_EQ(confirmed(body(remote(2, 5), {RemoteState{5}})), (std::vector<Range>{{3, 5}}));
    EXPECT_EQ(state.stop, Stop::none) << "a lost confirmation is no fault";
}

TEST_F(CentralTest, C4ConfirmsAndAsksAsP3Says) {
    begin(5);
    waits.begun = true;
    waits.confirmed_to = 5;
    body(remote(5), {transfer(8, false)});
    now += tr;
    const Reply reply = body(remote(3), {ConfirmationRequest{{{3, 9}}}});
    EXPECT_EQ(confirmed(reply), (std::vector<Range>{{3, 5}}));
    EXPECT_EQ(requested(reply).at(0), whole(6, 7));
    EXPECT_EQ(requested(reply).at(1), whole(9, 9));
}

// ---------------------------------------------------------------- P5

TEST_F(CentralTest, P5WaitsForTheEndOfTheTransaction) {
    begin(5);
    const Reply reply = body(remote(5), {transfer(6), transfer(7, false), transfer(8, false)});
    EXPECT_EQ(reply.header.written, 6u);
    EXPECT_EQ(reply.header.held, 8u);
    ASSERT_EQ(state.waiting.size(), 1u);
    EXPECT_EQ(state.waiting[0].numbers, (Range{7, 8}));
    EXPECT_EQ(body(remote(6), {transfer(9)}).header.written, 9u);
}

TEST_F(CentralTest, P5ACallerMayStopAtAnEarlierEnd) {
    begin(5);
    turn().admit(now, remote(5), {});
    for (Number n : {6, 7, 8}) central->offer(transfer(n));
    central->applied(7);
    EXPECT_EQ(central->ready().numbers, (Range{8, 8}));
    EXPECT_EQ(central->to_spool().at(0).numbers, (Range{8, 8}));
}

// ---------------------------------------------------------------- P9

TEST_F(CentralTest, P9SaAboveSb) {
    begin(5);
    const Reply reply = body(remote(6), {transfer(6)});
    EXPECT_EQ(state.stop, Stop::central_lost_history);
    EXPECT_EQ(reply.header.stop, Stop::central_lost_history);
    EXPECT_EQ(reply.header.flow, FlowState::stopped);
    EXPECT_TRUE(offers.empty());
    EXPECT_EQ(journal.entries.back().level, Level::critical);
}

TEST_F(CentralTest, P9MaBelowSbCountsOnlyWithTheEcho) {
    begin(5);
    body(remote(3, 4));
    EXPECT_EQ(state.stop, Stop::none) << "may be late";
    body(remote(3, 4), {RemoteState{4}});
    EXPECT_EQ(state.stop, Stop::none) << "answers an older request";
    body(remote(3, 4), {RemoteState{5}});
    EXPECT_EQ(state.stop, Stop::remote_lost_history);
}

TEST_F(CentralTest, P9OtherIdentityAtSb) {
    begin(5);
    RemoteHeader header = remote(5);
    header.batches[0].random[0] ^= 1;
    body(header, {transfer(6)});
    EXPECT_EQ(state.stop, Stop::other_history);
    EXPECT_EQ(state.written, 5u);
}

TEST_F(CentralTest, P9AForkAfterSbIsFoundBeforeItIsWritten) {
    begin(5);
    RemoteHeader header = remote(5);
    header.batches = {{{1, 6}, {0xaa}, {0xbb}}, {{7, 20}, {0xcc}, {0xdd}}};
    header.batches[0] = {{6, 6}, identity_at(one_batch(1000), 5), {0x01}};
    body(header, {transfer(6, false), transfer(7)});
    EXPECT_EQ(state.stop, Stop::other_history) << "the second batch does not follow from the first";
    EXPECT_EQ(state.written, 5u);
}

TEST_F(CentralTest, P9AnotherBatchForNumbersThatAreHeld) {
    begin(5);
    body(remote(5), {transfer(8)});
    RemoteHeader header = remote(5);
    header.batches = {{{7, 9}, {0xcc}, {0xdd}}};
    body(header, {transfer(7)});
    EXPECT_EQ(state.stop, Stop::other_history);
}

TEST_F(CentralTest, P9AWitnessOfAnotherHistoryForWhatIsHeld) {
    begin(5);
    body(remote(5), {transfer(6, false)});
    RemoteHeader header = remote(5);
    header.batches = {{{6, 8}, identity_at(one_batch(1000), 5), {0x77}}};
    body(header);
    EXPECT_EQ(state.stop, Stop::other_history);
}

TEST_F(CentralTest, P9AStoppedRemoteStopsThisLinkOnly) {
    begin(5);
    RemoteHeader header = remote(5);
    header.stop = Stop::other_history;
    header.start = 3;
    body(header);
    EXPECT_EQ(state.stop, Stop::none) << "a message of an earlier start of the link";
    header.start = 0;
    body(header);
    EXPECT_EQ(state.stop, Stop::other_history);
}

// ---------------------------------------------------------------- P15

TEST_F(CentralTest, P15RefusesWhatThereIsNoRoomFor) {
    begin(5);
    room = 25;
    const Reply reply = body(remote(5), {transfer(8), transfer(9), transfer(10)});
    EXPECT_EQ(offers, (std::vector<Offer>{Offer::take, Offer::take, Offer::refuse}));
    EXPECT_EQ(reply.header.room, 5u);
}

TEST_F(CentralTest, P15TheNextNumberEvictsTheHighest) {
    begin(5);
    room = 25;
    body(remote(5), {transfer(9)});
    body(remote(5), {transfer(12)});
    turn().admit(now, remote(5), {});
    EXPECT_EQ(central->offer(transfer(6, false, 0, 2)), Offer::take);
    EXPECT_EQ(central->evicted(), (std::vector<Range>{{12, 12}}));
    EXPECT_EQ(central->offer(transfer(7, false)), Offer::refuse) << "6 is not whole yet";
}

TEST_F(CentralTest, P15TheTransactionOfTheNextNumberMayExceedTheRoom) {
    begin(5);
    room = 25;
    const Reply reply =
        body(remote(5), {transfer(6, false), transfer(7, false), transfer(8, false), transfer(9, false)});
    EXPECT_EQ(reply.header.held, 9u);
    EXPECT_EQ(reply.header.room, 0u);
}

// ---------------------------------------------------------------- P16

TEST_F(CentralTest, P16ARequestIsRepeatedOnlyAfterTr) {
    begin(5);
    EXPECT_FALSE(requested(body(remote(5), {transfer(8)})).empty());
    now += tr - 1;
    EXPECT_TRUE(requested(body(remote(5), {transfer(9)})).empty());
    now += 1;
    EXPECT_EQ(requested(body(remote(5))), (std::vector<Missing>{whole(6, 7)}));
}

TEST_F(CentralTest, P16DuplicatesAreConfirmedAgain) {
    begin(5);
    waits.begun = true;
    waits.confirmed_to = 5;
    EXPECT_EQ(confirmed(body(remote(3), {transfer(4), transfer(5)})), (std::vector<Range>{{4, 5}}));
    EXPECT_EQ(confirmed(body(remote(5), {transfer(4)})), (std::vector<Range>{{5, 5}})) << "S_b at least";
    EXPECT_TRUE(confirmed(body(remote(5))).empty());
}

TEST_F(CentralTest, P16OtherKindsAreAnsweredDuringF) {
    begin(5);
    state.failed_at = 6;
    EXPECT_EQ(confirmed(body(remote(3), {ConfirmationRequest{{{4, 5}}}})), (std::vector<Range>{{4, 5}}));
}

TEST_F(CentralTest, P16WaitsBeginAnewAtARestart) {
    begin(5);
    body(remote(5), {transfer(8)});
    waits = {};
    now += ts;
    EXPECT_FALSE(find<StateRequest>(body(remote(5)))) << "Ts counts from now";
    EXPECT_EQ(journal.count("P12"), 0);
}

TEST_F(CentralTest, P16ConfirmationsOfAnotherReceiversWorkFollow) {
    begin(5);
    body(remote(5));
    state.written = 7;  // written by a look at the queue, without a body
    state.identity = identity_at(one_batch(1000), 7);
    EXPECT_EQ(confirmed(body(remote(5))), (std::vector<Range>{{6, 7}}));
    EXPECT_TRUE(confirmed(body(remote(5))).empty());
}

// ---------------------------------------------------------------- P17

TEST_F(CentralTest, P17AsksForADescriptionAndRepeatsAfterTr) {
    begin(5);
    const std::uint64_t id = 42;
    for (bool expected : {true, false}) {
        turn().admit(now, remote(5), {});
        central->offer(transfer(6));
        central->lacking(std::span(&id, 1));
        EXPECT_TRUE(central->ready().numbers.empty());
        const Reply reply = commit();
        EXPECT_EQ(find<DescriptionRequest>(reply) != nullptr, expected);
    }
    now += tr;
    turn().admit(now, remote(5), {});
    central->lacking(std::span(&id, 1));
    EXPECT_TRUE(find<DescriptionRequest>(commit()));
}

TEST_F(CentralTest, P22ADescriptionIsAskedForTenTimes) {
    begin(5);
    const std::uint64_t id = 42;
    for (int time = 0; time < 10; ++time) {
        turn().admit(now, remote(5), {});
        EXPECT_TRUE(central->untold(now).empty()) << time;
        central->lacking(std::span(&id, 1));
        EXPECT_TRUE(find<DescriptionRequest>(commit())) << time;
        now += tr;
    }
    turn().admit(now, remote(5), {});
    EXPECT_EQ(central->untold(now), (std::vector<std::uint64_t>{id}));
    EXPECT_TRUE(central->untold(now).empty()) << "once";
}

TEST_F(CentralTest, P17ASkipRangeCountsAsItsNumbers) {
    begin(5);
    turn().admit(now, remote(5), {});
    EXPECT_EQ(central->offer(transfer(6), 20), Offer::take);
    EXPECT_EQ(central->offer(transfer(10), 5), Offer::drop);
    EXPECT_EQ(central->ready().numbers, (Range{6, 25}));
    EXPECT_EQ(central->offer(transfer(90), 20), Offer::drop) << "beyond M_a";
}

}  // namespace
}  // namespace onerepl
