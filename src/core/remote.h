// A's side of one link: rules R1 .. R3, and A's side of P1, P2, P3, P9, P12, P15 and P16.
//
// How it is driven, by one thread and with one monotonic clock:
//   1. `answered` or `unanswered` for every body that came to an end; then a numbering step, and `numbered`
//      (P2: a step that began after the state request was read);
//   2. when `position_changed`, `position` is written to its table (no need to wait for the disk);
//   3. `next` until it gives nothing: the caller loads the records, builds the body, hands it to the
//      transport and calls `departed` with what the body really holds;
//   4. sleep until `wake_at`, or until an answer or a commit wakes it.
#pragma once

#include "core/body.h"
#include "core/journal.h"
#include "core/outage.h"
#include "core/sent_runs.h"

#include <functional>
#include <set>
#include <tuple>

namespace onerepl {

struct RemoteConfig {
    Time reply_timeout = 30 * second;  // Tr
    Time send_interval = 1 * second;   // Ti
    std::size_t max_in_flight = 16;    // bodies without an answer at a time; at least 1
    /// Bytes of records that a body holds. A record larger than this travels in parts of this size, the last
    /// one shorter.
    std::uint64_t batch_bytes = 1024 * 1024;
};

/// What is durable of a link on A. `sent`: records up to here left state L (P16: an authentic answer came).
struct RemotePosition {
    Number start = 0;  // N0
    Identity start_identity{};
    Number confirmed = 0;  // S_a, >= start
    Number sent = 0;       // >= confirmed
    Stop stop = Stop::none;

    bool operator==(const RemotePosition&) const = default;
};

/// What the remote has to look up in its own numbers. Called from inside `answered` and `next` only.
class NumberedHistory {
  public:
    virtual ~NumberedHistory() = default;
    /// Identity at n (P9); nullopt if its batch is purged. Must be known for every n from S_a to M_a.
    virtual std::optional<Identity> identity(Number n) = 0;
    /// The last number of the transaction that n belongs to; n itself if unknown. Asked for only when B is
    /// short of room.
    virtual Number transaction_end(Number n) = 0;
};

/// What the next body is to carry. Lists are in the order in which they go into the body.
struct Outgoing {
    /// R1b: numbers to form, from numbers.first on (from its part first_part on; last_part bounds the parts
    /// only if numbers is a single number). Empty range: none.
    Missing transfers{.numbers = {}, .first_part = 0, .last_part = UINT32_MAX};
    /// R3e: numbers and parts to send again; they go before `transfers`. Parts are meant as above.
    std::vector<Missing> repeats;
    /// Bytes of records for repeats and transfers together. At least one record, or one part, goes whatever
    /// its size.
    std::uint64_t budget = 0;
    /// R1a, R3d: send one confirmation request naming these. Empty: none.
    std::vector<Range> confirmation_request;
    /// R2: send a remote state echoing this S_b.
    std::optional<Number> remote_state;
    /// P9: the body's header.batches must also hold the batch of this number (0: none). B holds it but has
    /// not written it; if it took it from another history, B finds out by this.
    Number witness = 0;
    /// P17: send these descriptions; unknown ids are left out.
    std::vector<std::uint64_t> descriptions;

    bool operator==(const Outgoing&) const = default;
};

/// Parts of one record in a body.
struct CarriedParts {
    Number n = 0;
    std::uint32_t first_part = 0;
    std::uint32_t last_part = 0;
    std::uint32_t parts = 1;  // of the whole record
};

/// What a body really holds of transfers, first sendings and repetitions alike.
struct Carried {
    std::vector<Range> whole;
    std::vector<CarriedParts> parts;
    std::uint64_t bytes = 0;

    bool empty() const { return whole.empty() && parts.empty(); }
};

/// State of one record, as the specification's table has it.
enum class RecordState : char { logged = 'L', blocked = 'B', sent = 'S', confirmed = 'C' };

class Remote {
  public:
    /// Names a body between `departed` and its end. Never reused by the caller while this object lives.
    using BodyId = std::uint64_t;

