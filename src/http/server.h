// The central's HTTP port: accepts connections, reads requests, calls the handler, writes its answers.
// Several processes may listen on the same port (SO_REUSEPORT). All the work is done in turn(), in the
// caller's thread.
#pragma once

#include "http/message.h"
#include "http/poller.h"
#include "http/request_parser.h"

#include <exception>
#include <list>
#include <memory>
#include <string>
#include <vector>

namespace onerepl::http {

/// What may be asked of the server. Anything else is 404, 405 or 415, told before the body is read.
struct Route {
    Method method = Method::post;
    std::string path;
    std::string content_type;  // that a POST must have, lower case; empty: any
};

struct ServerConfig {
    /// "host:port", several separated by commas; host "*" is every address of both families; IPv6 in
    /// brackets.
    std::string listen;
    std::vector<Route> routes;
    ParserLimits limits;
    /// All bodies that are being received, together. At least one body of the largest size always has room.
    std::size_t total_body_bytes = 256 * 1024 * 1024;
    /// Open connections; reduced to half of what the process may open, so that PostgreSQL keeps descriptors.
    std::size_t max_connections = 1000;
    Time header_timeout =
        10 * second;  // from a request's first byte (or the connection's start) to its header's end
    Time body_timeout = 30 * second;        // without a byte of the body
    Time write_timeout = 30 * second;       // without the peer taking a byte of the answer
    Time keep_alive_timeout = 60 * second;  // between requests
    /// A body must also arrive at this rate on average (bytes a second) once body_timeout is over; 0: any.
    std::size_t minimum_body_rate = 1024;
};

/// A request or connection that was given up.
struct Refusal {
    int status = 0;      // that was answered; 0: none could be
    std::string peer;    // "address:port"
    std::string reason;  // one line, as in the answer; the same for the same kind of fault
};

/// Is told what the handler never sees, at the end of a turn: the receiver journals it, rate-limited. May
/// throw; then turn() throws after it has put everything in order.
class Observer {
  public:
    virtual void refused(const Refusal& refusal) = 0;
    /// The handler threw; the peer got 500.
    virtual void handler_failed(const std::string& peer, const std::string& what) = 0;

  protected:
    ~Observer() = default;
};

/// A request that waits for its turn to be answered.
class Task {
  public:
    virtual ~Task() = default;
    /// Is called once. What it throws from std::exception becomes 500 (text "internal error", nothing of the
    /// exception is told to the peer); other exceptions pass through turn().
    virtual Response answer() = 0;
    /// Waiting tasks are answered in the order of their places; of one place, as their requests came.
    virtual std::uint64_t priority() const { return 0; }
};

/// Takes complete requests over.
class Handler {
  public:
    /// Is called as soon as a request is complete, while earlier ones may still wait for their answers: so
    /// work on it can begin ahead of its turn. May throw as Task::answer does. The task goes unanswered if
    /// the connection ends before its turn.
    virtual std::unique_ptr<Task> begin(Request request) = 0;

  protected:
    ~Handler() = default;
};

class Connection;

class Server {
  public:
    /// Listens at once. Throws std::system_error (address in use ...) or std::invalid_argument (`listen`
    /// can't be read). Poller, handler and observer must outlive the server.
    Server(Poller& poller, ServerConfig config, Handler& handler, Observer& observer);
    /// Closes all sockets.
    ~Server();
    Server(const Server&) = delete;
    Server& operator=(const Server&) = delete;

    /// Does what the last Poller::poll found ready, then closes what has timed out. Begins no further handler
    /// call once 2 ms are used, so that the worker looks at its interrupts between requests; if more is to do
    /// the poller's descriptor stays readable.
    void turn(Time now);

    /// New limits and timeouts for what comes from now on; `listen` is not changed by this (make a new
    /// server).
    void configure(ServerConfig config);
    /// Takes no further connections; those that wait for a next request are closed, the others end after
    /// their answer.
    void stop_accepting();

    /// The port of the first listening socket (for port 0 the one the system chose).
    int port() const;
    std::size_t connections() const;
    /// Bytes of bodies that are being received.
    std::size_t body_bytes() const;

  private:
    class Implementation;
    std::unique_ptr<Implementation> implementation_;
};

}  // namespace onerepl::http
