// The remote's rules, each once by name, and the subtle cases of P2, P9, P12, P15 and P16.
#include "core/remote.h"

#include "recording_journal.h"

#include <gtest/gtest.h>

namespace onerepl {
namespace {

using test::one_batch;

constexpr Time tr = 10 * second;
constexpr Time ti = 1 * second;
constexpr Time ms = millisecond;

class FakeHistory : public NumberedHistory {
  public:
    std::optional<Identity> identity(Number n) override { return identity_at(one_batch(1000), n); }
    Number transaction_end(Number n) override { return n + 2; }
};

/// A remote that stands at number `sent` of `last`, with a channel that the test plays.
class RemoteTest : public testing::Test {
  protected:
    void begin(Number last, Number confirmed = 0, Number already_sent = 0) {
        RemotePosition position;
        position.start_identity = *history.identity(0);
        position.confirmed = confirmed;
        position.sent = std::max(already_sent, confirmed);
        remote.emplace(now, RemoteConfig{tr, ti, 3, 30}, position, last, journal, history);
    }
    CentralHeader central(Number written, Number held = 0) {
        CentralHeader header;
        header.started = header.taken = true;
        header.written = written;
        header.identity = *history.identity(written);
        header.held = std::max(written, held);
        header.room = 1 << 20;
        return header;
    }
    /// Sends what is due, up to `most` records of ten bytes; the body's id, 0 if nothing was due.
    Remote::BodyId send(std::uint64_t most = 3) {
        auto next = remote->next(now);
        if (!next) return 0;
        outgoing = *next;
        Carried carried;
        std::uint64_t left = std::min<std::uint64_t>(most, std::max<std::uint64_t>(outgoing.budget / 10, 1));
        auto take = [&](const Missing& missing) {
            if (missing.numbers.empty() || left == 0) return;
            const Number last = std::min(missing.numbers.last, missing.numbers.first + left - 1);
            carried.whole.push_back({missing.numbers.first, last});
            carried.bytes += carried.whole.back().size() * 10;
            left -= carried.whole.back().size();
        };
        for (const Missing& repeat : outgoing.repeats) take(repeat);
        take(outgoing.transfers);
        sent = carried.whole;
        remote->departed(now, ++bodies, outgoing, carried);
        return bodies;
    }
    Remote::BodyId send_parts(CarriedParts parts) {
        outgoing = remote->next(now).value();
        remote->departed(now, ++bodies, outgoing, {{}, {parts}, 10});
        return bodies;
    }
    void answer(Remote::BodyId body, const CentralHeader& header, std::vector<Message> messages = {}) {
        remote->answered(now, body, header, messages);
    }
    static Message confirmation(Number first, Number last) { return TransferConfirmation{{{first, last}}}; }
    static Message request(Number first, Number last) {
        return TransferRequest{{{{first, last}, 0, UINT32_MAX}}};
    }

