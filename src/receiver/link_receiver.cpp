// One turn of B for a link: load, look at the body, write, spool, answer. Each step is a function; the
// decisions are the core's.
#include "pg/pg.h"

#include "receiver/link_receiver.h"

extern "C" {
#include "utils/timestamp.h"
}

#include "core/crypto.h"
#include "pg/clock.h"
#include "pg/settings.h"
#include "pg/spi.h"
#include "pg/transaction.h"
#include "receiver/link_lock.h"
#include "receiver/packed_frames.h"
#include "receiver/waiting.h"
#include "shared/memory.h"
#include "store/log_tables.h"
#include "worker/worker.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace onerepl::receiver {

namespace {

constexpr Time first_retry = 200 * millisecond;
constexpr Time longest_retry = 30 * second;
constexpr Time contact_interval = 1 * second;
/// Bytes of a nonce that name the link's start (P10).
constexpr std::ptrdiff_t start_length = 8;

/// What is kept in memory is read again this often, whether or not anything was invalidated.
constexpr Time reload_interval = 1 * second;

/// Gives the position's sequence number.
std::int64_t load_position(const Link& link, CentralState& state) {
    std::int64_t seq = 0;
    state.started = link.start.has_value();
    if (!state.started) return seq;
    state.start = *link.start;
    state.start_identity = link.start_identity;
    pg::query(
        "SELECT written, identity, seq FROM onerepl.apply_progress WHERE link = $1 ORDER BY seq DESC LIMIT 1",
        {link.id}, [&](const pg::Row& row) {
            state.written = row.number(0);
            const Bytes identity = row.bytea(1);
            std::copy_n(identity.begin(), std::min(identity.size(), state.identity.size()),
                        state.identity.begin());
            seq = row.int8(2);
        });
    return seq;
}

/// By hand: it comes with each body. Must be in the transaction that writes the rows.
void store_position(int link, std::int64_t seq, Number written, const Identity& identity) {
    const Datum bytes = pg::Param(ByteView(identity)).value;
    pg::call([&] {
        const Datum values[] = {Int32GetDatum(link), Int64GetDatum(seq), UInt64GetDatum(written), bytes,
                                TimestampTzGetDatum(GetCurrentTimestamp())};
        store::insert_row(store::own_relation("apply_progress"), values);
    });
}

/// By hand, too. The link has never been there before, so no other row has these numbers.
void store_received(int link, Range numbers, const Bytes& frames) {
    const Datum bytes = pg::Param(ByteView(frames)).value;
    pg::call([&] {
        const Datum values[] = {Int32GetDatum(link),
                                UInt64GetDatum(numbers.first),
                                Int32GetDatum(0),  // part
                                UInt64GetDatum(numbers.last),
                                bytes,
                                TimestampTzGetDatum(GetCurrentTimestamp())};
        store::insert_row(store::own_relation("received"), values);
    });
}

/// Not zero.
std::uint64_t random_number() {
    std::uint64_t number = 0;
    while (number == 0) {
        const Nonce bytes = random_array<Nonce>();
        std::memcpy(&number, bytes.data(), sizeof number);
    }
    return number;
}

/// As onerepl_status() knows the states of a remote.
const char* state_name(const RemoteHeader& header) {
    if (header.stop != Stop::none) return "stopped";
    if (header.capture_stopped) return "capture stopped";
    if (header.paused) return "paused";
    return header.blocked_at != 0 ? "blocked" : "running";
}

}  // namespace

struct LinkReceiver::Turn {
    Turn(Time now, const CentralConfig& config, LinkState state, CentralWaits& waits, Journal& journal)
        : begun(now),
          central(now, config, std::move(state.central), waits, journal),
          known(std::move(state.known)),
          position_seq(state.position_seq),
          memory_holds(state.memory_holds) {}
    Time begun;
    Central central;
    Incoming incoming;
    KnownFailures known;
    std::int64_t position_seq;             // of the newest position
    bool memory_holds;                     // apply::Options
    std::optional<apply::Outcome> failed;  // to be stored
    std::optional<std::string> put_off;    // to be stored: why writing is put off; empty: it is not
    std::vector<std::uint64_t> lacking;
    bool over = false;   // no more is written in this turn
    bool moved = false;  // the position, since apply was called
    bool spooled = false;
    const Body* body = nullptr;  // null: a look without one
    const RemoteHeader* header = nullptr;
    std::size_t frames = 0;  // of the body
};

LinkReceiver::LinkReceiver(Link link, const Uuid& own_id)
    : link_(std::move(link)), own_id_(own_id), journal_(link_.id), applier_(link_.id) {}

