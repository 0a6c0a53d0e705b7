// The life of one connection.

#include "http/connection.h"
#include "http/response_writer.h"

#include <algorithm>
#include <utility>

namespace onerepl::http {

namespace {

constexpr std::size_t share_of_a_turn = 4 * 1024 * 1024;
// A request's header, and a chunked body, are read in small pieces: what belongs to a next request is kept
// meanwhile.
constexpr std::size_t small_read = 16 * 1024;
// Answers are joined with their head into one packet up to this size.
constexpr std::size_t small_answer = 64 * 1024;
constexpr Time drain_timeout = 5 * second;
constexpr std::size_t drain_limit = 64 * 1024 * 1024;

constexpr std::size_t most_known_addresses = 1000;

/// "192.0.2.1" of "192.0.2.1:50123".
std::string address_of(const std::string& peer) {
    return peer.substr(0, peer.rfind(':'));
}

}  // namespace

void KnownAddresses::add(const std::string& address) {
    const auto found = std::find(latest_first_.begin(), latest_first_.end(), address);
    if (found != latest_first_.end())
        return latest_first_.splice(latest_first_.begin(), latest_first_, found);
    latest_first_.push_front(address);
    if (latest_first_.size() > most_known_addresses) latest_first_.pop_back();
}

bool KnownAddresses::contains(const std::string& address) const {
    return std::find(latest_first_.begin(), latest_first_.end(), address) != latest_first_.end();
}

Connection::Connection(ServerState& server, std::unique_ptr<Channel> channel, std::string peer, Time now)
    : server_(server),
      channel_(std::move(channel)),
      peer_(std::move(peer)),
      standing_(server.known.contains(address_of(peer_)) ? Standing::known_address : Standing::stranger),
      since_(now),
      deadline_(now + server.config.header_timeout),
      last_progress_(now) {}

Connection::~Connection() {
    release_body();
}

void Connection::ready(int, unsigned) noexcept {
    if (queued_) return;
    try {
        server_.ready.push_back(this);
        queued_ = true;
    } catch (const std::bad_alloc&) {
        // The poller is level-triggered: it tells again.
    }
}

void Connection::advance(Time now) {
    moved_ = 0;
    while (phase_ != Phase::closed && phase_ != Phase::waiting) {
        if (moved_ >= share_of_a_turn) return ready(0, 0);
        if (has_output() && !flush(now)) return;
        if (phase_ == Phase::writing) {
            finish_answer(now);
        } else if (!ahead_.empty()) {
            const Bytes bytes = std::exchange(ahead_, {});
            take_bytes(bytes, now);
        } else if (!read_some(now)) {
            return;
        }
    }
}

std::size_t Connection::read_size() const {
    if (phase_ == Phase::draining) return server_.buffer.size();
    if (phase_ != Phase::body || !parser_->head().content_length) return small_read;
    // Exactly to the body's end.
    const std::uint64_t left = *parser_->head().content_length - parser_->body_size();
    return static_cast<std::size_t>(std::min<std::uint64_t>(left, server_.buffer.size()));
}

bool Connection::read_some(Time now) {
    const std::span<std::uint8_t> into(server_.buffer.data(), read_size());
    const Channel::Result result = channel_->read(into);
    switch (result.status) {
        case Channel::Status::wait:
            wanted_events_ = result.wait_for;
            return false;
        case Channel::Status::closed:
            peer_closed();
            return false;
        case Channel::Status::failed:
            lost("connection lost");
            return false;
        case Channel::Status::done:
            break;
    }
    moved_ += result.bytes;
    take_bytes(into.first(result.bytes), now);
    return true;
}

void Connection::take_bytes(ByteView bytes, Time now) {
    if (phase_ == Phase::draining) {
        drained_ += bytes.size();
        if (drained_ > drain_limit) close();
        return;
    }
    if (phase_ == Phase::idle) start_request(now);
    while (phase_ == Phase::header || phase_ == Phase::body) {
        const RequestParser::Fed fed = parser_->feed(bytes);
        bytes = bytes.subspan(fed.consumed);
        switch (fed.step) {
            case RequestParser::Step::header:
                header_complete(now);
                break;
            case RequestParser::Step::more:
                return body_progress(now);
            case RequestParser::Step::failed:
                return refuse(parser_->error().status, parser_->error().reason, now);
            case RequestParser::Step::done:
                body_progress(now);
                if (phase_ != Phase::body) return;
                phase_ = Phase::waiting;
                deadline_ = 0;
                ahead_.assign(bytes.begin(), bytes.end());
                return;
        }
    }
}

void Connection::start_request(Time now) {
    parser_.emplace(server_.config.limits);
    phase_ = Phase::header;
    since_ = last_progress_ = now;
    deadline_ = now + server_.config.header_timeout;
}

const Route* Connection::find_route(bool& path_known, std::string& allowed) const {
    const RequestHead& head = parser_->head();
    path_known = false;
    for (const Route& route : server_.config.routes) {
        if (route.path != head.path) continue;
        if (route.method == head.method) return &route;
        path_known = true;
        allowed = route.method == Method::get ? "GET" : "POST";
    }
    return nullptr;
}

void Connection::header_complete(Time now) {
    const RequestHead& head = parser_->head();
    bool path_known = false;
    std::string allowed;
    const Route* route = find_route(path_known, allowed);
    if (route == nullptr && path_known) return refuse(405, "this path is served by " + allowed, now, allowed);
    if (route == nullptr) return refuse(404, "nothing is served at this path", now);
    if (route->method == Method::post && !route->content_type.empty() &&
        head.content_type != route->content_type)
        return refuse(415, "Content-Type " + route->content_type + " is needed", now);
    keep_alive_ = head.keep_alive;
    phase_ = Phase::body;
    body_started_ = now;
    set_body_deadline(now);
    if (head.expects_continue && head.has_body) {
        head_ = "HTTP/1.1 100 Continue\r\n\r\n";
        sent_ = 0;
    }
}

void Connection::set_body_deadline(Time now) {
    const ServerConfig& config = server_.config;
    deadline_ = now + config.body_timeout;
    if (config.minimum_body_rate == 0) return;
    const Time earned = static_cast<Time>(parser_->body_size() / config.minimum_body_rate) * second;
    deadline_ = std::min(deadline_, body_started_ + config.body_timeout + earned);
}

void Connection::body_progress(Time now) {
    if (phase_ != Phase::body) return;
    last_progress_ = now;
    const std::size_t size = parser_->body_size();
    server_.body_bytes += size - counted_;
    counted_ = size;
    set_body_deadline(now);
    if (!server_.make_room(*this, now)) refuse(503, "too many bodies are being received at once", now);
}

Request Connection::take_request() {
    const RequestHead& head = parser_->head();
    Request request{head.method, head.path, head.query, head.content_type, parser_->take_body(), peer_};
    parser_.reset();
    return request;
}

void Connection::release_body() {
    server_.body_bytes -= counted_;
    counted_ = 0;
}

void Connection::answer(Response response, Time now) {
    release_body();
    if (response.recognised) {
        // Once for a connection: the list is searched for it.
        if (standing_ != Standing::recognised) server_.known.add(address_of(peer_));
        standing_ = Standing::recognised;
    }
    keep_alive_ = keep_alive_ && !response.close && !server_.stopping;
    begin_writing(response, now);
    if (response.body.size() <= small_answer) {
        head_.append(response.body.begin(), response.body.end());
    } else {
        tail_ = std::move(response.body);
    }
}

void Connection::begin_writing(const Response& response, Time now) {
    // A "100 Continue" that has not left yet stays in front: the peer waits for it.
    head_.erase(0, std::min(sent_, head_.size()));
    head_ += response_head(response, keep_alive_);
    sent_ = 0;
    phase_ = Phase::writing;
    last_progress_ = now;
    deadline_ = now + server_.config.write_timeout;
    wanted_events_ = writable;
}

void Connection::refuse(int status, std::string reason, Time now, std::string allow) {
    Response response = text_response(status, reason);
    if (!allow.empty()) response.headers.emplace_back("Allow", std::move(allow));
    if (status == 405 && response.headers.empty()) response.headers.emplace_back("Allow", "GET, POST");
    if (status == 503) response.headers.emplace_back("Retry-After", "1");
    report(status, std::move(reason));
    parser_.reset();
    ahead_ = {};
    keep_alive_ = false;
    answer(std::move(response), now);
}

void Connection::report(int status, std::string reason) {
    server_.refusals.push_back({status, peer_, std::move(reason)});
}

bool Connection::flush(Time now) {
    while (has_output()) {
        const bool in_head = sent_ < head_.size();
        const ByteView piece =
            in_head ? view(head_).subspan(sent_) : ByteView(tail_).subspan(sent_ - head_.size());
        const Channel::Result result = channel_->write(piece);
        if (result.status == Channel::Status::wait) {
            wanted_events_ = result.wait_for;
            return false;
        }
        if (result.status != Channel::Status::done) {
            lost("connection lost before the answer was taken");
            return false;
        }
        sent_ += result.bytes;
        moved_ += result.bytes;
        last_progress_ = now;
        if (phase_ == Phase::writing) deadline_ = now + server_.config.write_timeout;
    }
    head_ = {};
    tail_ = {};
    sent_ = 0;
    return true;
}

void Connection::finish_answer(Time now) {
    if (keep_alive_ && !server_.stopping) return become_idle(now);
    // Closing a socket with unread input resets it, and the peer may lose the answer: so read on for a while.
    channel_->finish_writing();
    phase_ = Phase::draining;
    drained_ = 0;
    ahead_ = {};
    deadline_ = now + drain_timeout;
}

void Connection::become_idle(Time now) {
    phase_ = Phase::idle;
    since_ = last_progress_ = now;
    deadline_ = now + server_.config.keep_alive_timeout;
}

void Connection::peer_closed() {
    if (phase_ == Phase::header) report(0, "connection closed within the header");
    if (phase_ == Phase::body) report(0, "connection closed within the body");
    close();
}

void Connection::lost(std::string reason) {
    if (phase_ != Phase::idle && phase_ != Phase::draining) report(0, std::move(reason));
    close();
}

void Connection::expire(Time now) {
    switch (phase_) {
        case Phase::header:
            return refuse(408, "the header did not come in time", now);
        case Phase::body:
            return refuse(408, "the body did not come in time", now);
        case Phase::writing:
            return lost("the answer was not taken in time");
        default:
            return close();
    }
}

void Connection::close() noexcept {
    phase_ = Phase::closed;
    release_body();
    parser_.reset();
    ahead_ = {};
    deadline_ = 0;
}

}  // namespace onerepl::http