    /// `journal` and `history` must outlive it. The waits of records in S begin at `now` (P16).
    Remote(Time now, const RemoteConfig& config, const RemotePosition& position, Number last,
           Journal& journal, NumberedHistory& history);

    /// New settings; take effect at once.
    void configure(const RemoteConfig& config);
    /// A numbering step ended: M_a is `last`, durable. Call after every step, also one that found nothing new
    /// (P2).
    void numbered(Number last);
    /// The first number that the administrator has blocked and that is still in L (`state_of`); nullopt:
    /// none.
    void set_blocked(std::optional<Number> first);
    void set_paused(bool paused);
    /// P22: the caller could not form transfers just now; while it rests, none are offered. Contact goes on.
    void set_resting(bool resting);
    /// P9 found by the caller (wrong_peer). Critical in the journal, once. `detail`: what was seen.
    void stop(Stop reason, std::string detail = {});
    /// What was seen when this object stopped the link.
    const std::string& stop_detail() const { return stop_detail_; }

    /// An authentic answer to a body came: every number in it becomes S, and B's messages go to the queue.
    /// Damaged frames are left out of `messages` by the caller. Ignored if the body is not known (any more).
    /// If the history throws, nothing has changed, and the answer can be taken another time (P20).
    void answered(Time now, BodyId body, const CentralHeader& header, std::span<const Message> messages);
    /// P22: an earlier body that has had no answer for Tr while a later one has: the caller gives it up, and
    /// calls `unanswered`. nullopt: none.
    std::optional<BodyId> overtaken(Time now) const;
    /// The transport failed, or no authentic answer came in time. `reason` is for the journal.
    void unanswered(Time now, BodyId body, std::string_view reason);

    /// What the next body is to carry; nullopt: nothing now. Looks at the queue (R2, R3) each time. Only
    /// `departed` makes waits begin, so what is not sent after all is offered again.
    std::optional<Outgoing> next(Time now);
    /// The body of the last `next` was handed to the transport, its header being `header()`.
    void departed(Time now, BodyId body, const Outgoing& outgoing, const Carried& carried);

    /// For every body; `batches` is the caller's to fill with those of all transfers in it, and of
    /// outgoing.witness.
    RemoteHeader header() const;
    /// When `next`, having given nothing, may have something although nothing happens until then.
    Time wake_at() const;

    const RemotePosition& position() const { return position_; }
    /// Since the last `position_stored`.
    bool position_changed() const { return position_ != stored_; }
    /// What `position` says is in its table.
    void position_stored() { stored_ = position_; }
    /// True until `numbered` is called: a state request waits for a numbering step (P2).
    bool wants_numbering() const { return state_request_.has_value() && !numbered_since_request_; }
    Stop stopped() const { return position_.stop; }
    /// P16: the last try brought no answer.
    bool is_waiting_after_failure() const { return outage_.is_on(); }
    Number last() const { return last_; }
    /// State of the record n; n in (start, M_a].
    RecordState state_of(Number n) const;
    /// B's header as last told; nullopt before the first answer.
    const std::optional<CentralHeader>& central() const { return central_; }

  private:
    struct BodyInFlight {
        Time departed = 0;
        std::uint64_t departure = 0;  // bodies are counted as they leave
        Number confirmed = 0;         // S_a that its header told
        Carried carried;
    };
    /// What was sent again or told lately, as B asked for it; forgotten every Tr.
    struct Served {
        Time since = 0;
        RangeSet numbers;
        std::map<Number, RangeSet> parts;  // of records that were asked for by themselves
        std::set<std::uint64_t> descriptions;
    };
    /// A record in L some parts of which are S already.
    struct PartlySent {
        std::uint32_t parts = 1;
        std::set<std::uint32_t> sent;
    };
    struct Request {
        Missing missing;
        std::uint64_t departure = 0;  // of the body whose answer carried it
    };
    /// P15: what may be sent now.
    struct Allowance {
        std::uint64_t bytes = 0;
        Number in_any_case_to = 0;  // up to here whatever `bytes` says
    };