void LinkReceiver::update(const Link& link) {
    const bool anew = link.challenge != link_.challenge;
    link_ = link;
    if (!anew) return;
    applier_.forget();
    retry_at_ = retry_wait_ = contact_stored_ = 0;
    kept_.there = false;
}

/// P20: of the memory that receivers share, what an earlier start has left means nothing to this one: its
/// numbers may begin anywhere.
void LinkReceiver::begin_start() {
    if (shared_->challenge == link_.challenge) return;
    const std::uint64_t turns = shared_->turns;
    *shared_ = {};
    shared_->challenge = link_.challenge;
    shared_->turns = turns;
}

CentralConfig LinkReceiver::config() const {
    CentralConfig config;
    config.reply_timeout = link_.reply_timeout;
    config.state_query_interval = link_.state_query_interval;
    config.room = static_cast<std::uint64_t>(settings::queue_limit) * 1024 * 1024;
    return config;
}

/// Under the link's lock.
void LinkReceiver::begin_turn() {
    static_assert(sizeof(SharedLink) <= shared::link_memory_size);
    shared_ = static_cast<SharedLink*>(shared::link_memory(link_.id));
    if (shared_ == nullptr) {
        shared_ = &own_shared_;
        kept_.there = false;  // others cannot be seen
    }
}

/// What is durable of the link, from memory where that is sure to hold.
LinkReceiver::LinkState LinkReceiver::load_state() {
    const bool holds = kept_.there && kept_.turn == shared_->turns &&
                       kept_.generation == shared::receiver_generation() &&
                       pg::now() - kept_.loaded_at < reload_interval;
    kept_.there = false;  // until this turn has ended well
    shared_->turns++;
    if (holds) return std::move(kept_.state);
    kept_.generation = shared::receiver_generation();
    kept_.loaded_at = pg::now();
    LinkState state;
    pg::in_transaction([&] {
        for (const Link& fresh : load_links(Role::central))
            if (fresh.id == link_.id) update(fresh);
        state.position_seq = load_position(link_, state.central);
        load_waiting(link_.id, state.central);
        state.known = load_failures(link_.id);
        state.central.failed_at = state.known.undecided;
    });
    state.central.paused = link_.paused;
    state.central.stop = link_.stop;
    begin_start();
    return state;
}

/// At the end of a turn.
void LinkReceiver::keep_state(const Turn& turn) {
    const CentralState& state = turn.central.state();
    if (!state.started || state.stop != Stop::none || turn.known.any || turn.failed || turn.over ||
        turn.spooled || !state.waiting.empty() || !state.partial.empty() || shared_ == &own_shared_)
        return;
    kept_.state = {state, turn.known, turn.position_seq, turn.memory_holds};
    kept_.turn = shared_->turns;
    kept_.there = true;
}

Bytes LinkReceiver::receive(const OpenedBody& opened, const std::string& peer,
                            const std::function<Time()>& heard_from) {
    const LinkLock lock(link_.id);
    if (!lock.held()) return receive_without_lock(opened);
    const Body& body = opened.body;
    begin_turn();
    CentralConfig heard = config();
    heard.speaker = peer;
    Turn turn(pg::now(), heard, load_state(), shared_->waits, journal_);
    if (!answers_this_start(body)) return encode_reply(body, {turn.central.header(), {}});
    turn.body = &body;
    turn.header = &std::get<RemoteHeader>(body.header);
    if (addressed_here(body)) {
        find_copies(turn, peer);
        read_messages(turn, opened.frames);
        store_start(turn);
        write_ready(turn);
    } else {
        turn.central.stop(Stop::wrong_peer);
    }
    finish(turn);
    end_trouble();
    const Time now = pg::now();
    const Reply reply = turn.central.reply(now, turn.central.state_overdue(now) ? heard_from() : 0);
    keep_state(turn);
    return encode_reply(body, reply);
}

std::string LinkReceiver::put_off(const pg::ErrorReport& error) {
    const std::string told = error.message + " (SQLSTATE " + error.sqlstate + ")";
    SharedLink* const seen = static_cast<SharedLink*>(shared::link_memory(link_.id));
    SharedLink& noted = seen != nullptr ? *seen : own_shared_;
    if (told.compare(0, sizeof noted.trouble - 1, noted.trouble) != 0) {
        strlcpy(noted.trouble, told.c_str(), sizeof noted.trouble);
        pg::call([&] {
            ereport(LOG, (errmsg("onerepl, link \"%s\": what the remote sends is put off: %s",
                                 link_.name.c_str(), told.c_str()),
                          error.detail.empty() ? 0 : errdetail_internal("%s", error.detail.c_str()),
                          error.context.empty() ? 0 : errcontext("%s", error.context.c_str())));
        });
        journal_.write({Level::warning,
                        "P22",
                        "what the remote sends is put off: " + told,
                        "It is tried again by itself once the cause is gone; the server log has more.",
                        {}});
    }
    return "the central cannot take it just now: " + told;
}