    Time now = 100 * second;
    test::RecordingJournal journal;
    FakeHistory history;
    std::optional<Remote> remote;
    Outgoing outgoing;
    std::vector<Range> sent;
    Remote::BodyId bodies = 0;
};

// ---------------------------------------------------------------- R1

TEST_F(RemoteTest, R1aAsksForRecordsInSLongerThanTr) {
    begin(5);
    answer(send(), central(0));
    now += tr - ms;
    send();
    EXPECT_TRUE(outgoing.confirmation_request.empty());
    now += ms;
    send();
    EXPECT_EQ(outgoing.confirmation_request, (std::vector<Range>{{1, 3}}));
    EXPECT_EQ(journal.count("R1a"), 1);
}

TEST_F(RemoteTest, R1bFormsInOrderAndMarksSentOnlyByTheAnswer) {
    begin(7);
    const auto first = send();
    EXPECT_EQ(sent, (std::vector<Range>{{1, 3}}));
    EXPECT_EQ(remote->state_of(1), RecordState::logged);
    answer(first, central(0));
    EXPECT_EQ(remote->state_of(1), RecordState::sent);
    EXPECT_EQ(remote->position().sent, 3u);
    EXPECT_TRUE(remote->position_changed());
    remote->position_stored();
    EXPECT_FALSE(remote->position_changed());
    send();
    EXPECT_EQ(sent, (std::vector<Range>{{4, 6}}));
    send();
    EXPECT_EQ(sent, (std::vector<Range>{{7, 7}}));
}

TEST_F(RemoteTest, R1bFormsALostBodyAgainBeforeWhatFollows) {
    begin(9);
    answer(send(), central(0));
    const auto lost = send();
    const auto good = send();
    answer(good, central(0));
    remote->unanswered(now, lost, "reset");
    EXPECT_EQ(remote->position().sent, 3u);
    EXPECT_EQ(remote->state_of(8), RecordState::sent);
    send();
    EXPECT_EQ(sent, (std::vector<Range>{{4, 6}}));
}

TEST_F(RemoteTest, R1bStopsAtABlockedRecordAndTellsOnce) {
    begin(5);
    remote->set_blocked(3);
    answer(send(), central(0));
    EXPECT_EQ(sent, (std::vector<Range>{{1, 2}}));
    EXPECT_EQ(remote->state_of(3), RecordState::blocked);
    EXPECT_EQ(remote->header().blocked_at, 3u);
    now += ti;
    answer(send(), central(0));
    now += ti;
    answer(send(), central(0));
    EXPECT_TRUE(sent.empty());
    EXPECT_EQ(journal.count("R1b"), 1);
    remote->set_blocked(std::nullopt);
    send();
    EXPECT_EQ(sent, (std::vector<Range>{{3, 5}}));
}

TEST_F(RemoteTest, R1bABlockDoesNotReachWhatIsSent) {
    begin(5);
    answer(send(), central(0));
    remote->set_blocked(2);
    EXPECT_EQ(remote->state_of(2), RecordState::sent);
    send();
    EXPECT_EQ(sent, (std::vector<Range>{{4, 5}}));
}

// ---------------------------------------------------------------- R2

TEST_F(RemoteTest, R2AnswersAStateRequestWhenThereIsNothingToSend) {
    begin(3, 3);
    answer(send(), central(3), {StateRequest{3}});
    EXPECT_TRUE(remote->wants_numbering());
    EXPECT_EQ(send(), 0u) << "P2: not before a numbering step";
    remote->numbered(3);
    ASSERT_NE(send(), 0u);
    EXPECT_EQ(outgoing.remote_state, 3u);
    answer(bodies, central(3));
    now += ti;
    ASSERT_NE(send(), 0u);
    EXPECT_FALSE(outgoing.remote_state);
}

TEST_F(RemoteTest, P2SendableRecordsAreTheAnswer) {
    begin(3, 3);
    answer(send(), central(3), {StateRequest{3}});
    remote->numbered(4);
    send();
    EXPECT_EQ(sent, (std::vector<Range>{{4, 4}}));
    EXPECT_FALSE(outgoing.remote_state);
    now += ti;
    EXPECT_EQ(send(), 0u) << "answered";
}

TEST_F(RemoteTest, P2APausedLinkStillAnswers) {
    begin(5, 3);
    remote->set_paused(true);
    answer(send(), central(3), {StateRequest{3}});
    remote->numbered(5);
    send();
    EXPECT_EQ(outgoing.remote_state, 3u);
    EXPECT_TRUE(sent.empty());
    EXPECT_TRUE(remote->header().paused);
}

// ---------------------------------------------------------------- R3

TEST_F(RemoteTest, R3DropsTheStateRequest) {
    begin(3);
    answer(send(), central(3), {confirmation(1, 3), StateRequest{3}});
    remote->numbered(3);
    EXPECT_EQ(send(), 0u);
    EXPECT_EQ(remote->position().confirmed, 3u);
}

TEST_F(RemoteTest, R3aConfirms) {
    begin(3);
    answer(send(), central(2), {confirmation(1, 2)});
    remote->next(now);
    EXPECT_EQ(remote->position().confirmed, 2u);
    EXPECT_EQ(remote->state_of(2), RecordState::confirmed);
    EXPECT_EQ(remote->state_of(3), RecordState::sent);
}

TEST_F(RemoteTest, R3bNotesASuperfluousConfirmation) {
    begin(3, 2);
    answer(send(), central(2), {confirmation(1, 2)});
    remote->next(now);
    EXPECT_EQ(remote->position().confirmed, 2u);
    EXPECT_EQ(journal.count("R3b"), 1);
}

TEST_F(RemoteTest, R3cKeepsALaterConfirmationUntilItsTurn) {
    begin(6);
    const auto first = send();
    answer(first, central(0));
    answer(send(), central(6), {confirmation(4, 6)});
    remote->next(now);
    EXPECT_EQ(remote->position().confirmed, 0u);
    now += ti;
    answer(send(), central(6), {confirmation(1, 3)});
    remote->next(now);
    EXPECT_EQ(remote->position().confirmed, 6u);
}

TEST_F(RemoteTest, R3dAsksWhenTheWaitForTheFirstIsOver) {
    begin(6);
    answer(send(), central(0));
    answer(send(), central(6), {confirmation(4, 6)});
    now += tr;
    const auto asking = send();
    EXPECT_EQ(outgoing.confirmation_request, (std::vector<Range>{{1, 6}}));
    EXPECT_EQ(journal.count("R3d"), 1);
    EXPECT_EQ(journal.count("R1a"), 0);
    answer(asking, central(6), {confirmation(1, 6)});
    remote->next(now);
    EXPECT_EQ(remote->position().confirmed, 6u);
}

TEST_F(RemoteTest, R3eSendsAgainWhatIsInS) {
    begin(3);
    answer(send(), central(0), {request(2, 2)});
    send();
    EXPECT_EQ(outgoing.repeats, (std::vector<Missing>{{{2, 2}, 0, UINT32_MAX}}));
    EXPECT_EQ(journal.count("R3e"), 1);
    EXPECT_EQ(remote->state_of(2), RecordState::sent);
}

TEST_F(RemoteTest, P22ARequestThatComesAgainWithinTrIsServedOnce) {
    begin(3);
    answer(send(), central(0), {request(1, 3)});
    int repeated = 0;
    for (int i = 0; i < 100; i++) {
        now += ms;
        const auto body = send();
        if (body == 0) continue;
        repeated += outgoing.repeats.empty() ? 0 : 1;
        answer(body, central(0), {request(1, 3)});
    }
    EXPECT_EQ(repeated, 1);
    now += tr;
    answer(send(), central(0), {request(1, 3)});
    send();
    EXPECT_EQ(outgoing.repeats.size(), 1u);
}

TEST_F(RemoteTest, P22AStateThatIsAskedForAllTheTimeIsToldNowAndThen) {
    begin(0);
    answer(send(), central(0));
    int told = 0;
    for (int i = 0; i < 1000; i++) {
        now += ms;
        remote->numbered(0);
        const auto body = send();
        if (body == 0) continue;
        told += outgoing.remote_state ? 1 : 0;
        answer(body, central(0), {StateRequest{0}});
    }
    EXPECT_LE(told, 3);
}

TEST_F(RemoteTest, P22ABodyThatHangsKeepsNeitherContactNorItsRecordsBack) {
    begin(3);
    answer(send(0), central(0));
    now += ti;
    const auto hanging = send();
    EXPECT_EQ(sent, (std::vector<Range>{{1, 3}}));
    now += tr - 1;
    EXPECT_EQ(send(), 0u);
    EXPECT_EQ(remote->wake_at(), now + 1);
    now += 1;
    const auto knock = send();
    EXPECT_NE(knock, 0u);
    EXPECT_TRUE(sent.empty());
    EXPECT_FALSE(remote->overtaken(now));
    answer(knock, central(0));
    EXPECT_EQ(remote->overtaken(now), hanging);
    remote->unanswered(now, hanging, "hangs");
    send();
    EXPECT_EQ(sent, (std::vector<Range>{{1, 3}}));
}

TEST_F(RemoteTest, R3fLetsOtherRequestsGo) {
    begin(8, 2);
    answer(send(), central(2), {request(1, 2), request(6, 7), request(100, 200)});
    send();
    EXPECT_TRUE(outgoing.repeats.empty());
    EXPECT_EQ(journal.count("R3f"), 1);
}

// ---------------------------------------------------------------- P1

TEST_F(RemoteTest, P1ARecordIsSentWhenAllItsPartsAre) {
    begin(2);
    const auto first = send_parts({1, 0, 1, 4});
    answer(first, central(0));
    const auto second = send_parts({1, 2, 2, 4});
    const auto third = send_parts({1, 3, 3, 4});
    answer(third, central(0));
    EXPECT_EQ(remote->state_of(1), RecordState::logged);
    remote->unanswered(now, second, "lost");
    EXPECT_EQ(remote->next(now)->transfers, (Missing{{1, 1}, 2, 2}));
    answer(send_parts({1, 2, 2, 4}), central(0));
    EXPECT_EQ(remote->state_of(1), RecordState::sent);
}

TEST_F(RemoteTest, P1PartsAreRepeatedByThemselves) {
    begin(1);
    answer(send_parts({1, 0, 3, 4}), central(0), {TransferRequest{{{{1, 1}, 1, 2}}}});
    const Outgoing repeat = *remote->next(now);
    EXPECT_EQ(repeat.repeats, (std::vector<Missing>{{{1, 1}, 1, 2}}));
    remote->departed(now, 50, repeat, {{}, {{1, 1, 1, 4}}, 10});
    EXPECT_EQ(remote->next(now)->repeats, (std::vector<Missing>{{{1, 1}, 2, 2}}));
}

// ---------------------------------------------------------------- P9

TEST_F(RemoteTest, P9SbAboveMa) {
    begin(3);
    answer(send(), central(4));
    EXPECT_EQ(remote->stopped(), Stop::remote_lost_history);
    EXPECT_EQ(journal.entries.back().level, Level::critical);
    EXPECT_FALSE(journal.entries.back().hint.empty());
}

TEST_F(RemoteTest, P9OtherIdentityAtSb) {
    begin(3);
    CentralHeader other = central(2);
    other.identity[3] ^= 1;
    answer(send(), other, {confirmation(1, 2)});
    EXPECT_EQ(remote->stopped(), Stop::other_history);
    remote->next(now);
    EXPECT_EQ(remote->position().confirmed, 0u) << "nothing of a foreign history counts";
}

TEST_F(RemoteTest, P9CentralBelowWhatThisBodyTold) {
    begin(9, 5);
    answer(send(), central(4));
    EXPECT_EQ(remote->stopped(), Stop::central_lost_history);
}

TEST_F(RemoteTest, P9ConfirmationBeyondMa) {
    begin(3);
    answer(send(), central(0), {confirmation(1, 9)});
    EXPECT_EQ(remote->stopped(), Stop::remote_lost_history);
}

TEST_F(RemoteTest, P9NamesABatchOfWhatBHoldsAndHasNotWritten) {
    begin(9);
    answer(send(), central(2, 5));
    send();
    EXPECT_EQ(outgoing.witness, 5u);
    answer(bodies, central(7));
    send();
    EXPECT_EQ(outgoing.witness, 0u);
}

TEST_F(RemoteTest, P9ACentralThatHasNotStartedAlthoughItConfirmed) {
    begin(9, 5);
    answer(send(), CentralHeader{.taken = true});
    EXPECT_EQ(remote->stopped(), Stop::central_lost_history);
}

TEST_F(RemoteTest, P9AStoppedLinkTellsBAndSendsNothingElse) {
    begin(9);
    CentralHeader stopped = central(0);
    stopped.stop = Stop::central_lost_history;
    answer(send(), stopped);
    EXPECT_EQ(remote->stopped(), Stop::central_lost_history);
    EXPECT_EQ(send(), 0u);
    now += ti;
    ASSERT_NE(send(), 0u);
    EXPECT_TRUE(sent.empty());
    EXPECT_EQ(remote->header().stop, Stop::central_lost_history);
    EXPECT_EQ(journal.count("P9"), 1);
}

// ---------------------------------------------------------------- P12

TEST_F(RemoteTest, P12AnEmptyBodyAtLeastEveryTi) {
    begin(0);
    const auto first = send();
    ASSERT_NE(first, 0u);
    now += tr - 1;
    EXPECT_EQ(send(), 0u) << "an unanswered body is contact enough";
    answer(first, central(0));
    ASSERT_NE(send(), 0u);
    answer(bodies, central(0));
    EXPECT_EQ(send(), 0u);
    EXPECT_EQ(remote->wake_at(), now + ti);
    now += ti;
    EXPECT_NE(send(), 0u);
}

// ---------------------------------------------------------------- P15

TEST_F(RemoteTest, P15WhatBHoldsIsNotSent) {
    begin(9);
    answer(send(), central(0, 7));
    EXPECT_EQ(remote->state_of(7), RecordState::sent);
    send();
    EXPECT_EQ(sent, (std::vector<Range>{{8, 9}}));
}

TEST_F(RemoteTest, P15WithoutRoomOnlyTheTransactionOfTheNextNumber) {
    begin(9);
    CentralHeader full = central(0);
    full.room = 0;
    answer(send(1), full);
    send();
    EXPECT_EQ(sent, (std::vector<Range>{{2, 3}})) << "transaction_end(1) is 3";
}

TEST_F(RemoteTest, P15BytesInFlightUseTheRoom) {
    begin(30);
    CentralHeader narrow = central(0);
    narrow.room = 40;
    answer(send(1), narrow);
    send();
    EXPECT_EQ(outgoing.budget, 30u);
    send();
    EXPECT_EQ(outgoing.budget, 10u);
    EXPECT_EQ(send(), 0u);
}

TEST_F(RemoteTest, P15NothingToAPausedCentral) {
    begin(9);
    CentralHeader paused = central(0);
    paused.flow = FlowState::paused;
    answer(send(), paused, {request(1, 1)});
    EXPECT_EQ(send(), 0u);
    now += ti;
    answer(send(), central(0));
    send();
    EXPECT_EQ(sent, (std::vector<Range>{{1, 1}, {4, 5}})) << "the request was kept";
}

TEST_F(RemoteTest, P15AFailedCentralGetsWhatItNeedsAlone) {
    begin(9);
    CentralHeader failed = central(0, 3);
    failed.flow = FlowState::failed;
    failed.failed_at = 2;
    answer(send(), failed);
    EXPECT_EQ(send(), 0u);
}

// ---------------------------------------------------------------- P16

TEST_F(RemoteTest, P16OneBodyUntilTheFirstAnswer) {
    begin(9);
    const auto first = send();
    EXPECT_EQ(send(), 0u);
    answer(first, central(0));
    EXPECT_NE(send(), 0u);
    EXPECT_NE(send(), 0u);
}

TEST_F(RemoteTest, P16AConfirmationOfARecordInL) {
    begin(6);  // A crashed between sending and marking
    answer(send(1), central(4), {confirmation(1, 4)});
    remote->next(now);
    EXPECT_EQ(remote->position().confirmed, 4u);
    EXPECT_EQ(remote->position().sent, 4u);
    send();
    EXPECT_EQ(sent, (std::vector<Range>{{5, 6}}));
}

TEST_F(RemoteTest, P16AtMostOneRepetitionInARoundTrip) {
    begin(9);
    answer(send(), central(0));
    const auto early = send();
    now += 10 * ms;
    const auto other = send();
    answer(other, central(0), {request(2, 2)});
    const auto again = send();
    EXPECT_EQ(outgoing.repeats.size(), 1u);
    answer(early, central(0), {request(2, 2)});  // formed before the repetition could arrive
    remote->next(now);
    answer(again, central(0), {});
    EXPECT_EQ(journal.count("R3e"), 1);
}

TEST_F(RemoteTest, P16NoRepetitionWhileTheBodyIsUnanswered) {
    begin(9);
    answer(send(), central(0), {request(1, 1)});
    send(1);
    const auto later = send();
    answer(later, central(0), {request(1, 1)});
    remote->next(now);
    EXPECT_EQ(journal.count("R3e"), 1);
}

TEST_F(RemoteTest, P16WaitsCountFromTheRepetitionAndDouble) {
    begin(1);
    answer(send(), central(0));
    now += tr / 2;
    answer(send(), central(0), {request(1, 1)});
    answer(send(), central(0));
    now += tr - ms;
    answer(send(), central(0));
    EXPECT_TRUE(outgoing.confirmation_request.empty());
    now += ms;
    answer(send(), central(0));
    EXPECT_FALSE(outgoing.confirmation_request.empty());
    now += 2 * tr - ms;
    answer(send(), central(0));
    EXPECT_TRUE(outgoing.confirmation_request.empty());
    now += ms;
    answer(send(), central(0));
    EXPECT_FALSE(outgoing.confirmation_request.empty());
    EXPECT_EQ(journal.count("R1a"), 1) << "per change of state, not per try";
}

TEST_F(RemoteTest, P16WaitsBeginAnewAtARestart) {
    begin(3, 0, 3);
    send();
    EXPECT_TRUE(outgoing.confirmation_request.empty());
    EXPECT_TRUE(sent.empty());
    answer(bodies, central(0));
    EXPECT_EQ(remote->wake_at(), now + ti);
    now += tr;
    send();
    EXPECT_EQ(outgoing.confirmation_request, (std::vector<Range>{{1, 3}}));
}

TEST_F(RemoteTest, P22KnocksGoOnWhileTheCentralIsOutOfReach) {
    begin(3);
    ASSERT_NE(send(), 0u);
    EXPECT_FALSE(sent.empty());
    for (int i = 0; i < 100; ++i) {
        remote->unanswered(now, bodies, "refused");
        EXPECT_EQ(send(), 0u);
        EXPECT_EQ(remote->wake_at(), now + ti) << "whatever the number of tries";
        now = remote->wake_at();
        ASSERT_NE(send(), 0u);
        EXPECT_TRUE(sent.empty()) << "a knock has no content";
    }
    EXPECT_EQ(journal.count("P16"), 1);
    answer(bodies, central(0));
    EXPECT_EQ(journal.count("P16"), 2) << "and one when the central answers again";
    ASSERT_NE(send(), 0u);
    EXPECT_FALSE(sent.empty()) << "at once";
}

TEST_F(RemoteTest, P22KnocksComeSoonWhateverTheIntervals) {
    begin(3);
    remote->configure({3600 * second, 3600 * second, 3, 30});
    ASSERT_NE(send(), 0u);
    remote->unanswered(now, bodies, "refused");
    EXPECT_EQ(remote->wake_at(), now + second);
}

TEST_F(RemoteTest, P22ALinkThatIsNotInStepLooksAgainSoon) {
    begin(3);
    remote->configure({tr, 3600 * second, 3, 30});
    CentralHeader paused = central(0);
    paused.flow = FlowState::paused;
    answer(send(), paused);
    EXPECT_EQ(remote->wake_at(), now + second);
}

TEST_F(RemoteTest, P16BackOffOfBodiesDoublesUpToTr) {
    begin(3);
    std::vector<Time> pauses;
    ASSERT_NE(send(), 0u);
    for (int i = 0; i < 7; ++i) {
        remote->unanswered(now, bodies, "413");
        const Time failed = now;
        do {
            now = remote->wake_at() + ms;
            ASSERT_NE(send(), 0u);
            if (sent.empty()) answer(bodies, central(0));
        } while (sent.empty());
        pauses.push_back((now - failed) / second);
    }
    EXPECT_EQ(pauses, (std::vector<Time>{1, 2, 4, 8, 10, 10, 10}));
    EXPECT_EQ(journal.count("P16"), 1) << "an answered knock is no end of it";
}

TEST_F(RemoteTest, P16OneLostBodyAmongAnsweredOnesIsNoOutage) {
    begin(9);
    answer(send(), central(0));
    const auto lost = send();
    answer(send(), central(0));
    remote->unanswered(now, lost, "timeout");
    EXPECT_EQ(journal.count("P16"), 0);
    EXPECT_NE(send(), 0u);
}

// ---------------------------------------------------------------- P17

TEST_F(RemoteTest, P17DescriptionsAreSentWhenAskedFor) {
    begin(0);
    answer(send(), central(0), {DescriptionRequest{{7, 9}}});
    send();
    EXPECT_EQ(outgoing.descriptions, (std::vector<std::uint64_t>{7, 9}));
    EXPECT_EQ(send(), 0u);
}

}  // namespace
}  // namespace onerepl
