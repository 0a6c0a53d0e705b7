// One connection of the server, from its acceptance to its end: which bytes come next, and until when.
#pragma once

#include "http/channel.h"
#include "http/server.h"

#include <list>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace onerepl::http {

class Connection;

/// How much is known of who is at the other end of a connection. When something is short, who stands lower
/// makes room.
enum class Standing : std::uint8_t {
    stranger,
    known_address,  // the handler has recognised somebody from this address before
    recognised,     // on this connection
};

/// The addresses from which somebody was recognised, the latest few.
class KnownAddresses {
  public:
    void add(const std::string& address);
    bool contains(const std::string& address) const;

  private:
    std::list<std::string> latest_first_;
};

/// What the connections of one server share.
struct ServerState {
    ServerConfig config;
    Bytes buffer;                    // what is read goes here first
    std::size_t body_bytes = 0;      // of bodies that are being received or wait for the handler
    bool stopping = false;           // no connection is kept for a next request
    std::vector<Refusal> refusals;   // to be told at the end of the turn
    std::vector<Connection*> ready;  // to be advanced in the next turn
    std::list<std::unique_ptr<Connection>> busy;
    std::list<std::unique_ptr<Connection>> idle;  // between requests; the idlest first

    KnownAddresses known;

    /// Makes sure that `body_bytes` fits, at the cost of a body of who stands lower, or of one that has
    /// stalled. False: the asking one must go.
    bool make_room(const Connection& asking, Time now);
};

class Connection final : public Watcher {
  public:
    enum class Phase : std::uint8_t {
        idle,      // before the first byte of a request
        header,    // within a request's header
        body,      // within a request's body
        waiting,   // the request is complete: for the handler
        writing,   // of the answer
        draining,  // we have said our last; reads and drops, so that the peer gets to read it
        closed,
    };

    Connection(ServerState& server, std::unique_ptr<Channel> channel, std::string peer, Time now);
    ~Connection();

    /// Notes itself in ServerState::ready.
    void ready(int descriptor, unsigned events) noexcept override;
    /// Takes it out of the list that ready() put it in.
    void unqueue() { queued_ = false; }

    /// Reads and writes until there is nothing to do or the request waits for the handler, but no more than a
    /// share, so that others get their turn.
    void advance(Time now);
    /// The request that waits. Its body counts until it is answered.
    Request take_request();
    /// The answer to it; advance() then sends it.
    void answer(Response response, Time now);
    /// Answers a request that can't go on and ends the connection after that. Told to the observer.
    void refuse(int status, std::string reason, Time now, std::string allow = {});
    /// To be called when the deadline is over, after a last advance().
    void expire(Time now);
    void close() noexcept;

    Phase phase() const { return phase_; }
    Standing standing() const { return standing_; }
    const std::string& peer() const { return peer_; }
    /// When expire() is due; 0: never.
    Time deadline() const { return deadline_; }
    /// When the request began that is coming; or, without one, when the last one was over.
    Time since() const { return since_; }
    /// When the phase began or, within a body or an answer, the last byte of it came or went.
    Time last_progress() const { return last_progress_; }
    int descriptor() const { return channel_->descriptor(); }
    /// What the socket is to be watched for now.
    unsigned wanted_events() const { return wanted_events_; }

    // Kept by the server.
    std::list<std::unique_ptr<Connection>>::iterator position;
    bool in_idle_list = false;
    Time listed_progress = 0;  // last_progress() when it took its place in the list
    bool in_waiting_list = false;
    std::unique_ptr<Task> task;  // while it waits; none: begin() has failed
    unsigned watched_events = 0;

  private:
    bool read_some(Time now);
    void take_bytes(ByteView bytes, Time now);
    void start_request(Time now);
    void header_complete(Time now);
    void body_progress(Time now);
    void set_body_deadline(Time now);
    bool has_output() const { return sent_ < head_.size() + tail_.size(); }
    bool flush(Time now);
    void finish_answer(Time now);
    void become_idle(Time now);
    void begin_writing(const Response& response, Time now);
    void peer_closed();
    void lost(std::string reason);
    void report(int status, std::string reason);
    void release_body();
    std::size_t read_size() const;
    const Route* find_route(bool& path_known, std::string& allowed) const;

    ServerState& server_;
    std::unique_ptr<Channel> channel_;
    std::string peer_;
    Phase phase_ = Phase::idle;
    Standing standing_;
    Time since_;
    Time deadline_ = 0;
    Time last_progress_ = 0;
    Time body_started_ = 0;
    unsigned wanted_events_ = readable;
    bool queued_ = false;
    bool keep_alive_ = false;
    std::optional<RequestParser> parser_;
    Bytes ahead_;              // bytes of a next request that came with this one's
    std::size_t counted_ = 0;  // this body's part of ServerState::body_bytes
    std::string head_;         // output: first this,
    Bytes tail_;               // then this
    std::size_t sent_ = 0;     // of both
    std::size_t moved_ = 0;    // bytes in this advance()
    std::size_t drained_ = 0;
};

}  // namespace onerepl::http