void LinkReceiver::end_trouble() {
    if (shared_->trouble[0] == '\0') return;
    shared_->trouble[0] = '\0';
    journal_.write({Level::information, "P22", "what the remote sends is taken again", "", {}});
}

/// P9: it is from the remote that the link is bound to, or waits for, and meant for this database.
bool LinkReceiver::addressed_here(const Body& body) const {
    const bool from_remote =
        (!link_.peer || body.parties.remote == *link_.peer) && body.parties.remote != own_id_;
    return from_remote && (is_zero(body.parties.central) || body.parties.central == own_id_);
}

/// P10: a body counts only if it names an answer which this central gave since the link was made or started
/// anew. What was recorded before cannot: it would bind the link to a former remote, or stop it. Of the
/// bodies of one start numbers tell old from new.
bool LinkReceiver::answers_this_start(const Body& body) const {
    return std::equal(body.reply_to.begin(), body.reply_to.begin() + start_length, link_.challenge.begin());
}

/// All answers of a start begin alike, so that no memory of them is needed.
Nonce LinkReceiver::next_nonce() const {
    Nonce nonce = random_array<Nonce>();
    std::copy_n(link_.challenge.begin(), start_length, nonce.begin());
    return nonce;
}

Time LinkReceiver::deaf_until() const {
    const auto* memory = static_cast<const SharedLink*>(shared::link_memory(link_.id, false));
    if (memory == nullptr || memory->writing.process == 0) return 0;
    return is_writing(memory->writing) ? pg::now() : memory->writing.until;
}

Time LinkReceiver::check(Time heard_from) {
    const LinkLock lock(link_.id);
    if (!lock.held()) return 1 * second;
    begin_turn();
    kept_.there = false;
    Turn turn(pg::now(), config(), load_state(), shared_->waits, journal_);
    write_ready(turn);
    const Time wait = turn.central.tick(pg::now(), heard_from) - pg::now();
    finish(turn);
    return retry_at_ > 0 ? std::min(wait, std::max<Time>(retry_at_ - pg::now(), 0)) : wait;
}

/// P9: before anything of the body is believed.
void LinkReceiver::find_copies(Turn& turn, const std::string& peer) {
    Speakers& speakers = shared_->speakers;
    const RemoteHeader& header = *turn.header;
    if (speak_in_turn(speakers, header.process, header.heard, random_number()))
        turn.central.stop(Stop::copies,
                          "from " + std::string(shared_->spoken_from) + " and from " + peer + ": S = " +
                              std::to_string(header.confirmed) + ", M = " + std::to_string(header.last) +
                              " there, " + std::to_string(turn.central.state().written) + " is written here");
    if (header.process == speakers.current)
        strlcpy(shared_->spoken_from, peer.c_str(), sizeof shared_->spoken_from);
}

void LinkReceiver::read_messages(Turn& turn, const std::vector<FrameResult>& frames) {
    std::optional<Number> echo;
    for (const FrameResult& frame : frames)
        if (const auto* message = std::get_if<Message>(&frame.value))
            if (const auto* state = std::get_if<RemoteState>(message)) echo = state->echo;
    turn.frames = frames.size();
    const bool admitted = turn.central.admit(pg::now(), *turn.header, echo);
    for (const FrameResult& frame : frames) {
        const auto* message = std::get_if<Message>(&frame.value);
        if (message && std::holds_alternative<ObjectTransfer>(*message) && !admitted) continue;
        take_message(turn, frame);
    }
}

void LinkReceiver::take_message(Turn& turn, const FrameResult& frame) {
    const auto* message = std::get_if<Message>(&frame.value);
    if (!message) {
        journal_.write({Level::warning,
                        "P1",
                        "a message of the remote is damaged and was dropped: " +
                            std::string(onerepl::describe(std::get<FrameError>(frame.value))),
                        "",
                        {frame.n, frame.n}});
        return;
    }
    if (const auto* description = std::get_if<Description>(message)) {
        if (const auto table = decode_description(description->description))
            in_this_start([&] {
                pg::execute(
                    "INSERT INTO onerepl.remote_description (link, id, description) VALUES ($1, $2, $3)"
                    " ON CONFLICT DO NOTHING",
                    {link_.id, table->id, description->description});
            });
    }
    const auto* transfer = std::get_if<ObjectTransfer>(message);
    if (!transfer) return turn.central.take(*message);
    const Offer offer = turn.central.offer(*transfer);
    if (offer == Offer::replace) in_this_start([&] { delete_waiting(link_.id, {transfer->n, transfer->n}); });
    if (offer == Offer::take || offer == Offer::replace) turn.incoming.add(*transfer, frame.bytes);
}

