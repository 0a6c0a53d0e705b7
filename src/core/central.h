// B's side of one link: rules C1 .. C4, and B's side of P1, P2, P3, P5, P9, P12, P15, P16 and P17.
//
// A Central lives for one turn: one body, or a look at the queue without one. How a turn goes:
//   1. load CentralState, after the body has arrived; construct;
//   2. `admit` with the body's header; if it allows, `offer` each transfer; `take` each other message of A;
//   3. `ready` says what can be written now: whole transactions from S_b + 1 on, held or just taken. Write
//      them, then `applied` (or `failed`, or `lacking` for an unknown description); again until `ready` is
//      empty or time is up;
//   4. in the same commit: `evicted` is deleted from the queue, `to_spool` is put there, then `spooled`;
//      `state` is written where `state_changed`;
//   5. after that commit is on disk: `reply`.
// If the commit fails, throw the object away: nothing has happened (CentralWaits is changed for good by
// `admit`, `reply` and `tick` only). Without a body: `ready` as above, and `tick`.
#pragma once

#include "core/body.h"
#include "core/journal.h"

#include <map>
#include <set>

namespace onerepl {

struct CentralConfig {
    Time reply_timeout = 30 * second;         // Tr
    Time state_query_interval = 60 * second;  // Ts
    /// Bytes of transfers that may wait in the queue (P15); the transaction of S_b + 1 may exceed it.
    std::uint64_t room = 256 * 1024 * 1024;
    /// Who speaks, for messages: the address from which the body came.
    std::string speaker{};
};

/// Whole records in B's queue. The loader may merge runs that follow each other; runs may overlap.
struct HeldRun {
    Range numbers;
    Number last_end = 0;     // largest number in it that ends a transaction of A; 0: none
    std::uint64_t size = 0;  // bytes of its records
    std::vector<Batch> batches;
};

/// A record of which parts are in B's queue (perhaps all).
struct HeldParts {
    Number n = 0;
    bool last_of_transaction = false;
    std::uint32_t parts = 1;
    std::set<std::uint32_t> held;
    std::uint64_t size = 0;
    std::vector<Batch> batches;
};

/// What is durable of a link on B.
struct CentralState {
    bool started = false;  // N0 and its identity were taken over
    Number start = 0;      // N0
    Identity start_identity{};
    Number written = 0;   // S_b
    Identity identity{};  // of the history at S_b
    std::vector<HeldRun> waiting;
    std::vector<HeldParts> partial;
    /// F: smallest number that waits for the administrator's decision; nullopt: none, or it was decided.
    std::optional<Number> failed_at;
    bool paused = false;
    Stop stop = Stop::none;
};

/// What all receivers of a server remember of a link between turns; in shared memory, so plain bytes. All
/// zero: nothing yet (a restart: the waits begin anew, P16). The caller serializes access.
struct CentralWaits {
    bool begun;
    bool reported_silent;       // administrator knows: no contact for Tr
    bool reported_unanswered;   // administrator knows: state request unanswered
    bool reported_identical;    // journal knows that A and B are identical
    bool reported_gap;          // journal knows of missing numbers
    bool reported_not_started;  // administrator knows: A has confirmations, B has not started
    bool state_request_out;
    Time last_contact;      // last authentic body
    Time last_processed;    // last message
    Time state_request_at;  // handed to A (P12)
    Number confirmed_to;    // up to here a confirmation was handed to A
    struct Requested {      // transfer requests handed to A
        Number first, last;
        Time at;
    } requested[16];
    struct RequestedDescription {
        std::uint64_t id;
        Time at;
        int times;
    } descriptions[8];
};
static_assert(std::is_trivially_copyable_v<CentralWaits> && std::is_standard_layout_v<CentralWaits>);

/// What becomes of a transfer that arrived.
enum class Offer : std::uint8_t {
    drop,     // C2b: written or held already
    take,     // keep it for `ready` or `to_spool`
    replace,  // take; parts of this number that the queue holds are of another cut and are to be deleted
    refuse,   // P15: no room; counts as lost
};

/// Whole transactions to write now. Empty numbers: nothing.
struct Ready {
    Range numbers;
    Identity identity{};  // at numbers.last
};

/// What was taken, is not written, and goes to the queue. Of a single number: some parts of it if parts > 1.
struct Spool {
    Range numbers;
    Number last_end = 0;
    std::uint32_t part = 0;
    std::uint32_t parts = 1;
    std::uint64_t size = 0;
    std::vector<Batch> batches;  // that cover `numbers`
};

struct Reply {
    CentralHeader header;
    std::vector<Message> messages;
};

class Central {
  public:
    /// References must outlive it.
    Central(Time now, const CentralConfig& config, CentralState state, CentralWaits& waits, Journal& journal);

    /// An authentic body of A came. `echo`: of a remote state in it. Takes over N0 if B has not started; may
    /// stop the link (P9). False: no transfer of this body may be looked at.
    bool admit(Time now, const RemoteHeader& header, std::optional<Number> echo);
    /// C2, P15: a transfer of the admitted body, in the body's order. `count`: how many numbers from
    /// transfer.n on it stands for (P17: a skip record's skip_count; else 1).
    Offer offer(const ObjectTransfer& transfer, Number count = 1);
    /// C3, C4: any other message of A. (Descriptions are the caller's; they count as processed here.)
    void take(const Message& message);

