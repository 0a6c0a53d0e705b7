// The listening sockets and the list of connections: who is let in, who must go, whose turn it is.

#include "http/connection.h"
#include "http/listener.h"
#include "http/server.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <deque>
#include <functional>
#include <tuple>
#include <utility>

namespace onerepl::http {

namespace {

constexpr std::size_t read_buffer_size = 256 * 1024;
constexpr int accepts_per_turn = 64;
constexpr int accepts_per_turn_when_full = 4;
constexpr Time accept_pause = 200 * millisecond;  // after the system had no descriptor for us
// A turn begins no further handler call after this time, so that the worker looks at its interrupts.
constexpr Time handler_share = 2 * millisecond;
constexpr Time shortest_scan_interval = 50 * millisecond;
// A request that stands still for so long may have to go for a newer one.
constexpr Time stalled_after = second;

std::size_t connection_limit(std::size_t wanted) {
    rlimit limit{};
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
        wanted = std::min<std::size_t>(wanted, limit.rlim_cur / 2);
    return std::max<std::size_t>(wanted, 1);
}

ServerConfig with_possible_limits(ServerConfig config) {
    config.max_connections = connection_limit(config.max_connections);
    config.total_body_bytes = std::max(config.total_body_bytes, config.limits.body);
    return config;
}

bool has_waiting_connection(int listener) {
    pollfd entry{listener, POLLIN, 0};
    return ::poll(&entry, 1, 0) > 0;
}

/// Who goes first: who stands lowest, of these whoever waits between requests, then the oldest request.
std::tuple<Standing, bool, Time> order_to_go(const Connection& connection) {
    return {connection.standing(), connection.phase() != Connection::Phase::idle, connection.since()};
}

/// Whose body makes room for one of `asking`: of who stands lower, the lowest first, then the oldest, however
/// it moves (a byte now and then costs a stranger little); of his equals, the one that has stood still for
/// the longest.
Connection* body_to_give_up(const ServerState& state, const Connection& asking, Time now) {
    Connection* lower = nullptr;
    Connection* stalled = nullptr;
    for (const auto& connection : state.busy) {
        if (connection->phase() != Connection::Phase::body || connection->standing() > asking.standing())
            continue;
        if (connection->standing() < asking.standing()) {
            if (lower == nullptr || order_to_go(*connection) < order_to_go(*lower)) lower = connection.get();
        } else if (connection->last_progress() <= now - stalled_after) {
            if (stalled == nullptr || connection->last_progress() < stalled->last_progress())
                stalled = connection.get();
        }
    }
    return lower != nullptr ? lower : stalled;
}

/// Whose connection makes room for a new one of `standing`: nobody who stands higher. A request that is
/// complete goes on.
Connection* connection_to_give_up(const ServerState& state, Standing standing,
                                  const Connection* except = nullptr) {
    Connection* found = nullptr;
    for (const auto* list : {&state.idle, &state.busy})
        for (const auto& connection : *list) {
            const Connection::Phase phase = connection->phase();
            if (connection.get() == except || connection->standing() > standing ||
                phase == Connection::Phase::waiting || phase == Connection::Phase::writing)
                continue;
            if (found == nullptr || order_to_go(*connection) < order_to_go(*found)) found = connection.get();
        }
    return found;
}

}  // namespace

bool ServerState::make_room(const Connection& asking, Time now) {
    while (body_bytes > config.total_body_bytes) {
        Connection* victim = body_to_give_up(*this, asking, now);
        if (victim == nullptr || victim == &asking) return false;
        victim->refuse(503, "too many bodies are being received at once", now);
        victim->ready(0, 0);
    }
    return true;
}

class Server::Implementation final : private Watcher {
  public:
    Implementation(Poller& poller, ServerConfig config, Handler& handler, Observer& observer)
        : poller_(poller), handler_(handler), observer_(observer), work_(poller), deadlines_(poller) {
        state_.config = with_possible_limits(std::move(config));
        state_.buffer.resize(read_buffer_size);
        listeners_ = open_listeners(state_.config.listen);
        port_ = bound_port(listeners_.front().number());
        listen();
    }