void LinkReceiver::write_ready(Turn& turn) {
    if (retry_at_ > pg::now()) return;
    while (!turn.over && write_once(turn)) continue;
}

/// Writes what is whole from S_b + 1 on. False when there is no more to do in this turn.
bool LinkReceiver::write_once(Turn& turn) {
    const Ready ready = turn.central.ready();
    if (ready.numbers.empty()) return false;
    const bool direct = turn.incoming.holds(ready.numbers);
    if (!direct) pg::in_transaction([&] { spool(turn); });
    const Number before = turn.central.state().written;
    turn.moved = false;
    const WritingMark mark(*shared_, ready.numbers);
    apply::Options options;
    options.resolutions = &turn.known.resolutions;
    options.untold = turn.central.untold(pg::now());
    options.memory_holds = std::exchange(turn.memory_holds, false);
    auto before_commit = [&](Number written) { move_position(turn, written, !direct); };
    apply::Outcome outcome;
    if (direct) {
        IncomingSource source(turn.incoming, ready.numbers);
        outcome = applier_.apply(source, before, before_commit, options);
    } else {
        WaitingSource source(link_.id, ready.numbers);
        outcome = applier_.apply(source, before, before_commit, options);
    }
    turn.memory_holds = !outcome.failed_at && !outcome.transient && !outcome.lacking_description;
    take_outcome(turn, outcome);
    return !turn.over && outcome.written > before;
}

/// Inside the transaction that writes the rows (P5).
void LinkReceiver::move_position(Turn& turn, Number written, bool from_queue) {
    const std::optional<Identity> identity = turn.central.identity_at_end(written);
    if (!identity) throw pg::Error("XX000", "no identity is known at number " + std::to_string(written));
    // Several transactions may be committed in one call of apply: then the last position is the table's, not
    // the core's.
    const Number before = turn.moved ? last_position() : turn.central.state().written;
    turn.moved = true;
    store_position(link_.id, ++turn.position_seq, written, *identity);
    // Readers see the rows at once; the confirmation waits for the disk, where the link's lock is given up
    // (P5).
    pg::commit_without_wait();
    const bool keep_log = settings::log_retention > 0;
    if (from_queue) {
        finish_waiting(link_.id, written, keep_log);
    } else if (keep_log) {
        const Range numbers{before + 1, written};
        store_received(link_.id, numbers, frames_for_log(turn, numbers));
    }
    if (turn.known.any) finish_failures(link_.id, written);
}

/// As they came, compressed, if the body held nothing else.
Bytes LinkReceiver::frames_for_log(const Turn& turn, Range numbers) const {
    if (!turn.body->compressed.empty() && turn.incoming.size() == turn.frames &&
        turn.incoming.is_all_of(numbers))
        return pack_compressed(turn.body->compressed);
    return pack_frames(turn.incoming.log_frames(numbers, {*link_.peer, own_id_}), settings::compression);
}

Number LinkReceiver::last_position() const {
    CentralState state;
    load_position(link_, state);
    return state.written;
}

void LinkReceiver::take_outcome(Turn& turn, const apply::Outcome& outcome) {
    const bool moved = outcome.written > turn.central.state().written;
    if (moved) turn.central.applied(outcome.written);
    if (outcome.lacking_description) {
        turn.central.lacking(std::span(&*outcome.lacking_description, 1));
        turn.over = true;
    }
    if (outcome.failed_at) {
        turn.central.failed(*outcome.failed_at, describe(outcome));
        turn.failed = outcome;
        turn.over = true;
    }
    if (!outcome.transient) {
        retry_at_ = retry_wait_ = 0;
        note_put_off(turn, "", "");
        return;
    }
    const std::string& sqlstate = outcome.transient->sqlstate;
    note_put_off(turn, sqlstate,
                 "writing is put off: " + outcome.transient->message + " (SQLSTATE " + sqlstate + ")");
    retry_wait_ = retry_wait_ == 0 || moved ? first_retry : std::min(retry_wait_ * 2, longest_retry);
    retry_at_ = pg::now() + retry_wait_;
    turn.over = true;
}