    /// P5: what can be written now. Finds forks in what is held (P9): then it is empty and `stopped()`.
    Ready ready();
    /// Identity at the number `end` in `ready().numbers`, for a caller who writes less of it.
    std::optional<Identity> identity_at_end(Number end) const;
    /// Written up to `to`, the end of a transaction, in the caller's commit (C2a).
    void applied(Number to);
    /// C2a, P13: n cannot be written; its transaction goes to the queue. `reason` is for the journal.
    void failed(Number n, std::string_view reason);
    /// P17: these descriptions are needed before more can be written; `ready` is empty for the rest of this
    /// turn.
    void lacking(std::span<const std::uint64_t> ids);
    /// P22: descriptions that A was asked for often enough, and has not told in a way that can be read. Each
    /// is given once; whoever says `lacking` of it again has it asked for as often again.
    std::vector<std::uint64_t> untold(Time now);
    /// P9 found by the caller (wrong_peer, copies). Critical in the journal, once. `detail`: what was seen;
    /// empty: what the body says of itself.
    void stop(Stop reason, std::string detail = {});
    /// What was seen when this turn stopped the link.
    const std::string& stop_detail() const { return stop_detail_; }

    /// Numbers of queue rows to delete for lack of room (P15): rows whose numbers lie in one of these ranges.
    const std::vector<Range>& evicted() const { return evicted_; }
    std::vector<Spool> to_spool() const;
    /// `to_spool` is in the queue.
    void spooled();

    const CentralState& state() const { return state_; }
    /// Something of it beyond the queue changed: started, start, written, identity, stop.
    bool state_changed() const { return changed_; }
    Stop stopped() const { return state_.stop; }

    /// What the answer to the admitted body carries (C2, C3, C4, P2, P3, P16), once the commit is on disk.
    /// `heard_from`: before that the caller may not have heard what A said, so A's silence counts from then.
    Reply reply(Time now, Time heard_from = 0);
    /// Whether `reply` would say that the remote does not answer, if all of it was heard.
    bool state_overdue(Time now) const { return waits_.state_request_out && now >= state_request_ends(0); }
    /// Header alone, for a caller who could not take the turn (another receiver has the link).
    CentralHeader header() const;
    /// C1b, P12: tells the administrator what the time shows. Returns when it wants to be called again.
    /// `heard_from`: as for `reply`.
    Time tick(Time now, Time heard_from = 0);

  private:
    /// Numbers and when A was last asked for them.
    using Requested = CentralWaits::Requested;

    // central.cpp: what every body says (P9, P12), and time
    void begin(Time now);
    void contact(Time now);
    void check_history(const RemoteHeader& header, std::optional<Number> echo);
    std::string circumstances() const;
    void report_not_started();
    bool conflicts(const Batch& batch) const;
    void learn(const Batch& batch);
    const Batch* batch_of(Number n) const;
    std::vector<Batch> batches_of(Range numbers) const;

    // central_queue.cpp: C2, P1, P5, P15
    Offer offer_whole(const ObjectTransfer& transfer, Range numbers);
    Offer offer_part(const ObjectTransfer& transfer);
    void keep_whole(const ObjectTransfer& transfer, Range numbers);
    void keep_part(const ObjectTransfer& transfer);
    bool make_room(const ObjectTransfer& transfer);
    bool needed(Number n) const;
    bool evict_highest();
    HeldParts* partial_of(Number n);
    /// Last number held without a gap from S_b on.
    Number reach() const { return whole_.contiguous_to(state_.written + 1); }
    Number last_end_to(Number reach) const;
    bool one_history(Number end);
    void forget_parts(Number n);
    void forget_taken_parts(Number n);
    template <class Run>
    void cut(std::vector<Run>& runs, Number to);

    // central_reply.cpp: what the answer says
    void confirm_written(RangeSet& confirmed) const;
    void answer_remote_state(RangeSet& confirmed, std::vector<Missing>& missing);
    void answer_confirmation_requests(RangeSet& confirmed, std::vector<Missing>& missing);
    void ask_for_gaps(std::vector<Missing>& missing);
    std::vector<Missing> missing_in(Range numbers) const;
    void missing_parts(const HeldParts& record, bool all, std::vector<Missing>& missing) const;
    std::vector<Missing> not_asked_lately(Time now, std::vector<Missing> missing);
    void remember_request(Time now, Range numbers);
    std::vector<std::uint64_t> descriptions_not_asked_lately(Time now);
    std::optional<StateRequest> ask_for_state(Time now, Time heard_from, bool answer_is_empty);
    /// When the waiting time of the state request that is out is over (C1a).
    Time state_request_ends(Time heard_from) const {
        return std::max(waits_.state_request_at, heard_from) + config_.reply_timeout;
    }
    void report_unanswered();

    CentralConfig config_;
    CentralState state_;
    CentralWaits& waits_;
    Journal& journal_;
    bool changed_ = false;
    std::string stop_detail_;

    std::optional<RemoteHeader> header_;  // of the admitted body
    std::map<Number, Batch> batches_;     // by first number: of the queue and of the body
    bool two_histories_ = false;          // in the queue: receivers that ran side by side took from both
    RangeSet whole_;                      // whole records after S_b: in the queue, or taken now
    std::uint64_t used_ = 0;              // bytes of the queue, and of what was taken to go there
    std::vector<Spool> taken_;            // without batches
    std::vector<Range> evicted_;

    bool processed_ = false;  // the body held a message
    std::uint64_t offered_ = 0;
    std::uint64_t dropped_ = 0;     // C2b
    bool state_told_ = false;       // C3
    std::vector<Range> asked_for_;  // C4
    std::vector<std::uint64_t> lacking_;
};

}  // namespace onerepl