    // remote.cpp: what comes in
    std::optional<Identity> own_identity(const CentralHeader& header);
    void check_history(const BodyInFlight& body, const CentralHeader& header,
                       const std::optional<Identity>& own);
    void remember(Time now, const BodyInFlight& body, const CentralHeader& header);
    void mark_sent(const BodyInFlight& body);
    void mark_held(Time now);
    void enqueue(const BodyInFlight& body, std::span<const Message> messages);
    void enqueue(const TransferConfirmation& confirmation);
    void report_outage_over();
    void became_sent(Range range, Time since, std::uint64_t departure);
    void settle();
    bool barred() const;

    // remote_queue.cpp: R2, R3
    void check_queue(Time now);
    void take_confirmations();
    void confirm(Number to);
    void take_requests();
    void forget_served(Time now);
    bool serve(const Missing& asked);
    void take_request(const Request& request, const RangeSet& taken, RangeSet& not_repeatable);
    void repeat(const Request& request, Range range, const RangeSet& taken);

    // remote_form.cpp: what goes out
    std::size_t most_in_flight() const;
    std::size_t waiting_bodies(Time now) const;
    bool hangs(const BodyInFlight& body, Time now) const;
    Time place_in_flight_at() const;
    Time keep_alive_at() const;
    bool state_is_due(Time now) const;
    bool may_depart(Time now) const;
    Time knock_interval() const;
    Time contact_interval() const;
    bool keep_alive_due(Time now) const;
    std::vector<Range> overdue(Time now) const;
    void form_transfers(Outgoing& outgoing);
    Allowance allowance();
    std::vector<Missing> repeats_within(const Allowance& allowed) const;
    Missing transfers_within(const Allowance& allowed);
    Missing first_logged() const;
    std::set<std::uint32_t> parts_on_their_way(Number n, std::uint32_t& parts) const;
    RangeSet numbers_in_flight() const;
    bool is_in_flight(Number n) const;
    std::uint64_t bytes_in_flight() const;
    void report_blocked(Number n);
    void note_departure(Time now, std::uint64_t departure, const Carried& carried);
    void note_confirmation_request(Time now, const std::vector<Range>& numbers);
    void forget_repeat(const CarriedParts& carried);
    void forget_repeats(Range range);

    RemoteConfig config_;
    RemotePosition position_;
    RemotePosition stored_;  // as the table has it
    std::string stop_detail_;
    Number last_ = 0;  // M_a
    Journal& journal_;
    NumberedHistory& history_;
    std::optional<Number> blocked_;
    bool paused_ = false;
    bool resting_ = false;

    SentRuns sent_;
    std::map<Number, PartlySent> partly_sent_;
    std::map<BodyId, BodyInFlight> in_flight_;
    std::uint64_t departures_ = 0;

    // The queue of messages from B. Confirmations stay by R3c; requests become `repeats_` or leave.
    bool fresh_ = false;  // something came since the last look, state requests apart
    RangeSet confirmations_;
    std::vector<Request> requests_;
    std::optional<Number> state_request_;
    bool numbered_since_request_ = false;
    std::vector<Missing> repeats_;  // R3e, in the order of their numbers
    std::set<std::uint64_t> descriptions_;
    Served served_;
    std::optional<Time> state_told_;

    std::optional<CentralHeader> central_;
    std::uint64_t central_departure_ = 0;  // of the body whose answer told `central_`
    std::pair<Number, Number> first_transaction_{
        0, 0};  // S_b + 1 and the end of its transaction, as last looked up
    std::optional<Time> last_departure_;
    std::uint64_t last_answered_ = 0;  // departure of the latest body that was answered
    Time last_told_ = 0;               // when `central_` was told
    Outage outage_;
    std::optional<Number> reported_blocked_;
};

}  // namespace onerepl