    ~Implementation() {
        stop_listening();
        for (auto* list : {&state_.busy, &state_.idle})
            for (const auto& connection : *list) poller_.forget(connection->descriptor());
    }

    Implementation(const Implementation&) = delete;
    Implementation& operator=(const Implementation&) = delete;

    void turn(Time now);
    void configure(ServerConfig config) {
        config.listen = state_.config.listen;
        state_.config = with_possible_limits(std::move(config));
    }
    void stop_accepting();

    int port() const { return port_; }
    std::size_t connections() const { return state_.busy.size() + state_.idle.size(); }
    std::size_t body_bytes() const { return state_.body_bytes; }

  private:
    void ready(int, unsigned) noexcept override { accept_ready_ = true; }
    void listen();
    void stop_listening() noexcept;
    void accept_connections(Time now);
    bool accept_one(int listener, Time now);
    void add_connection(int socket, std::string peer, Time now);
    void make_room_for(Connection& newcomer);
    void pause_accepting(Time until);
    void resume_accepting(Time now);

    void advance_ready(Time now);
    void advance(Connection& connection, Time now);
    void read_and_write(Connection& connection, Time now);
    void give_up(Connection& connection, const char* reason);
    void settle(Connection& connection);
    void watch(Connection& connection);
    void place(Connection& connection);
    void remove(Connection& connection);
    void handle_waiting();
    void handle_one();
    void begin_task(Connection& connection);
    void call_handler(Connection& connection, const std::function<void()>& call);
    void close_expired(Time now);
    void expire_list(std::list<std::unique_ptr<Connection>>& list, Time now);
    void set_deadline_alarm(Time now);
    void report_observer();

