// One link of the remote: positions, bodies, answers.
#include "pg/pg.h"

#include "sender/link_sender.h"

extern "C" {
#include "utils/timestamp.h"
}

#include "core/crypto.h"
#include "log/reader.h"
#include "pg/clock.h"
#include "pg/settings.h"
#include "pg/spi.h"
#include "pg/transaction.h"
#include "shared/memory.h"
#include "store/log_tables.h"
#include "worker/worker.h"

namespace onerepl::sender {

namespace {

constexpr Time contact_interval = 1 * second;
/// The reader does some things in another way at the second time.
constexpr int failures_before_told = 3;
constexpr Time rest_of_link = 1 * second;
constexpr Time shortest_answer_timeout = 1 * second;
/// Bytes that leave before more is formed: B can begin with them.
constexpr std::size_t enough_at_once = 64 * 1024;

/// Contact::error_kind of a post that was not answered.
const char* kind_of(const http::Completion& completion) {
    if (completion.in_silence) return "silent";
    return completion.status == 401 || completion.status == 404 ? "refused" : "";
}

/// Ids of posts, never reused in this process.
std::uint64_t next_id() {
    static std::uint64_t id = 0;
    return ++id;
}

RemotePosition load_position(const Link& link) {
    RemotePosition position;
    position.start = link.start.value_or(0);
    position.start_identity = link.start_identity;
    position.confirmed = position.sent = position.start;
    position.stop = link.stop;
    pg::query("SELECT sent, confirmed FROM onerepl.sent_progress WHERE link = $1 ORDER BY seq DESC LIMIT 1",
              {link.id}, [&](const pg::Row& row) {
                  position.sent = std::max(position.start, row.number(0));
                  position.confirmed = std::max(position.start, row.number(1));
              });
    return position;
}

/// By hand: it comes with each answer, and the foreign key's check would lock the link's row.
void store_position(int link, std::int64_t seq, Number sent, Number confirmed) {
    pg::call([&] {
        const Datum values[] = {Int32GetDatum(link), Int64GetDatum(seq), UInt64GetDatum(sent),
                                UInt64GetDatum(confirmed), TimestampTzGetDatum(GetCurrentTimestamp())};
        store::insert_row(store::own_relation("sent_progress"), values);
    });
}

const char* flow_name(FlowState flow) {
    static const char* const names[] = {"running", "failed", "paused", "stopped"};
    return names[static_cast<int>(flow)];
}

}  // namespace

LinkSender::LinkSender(Link link, const Uuid& own_id, Number last, http::Client& client)
    : link_(std::move(link)),
      own_id_(own_id),
      client_(client),
      journal_(link_.id),
      remote_(pg::now(), config(), load_position(link_), last, journal_, *this),
      builder_(link_.id),
      stop_stored_(link_.stop) {
    position_seq_ =
        pg::query_int8("SELECT seq FROM onerepl.sent_progress WHERE link = $1 ORDER BY seq DESC LIMIT 1",
                       {link_.id})
            .value_or(0);
    remote_.set_paused(link_.paused);
    apply_blocks();
    // S > M: a dump was restored without its log, or the log's tables were damaged.
    if (remote_.position().confirmed > last) remote_.stop(Stop::remote_lost_history);
}

LinkSender::~LinkSender() {
    for (const auto& [id, posted] : posted_) client_.cancel(id);
}

void LinkSender::update(const Link& link) {
    link_ = link;
    if (link_.stop != Stop::none && remote_.stopped() == Stop::none) {
        remote_.stop(link_.stop);
        stop_stored_ = link_.stop;
    }
    remote_.configure(config());
    remote_.set_paused(link_.paused);
    apply_blocks();
}

RemoteConfig LinkSender::config() const {
    RemoteConfig config;
    config.reply_timeout = link_.reply_timeout;
    config.send_interval = link_.send_interval;
    config.max_in_flight = static_cast<std::size_t>(settings::max_in_flight);
    config.batch_bytes = static_cast<std::uint64_t>(settings::batch_bytes) * 1024;
    return config;
}

void LinkSender::apply_blocks() {
    const auto first = pg::query_int8("SELECT min(n) FROM onerepl.blocked WHERE link = $1 AND n > $2",
                                      {link_.id, remote_.position().sent});
    remote_.set_blocked(first ? std::optional<Number>(*first) : std::nullopt);
}

Parties LinkSender::parties() const {
    return {own_id_, link_.peer.value_or(Uuid{})};
}

std::optional<Identity> LinkSender::identity(Number n) {
    return log::identity_at(n);
}

Number LinkSender::transaction_end(Number n) {
    const auto transaction = log::transaction_at(n);
    return transaction ? transaction->numbers.last : n;
}

void LinkSender::form() {
    served_to_ = remote_.last();
    more_to_form_ = false;
    remote_.set_resting(rests());
    give_up_overtaken();
    std::size_t size = 0;
    while (auto outgoing = remote_.next(pg::now())) {
        Built built = builder_.build(parties(), *outgoing, config().batch_bytes);
        if (built.missing) report_missing(*built.missing);
        Body body;
        body.parties = parties();
        body.nonce = random_array<Nonce>();
        body.reply_to = last_answer_;
        RemoteHeader header = this->header();
        header.batches = std::move(built.batches);
        body.header = std::move(header);
        body.frames = std::move(built.frames);
        const std::uint64_t id = next_id();
        formed_.push_back(
            {id, encode_body(body, link_.signs_with, {settings::compression}), built.carried.empty()});
        posted_[id] = {body.nonce};
        remote_.departed(pg::now(), id, *outgoing, built.carried);
        size += formed_.back().bytes.size();
        more_to_form_ = size >= enough_at_once;
        if (more_to_form_) return;
    }
}

/// What the core says, and what only the database knows.
RemoteHeader LinkSender::header() const {
    static const Nonce process = random_array<Nonce>();
    RemoteHeader header = remote_.header();
    header.process = process;
    header.heard = heard_;
    header.capture_stopped = shared::capture_stopped();
    Number written = remote_.position().confirmed;
    if (remote_.central()) written = std::max(written, remote_.central()->written);
    if (written >= remote_.last()) return header;
    if (const auto age = log::age_of(written + 1)) {
        header.oldest = written + 1;
        header.age = std::min(*age, largest_age);
    }
    return header;
}

/// P22: the central answers others, but not these: what they carried is formed again.
void LinkSender::give_up_overtaken() {
    while (const auto id = remote_.overtaken(pg::now())) {
        client_.cancel(*id);
        posted_.erase(*id);
        remote_.unanswered(pg::now(), *id, "a later body was answered");
    }
}

void LinkSender::report_missing(Number n) {
    if (missing_told_ == n) return;
    missing_told_ = n;
    journal_.write({Level::critical,
                    "R1b",
                    "a record that is to be sent is not in the log: the replication data is damaged",
                    "Start the link anew with onerepl_restart_link(), and refresh the tables.",
                    {n, n}});
}

void LinkSender::post() {
    while (!formed_.empty()) {
        http::Post post;
        post.id = formed_.front().id;
        post.url = link_.url + "/onerepl/v1/messages";
        post.body = std::move(formed_.front().bytes);
        // A central that writes a large transaction answers late: a body of records is given up when a later
        // one was answered. One without records costs nothing.
        if (formed_.front().is_empty)
            post.answer_timeout = post.stall_timeout = std::max(link_.reply_timeout, shortest_answer_timeout);
        else
            post.answer_timeout = std::max<Time>(link_.reply_timeout, 600 * second);
        client_.post(std::move(post));
        formed_.pop_front();
    }
}

void LinkSender::discard_formed() {
    more_to_form_ = false;
    builder_.forget_notes();
    for (const Formed& formed : formed_) {
        posted_.erase(formed.id);
        remote_.unanswered(pg::now(), formed.id, "the body could not be formed");
    }
    formed_.clear();
}

/// Each leaves the queue when memory has it, so that a turn that fails loses none and takes none twice (P20).
void LinkSender::take_arrived() {
    while (!arrived_.empty()) {
        completed(arrived_.front());
        arrived_.pop_front();
    }
}

void LinkSender::completed(const http::Completion& completion) {
    const auto found = posted_.find(completion.id);
    if (found == posted_.end()) return;
    std::string reason = completion.error;
    contact_.error_kind.clear();
    contact_.peer_sqlstate.clear();
    if (completion.answered) {
        reason = take_answer(completion.id, found->second, completion.answer);
    } else {
        contact_.error_kind = kind_of(completion);
        if (completion.status == 503) contact_.peer_sqlstate = completion.cause;
    }
    posted_.erase(found);
    if (!reason.empty()) remote_.unanswered(pg::now(), completion.id, reason);
    note_contact(std::move(reason));
    builder_.forget_up_to(remote_.position().sent);
}

std::string LinkSender::take_answer(std::uint64_t id, const Posted& posted, const Bytes& answer) {
    auto decoded =
        decode_body(answer, link_.checks_with, static_cast<std::size_t>(settings::max_body_size) * 1024);
    if (const auto* error = std::get_if<BodyError>(&decoded)) {
        if (*error == BodyError::signature) contact_.error_kind = "refused";
        return std::string("answer is unusable: ") + describe(*error);
    }
    const Body& body = std::get<Body>(decoded);
    const auto* header = std::get_if<CentralHeader>(&body.header);
    if (!header) return "answer is not one of a central";
    if (body.reply_to != posted.nonce) return "answer belongs to another request";
    if (body.parties.remote != own_id_ || (link_.peer && body.parties.central != *link_.peer)) {
        remote_.stop(Stop::wrong_peer);
        return "another database answers at this address";
    }
    if (!link_.peer) {
        link_.peer = body.parties.central;
        bind_peer(link_, *link_.peer);
    }
    std::vector<Message> messages;
    for (FrameReader reader(parties(), body.frames); !reader.at_end();) {
        FrameResult frame = reader.next();
        if (auto* message = std::get_if<Message>(&frame.value))
            messages.push_back(std::move(*message));
        else
            journal_.write({Level::warning,
                            "P1",
                            std::string("a message of the central is damaged: ") +
                                describe(std::get<FrameError>(frame.value)),
                            "",
                            {}});
    }
    last_answer_ = body.nonce;
    heard_ = header->hearing;
    contact_.peer_number = header->written;
    contact_.peer_state = flow_name(header->flow);
    remote_.answered(pg::now(), id, *header, messages);
    return {};
}

void LinkSender::note_contact(std::string error) {
    contact_changed_ = contact_changed_ || error != contact_.error || error.empty();
    if (error != contact_.error) contact_stored_ = 0;
    contact_.error = std::move(error);
}

void LinkSender::store() {
    if (remote_.position_changed()) {
        const RemotePosition& position = remote_.position();
        store_position(link_.id, ++position_seq_, position.sent, position.confirmed);
        if (position.stop != stop_stored_) store_stop(link_, position.stop, remote_.stop_detail());
    }
    contact_storing_ = contact_changed_ && pg::now() - contact_stored_ >= contact_interval;
    if (contact_storing_) store_contact(link_.id, contact_);
    journal_.flush();
}

void LinkSender::stored() {
    remote_.position_stored();
    stop_stored_ = remote_.stopped();
    if (!contact_storing_) return;
    contact_changed_ = false;
    contact_stored_ = pg::now();
}

/// What lasts comes from a damaged log, mostly: somebody has to look, so it does not only go to the server
/// log.
void LinkSender::failed(const worker::Fault& fault) {
    if (++failures_ < failures_before_told) return;
    const std::string told = "records cannot be sent: " + fault.what;
    if (contact_.own_error.empty())
        journal_.write({fault.transient ? Level::warning : Level::critical,
                        "R1b",
                        told,
                        fault.transient
                            ? "It is tried again by itself; the server log has more."
                            : "The server log has more. If the replication data is damaged, start the link "
                              "anew with onerepl_restart_link(), and refresh the tables.",
                        {}});
    set_own_error(told);
}

void LinkSender::rest() {
    rest_until_ = pg::now() + rest_of_link;
}

void LinkSender::cease() {
    ceased_until_ = pg::now() + rest_of_link;
}

void LinkSender::succeeded() {
    failures_ = 0;
    if (contact_.own_error.empty()) return;
    journal_.write({Level::information, "R1b", "records are sent again", "", {}});
    set_own_error("");
}

void LinkSender::set_own_error(std::string error) {
    if (error == contact_.own_error) return;
    contact_.own_error = std::move(error);
    contact_changed_ = true;
    contact_stored_ = 0;
}

Time LinkSender::time_to_wait() {
    const Time now = pg::now();
    if (has_ceased()) return ceased_until_ - now;
    if (more_to_form_ || has_arrived() || !journal_.empty()) return 0;
    Time wait = std::max<Time>(0, remote_.wake_at() - now);
    if (rests()) wait = std::min(wait, rest_until_ - now);
    if (!contact_changed_) return wait;
    return std::min(wait, std::max<Time>(0, contact_stored_ + contact_interval - now));
}

bool LinkSender::can_send() const {
    return !link_.paused && remote_.stopped() == Stop::none && !remote_.is_waiting_after_failure();
}

}  // namespace onerepl::sender