/// What writing has shown, told once for a cause, whichever receiver it meets (P16).
void LinkReceiver::note_put_off(Turn& turn, const std::string& sqlstate, const std::string& reason) {
    if (shared_->put_off_stored && sqlstate == shared_->put_off) return;
    turn.put_off = reason;
    strlcpy(shared_->put_off, sqlstate.c_str(), sizeof shared_->put_off);
    shared_->put_off_stored = false;
    if (!reason.empty()) journal_.write({Level::warning, "C2a", reason, "It is tried again by itself.", {}});
}

Contact LinkReceiver::contact_of(const Turn& turn) const {
    Contact contact;
    contact.peer_number = turn.header->last;
    contact.peer_state = state_name(*turn.header);
    if (turn.header->oldest > 0) {
        contact.oldest = turn.header->oldest;
        contact.age = turn.header->age + (pg::now() - turn.begun);
    }
    return contact;
}

/// What the turn has to leave in tables, in one transaction.
void LinkReceiver::finish(Turn& turn) {
    const bool contact = turn.header && pg::now() - contact_stored_ >= contact_interval;
    const Stop stop = turn.central.stopped();
    if (stop == link_.stop && turn.central.to_spool().empty() && turn.central.evicted().empty() &&
        !turn.failed && journal_.empty() && !contact && !turn.put_off)
        return;
    pg::in_transaction([&] {
        pg::commit_without_wait();
        for (const Range& range : turn.central.evicted()) delete_waiting(link_.id, range);
        spool(turn);
        if (stop != link_.stop) store_stop(link_, stop, turn.central.stop_detail());
        if (turn.failed) store_failures(link_.id, *turn.failed);
        if (contact) {
            store_contact(link_.id, contact_of(turn));
            pg::on_commit([this] { contact_stored_ = pg::now(); });
        }
        if (turn.put_off) {
            store_put_off(link_.id, *turn.put_off);
            pg::on_commit([this] { shared_->put_off_stored = true; });
        }
        journal_.flush();
    });
}

void LinkReceiver::spool(Turn& turn) {
    turn.spooled = turn.spooled || !turn.central.to_spool().empty();
    for (const Spool& spool : turn.central.to_spool())
        insert_waiting(link_.id, spool, turn.incoming.frames(spool), settings::compression);
    turn.central.spooled();
}

/// P20: the remote, the start and the first position are one commit, before anything is written: a link with
/// a position has its start, whatever ends this process when.
void LinkReceiver::store_start(Turn& turn) {
    const CentralState& state = turn.central.state();
    if (!state.started || link_.start) return;
    Link started = link_;
    started.peer = turn.body->parties.remote;
    started.start = state.start;
    started.start_identity = state.start_identity;
    pg::in_transaction([&] {
        pg::commit_without_wait();
        onerepl::store_start(started);
        store_position(link_.id, ++turn.position_seq, state.start, state.start_identity);
    });
    update(started);
}

/// Where the link's lock may be another's: `work` in a transaction, unless the link was started anew since it
/// was loaded; it is not while that transaction lives. What the queue holds is of one start (P20).
void LinkReceiver::in_this_start(const std::function<void()>& work) {
    pg::in_transaction([&] {
        if (is_this_start(link_)) work();
    });
}

/// Another receiver has the link: what is new goes to the queue, where that one finds it, and nothing is
/// confirmed.
Bytes LinkReceiver::receive_without_lock(const OpenedBody& opened) {
    const Body& body = opened.body;
    SharedLink scratch{};
    shared_ = &scratch;
    kept_.there = false;
    pg::JournalBuffer silent(link_.id);
    Turn turn(pg::now(), config(), load_state(), scratch.waits, silent);
    turn.body = &body;
    turn.header = &std::get<RemoteHeader>(body.header);
    if (turn.central.state().started && answers_this_start(body) && addressed_here(body)) {
        read_messages(turn, opened.frames);
        in_this_start([&] {
            // The other one's commits may not be on disk yet: the answer names S_b, so it waits for a commit
            // after them.
            if (turn.central.stopped() == Stop::none) spool(turn);
            pg::execute("SELECT pg_catalog.pg_current_xact_id()");
        });
    }
    shared::invalidate_receivers();
    return encode_reply(body, {turn.central.header(), {}});
}

Bytes LinkReceiver::encode_reply(const Body& body, const Reply& reply) const {
    Body answer;
    answer.parties = {body.parties.remote, own_id_};
    answer.nonce = next_nonce();
    answer.reply_to = body.nonce;
    CentralHeader header = reply.header;
    header.hearing = shared_->speakers.hearing;
    answer.header = header;
    for (const Message& message : reply.messages) encode_frame(answer.parties, message, answer.frames);
    return encode_body(answer, link_.signs_with, {settings::compression});
}

}  // namespace onerepl::receiver