    Poller& poller_;
    Handler& handler_;
    Observer& observer_;
    Alarm work_;       // more is to do at once
    Alarm deadlines_;  // not later than the earliest deadline of a connection
    ServerState state_;
    std::vector<Descriptor> listeners_;
    int port_ = 0;
    bool listening_ = false;
    bool accept_ready_ = false;
    Time accept_again_at_ = 0;                                   // 0: not paused for a time
    std::deque<Connection*> waiting_;                            // complete requests, by their places
    std::vector<std::pair<std::string, std::string>> failures_;  // peer, what
};

// ---- connections come ----

void Server::Implementation::listen() {
    for (const Descriptor& listener : listeners_) poller_.watch(listener.number(), readable, *this);
    listening_ = true;
}

void Server::Implementation::stop_listening() noexcept {
    for (const Descriptor& listener : listeners_) poller_.forget(listener.number());
    listening_ = false;
}

void Server::Implementation::accept_connections(Time now) {
    accept_ready_ = false;
    for (const Descriptor& listener : listeners_) {
        // Strangers that come again and again must not cost the others their turn.
        const bool full = connections() >= state_.config.max_connections;
        int left = full ? accepts_per_turn_when_full : accepts_per_turn;
        while (left-- > 0 && listening_ && accept_one(listener.number(), now)) {
        }
    }
}

bool Server::Implementation::accept_one(int listener, Time now) {
    // Who it is shows when it is accepted. Where nobody would go for it, it may as well wait in the kernel.
    if (connections() >= state_.config.max_connections && has_waiting_connection(listener) &&
        connection_to_give_up(state_, Standing::known_address) == nullptr) {
        pause_accepting(now + accept_pause);
        return false;
    }
    sockaddr_storage address{};
    socklen_t size = sizeof address;
    auto* generic_address = reinterpret_cast<sockaddr*>(&address);
    const int socket = accept4(listener, generic_address, &size, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (socket >= 0) {
        add_connection(socket, address_text(*generic_address), now);
        return true;
    }
    if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
        if (!state_.idle.empty()) remove(*state_.idle.front());
        pause_accepting(now + accept_pause);
        return false;
    }
    // Errors of the connection that was to be accepted are passed over (accept(2)).
    return errno != EAGAIN && errno != EWOULDBLOCK;
}

void Server::Implementation::add_connection(int socket, std::string peer, Time now) {
    std::unique_ptr<Channel> channel = make_plain_channel(socket);
    const int on = 1;
    setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    setsockopt(socket, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
    state_.busy.push_back(std::make_unique<Connection>(state_, std::move(channel), std::move(peer), now));
    Connection& connection = *state_.busy.back();
    connection.position = std::prev(state_.busy.end());
    if (connections() > state_.config.max_connections) make_room_for(connection);
    if (connection.phase() == Connection::Phase::closed) return remove(connection);
    // Its first bytes are mostly there already.
    advance(connection, now);
}

/// At the cost of another one, or of the newcomer itself.
void Server::Implementation::make_room_for(Connection& newcomer) {
    Connection* victim = connection_to_give_up(state_, newcomer.standing(), &newcomer);
    if (victim == nullptr) return give_up(newcomer, "closed: all connections are in use by known peers");
    if (victim->phase() != Connection::Phase::idle)
        state_.refusals.push_back(
            {0, victim->peer(), "closed for a newer connection: its request was not complete"});
    remove(*victim);
}

void Server::Implementation::pause_accepting(Time until) {
    stop_listening();
    accept_again_at_ = until;
    deadlines_.set_no_later_than(until);
}

void Server::Implementation::resume_accepting(Time now) {
    if (listening_ || listeners_.empty() || now < accept_again_at_) return;
    accept_again_at_ = 0;
    listen();
}

void Server::Implementation::stop_accepting() {
    stop_listening();
    listeners_.clear();
    state_.stopping = true;
    while (!state_.idle.empty()) remove(*state_.idle.front());
}

// ---- connections go on ----

void Server::Implementation::turn(Time now) {
    resume_accepting(now);
    if (accept_ready_) accept_connections(now);
    advance_ready(now);
    handle_waiting();
    if (deadlines_.when() != 0 && deadlines_.when() <= now) close_expired(now);
    const bool has_work = !waiting_.empty() || !state_.ready.empty();
    if (has_work || work_.when() != 0) work_.set(has_work ? now : 0);
    report_observer();
}

void Server::Implementation::advance_ready(Time now) {
    const std::vector<Connection*> ready = std::exchange(state_.ready, {});
    for (Connection* connection : ready) connection->unqueue();
    for (Connection* connection : ready) advance(*connection, now);
}

void Server::Implementation::advance(Connection& connection, Time now) {
    read_and_write(connection, now);
    settle(connection);
}

void Server::Implementation::read_and_write(Connection& connection, Time now) {
    try {
        connection.advance(now);
    } catch (const std::bad_alloc&) {
        give_up(connection, "out of memory");
    }
}

void Server::Implementation::give_up(Connection& connection, const char* reason) {
    state_.refusals.push_back({0, connection.peer(), reason});
    connection.close();
}

/// After anything was done with a connection: is it over, does it wait for the handler, what is its socket
/// watched for.
void Server::Implementation::settle(Connection& connection) {
    if (connection.phase() == Connection::Phase::waiting) {
        if (!connection.in_waiting_list) begin_task(connection);
        return;
    }
    if (connection.phase() != Connection::Phase::closed) watch(connection);
    if (connection.phase() == Connection::Phase::closed) return remove(connection);
    place(connection);
    if (connection.deadline() != 0) deadlines_.set_no_later_than(connection.deadline());
}

void Server::Implementation::watch(Connection& connection) {
    if (connection.wanted_events() == connection.watched_events) return;
    try {
        poller_.watch(connection.descriptor(), connection.wanted_events(), connection);
        connection.watched_events = connection.wanted_events();
    } catch (const std::exception& error) {
        give_up(connection, error.what());
    }
}

/// Keeps the list of idle connections, in the order in which they became idle.
void Server::Implementation::place(Connection& connection) {
    const bool idle = connection.phase() == Connection::Phase::idle;
    if (idle == connection.in_idle_list && connection.last_progress() == connection.listed_progress) return;
    connection.listed_progress = connection.last_progress();
    auto& from = connection.in_idle_list ? state_.idle : state_.busy;
    auto& to = idle ? state_.idle : state_.busy;
    to.splice(to.end(), from, connection.position);
    connection.in_idle_list = idle;
}

void Server::Implementation::remove(Connection& connection) {
    poller_.forget(connection.descriptor());
    std::erase(state_.ready, &connection);
    std::erase(waiting_, &connection);
    (connection.in_idle_list ? state_.idle : state_.busy).erase(connection.position);
}

/// The request is complete: the handler takes it over.
void Server::Implementation::begin_task(Connection& connection) {
    call_handler(connection, [&] { connection.task = handler_.begin(connection.take_request()); });
    const auto priority = [](const Connection* each) { return each->task ? each->task->priority() : 0; };
    const auto after = [&](std::uint64_t mine, const Connection* each) { return mine < priority(each); };
    waiting_.insert(std::upper_bound(waiting_.begin(), waiting_.end(), priority(&connection), after),
                    &connection);
    connection.in_waiting_list = true;
}

void Server::Implementation::handle_waiting() {
    const Time end = Poller::now() + handler_share;
    while (!waiting_.empty()) {
        handle_one();
        if (Poller::now() >= end) return;
    }
}

void Server::Implementation::handle_one() {
    Connection& connection = *waiting_.front();
    waiting_.pop_front();
    connection.in_waiting_list = false;
    Response response = text_response(500, "internal error");
    if (const std::unique_ptr<Task> task = std::move(connection.task))
        call_handler(connection, [&] { response = task->answer(); });
    const Time now = Poller::now();
    connection.answer(std::move(response), now);
    advance(connection, now);
}

void Server::Implementation::call_handler(Connection& connection, const std::function<void()>& call) {
    try {
        call();
    } catch (const std::exception& error) {
        failures_.emplace_back(connection.peer(), error.what());
    } catch (...) {
        remove(connection);
        throw;
    }
}

// ---- connections go ----

void Server::Implementation::close_expired(Time now) {
    expire_list(state_.busy, now);
    expire_list(state_.idle, now);
    set_deadline_alarm(now);
}

void Server::Implementation::expire_list(std::list<std::unique_ptr<Connection>>& list, Time now) {
    std::vector<Connection*> expired;
    for (const auto& connection : list)
        if (connection->deadline() != 0 && connection->deadline() <= now) expired.push_back(connection.get());
    for (Connection* connection : expired) {
        // This worker may have been away for long (in the handler): what has come meanwhile counts.
        const Time deadline = connection->deadline();
        read_and_write(*connection, now);
        if (connection->deadline() == deadline) {
            connection->expire(now);
            read_and_write(*connection, now);
        }
        settle(*connection);
    }
}

void Server::Implementation::set_deadline_alarm(Time now) {
    Time next = accept_again_at_;
    for (const auto* list : {&state_.busy, &state_.idle})
        for (const auto& connection : *list)
            if (connection->deadline() != 0 && (next == 0 || connection->deadline() < next))
                next = connection->deadline();
    deadlines_.set(next == 0 ? 0 : std::max(next, now + shortest_scan_interval));
}

void Server::Implementation::report_observer() {
    const std::vector<Refusal> refusals = std::exchange(state_.refusals, {});
    const auto failures = std::exchange(failures_, {});
    for (const auto& [peer, what] : failures) observer_.handler_failed(peer, what);
    for (const Refusal& refusal : refusals) observer_.refused(refusal);
}

Server::Server(Poller& poller, ServerConfig config, Handler& handler, Observer& observer)
    : implementation_(std::make_unique<Implementation>(poller, std::move(config), handler, observer)) {}
Server::~Server() = default;
void Server::turn(Time now) {
    implementation_->turn(now);
}
void Server::configure(ServerConfig config) {
    implementation_->configure(std::move(config));
}
void Server::stop_accepting() {
    implementation_->stop_accepting();
}
int Server::port() const {
    return implementation_->port();
}
std::size_t Server::connections() const {
    return implementation_->connections();
}
std::size_t Server::body_bytes() const {
    return implementation_->body_bytes();
}

}  // namespace onerepl::http
