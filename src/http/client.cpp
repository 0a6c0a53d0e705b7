// libcurl's multi interface, driven by the poller. Only this file and transfer.cpp include curl.
// libcurl calls back from within its C code: no callback may throw, nor call anything of PostgreSQL.

#include "http/client.h"
#include "http/signal_block.h"
#include "http/transfer.h"

#include <curl/curl.h>

#include <stdexcept>
#include <unordered_map>
#include <utility>

namespace onerepl::http {

namespace {

// What a turn may take of the caller's time while bytes flow.
constexpr Time turn_share = 5 * millisecond;

}  // namespace

class Client::Implementation final : private Watcher {
  public:
    Implementation(Poller& poller, ClientConfig config);
    ~Implementation();
    Implementation(const Implementation&) = delete;
    Implementation& operator=(const Implementation&) = delete;

    void post(Post post);
    std::vector<Completion> turn(Time now);
    void cancel(std::uint64_t id);
    void cancel_all();
    std::size_t in_flight() const { return transfers_.size(); }

  private:
    struct ReadySocket {
        int descriptor;
        unsigned events;
    };

    void ready(int descriptor, unsigned events) noexcept override;
    static int on_socket(CURL*, curl_socket_t socket, int what, void* context, void*) noexcept;
    static int on_timer(CURLM*, long timeout, void* context) noexcept;

    void set_multi_options();
    void* take_easy_handle();
    void release(void* easy, bool added) noexcept;
    void socket_action(int descriptor, int events);
    void act_on_ready(Time now);
    void collect_finished(std::vector<Completion>& completions, Time now);
    void check_progress(std::vector<Completion>& completions, Time now);
    void complete(std::vector<Completion>& completions, Completion completion);

    Poller& poller_;
    ClientConfig config_;
    Alarm curl_alarm_;
    Alarm check_alarm_;
    CURLM* multi_ = nullptr;
    HeaderLines headers_;
    std::unordered_map<std::uint64_t, std::unique_ptr<Transfer>> transfers_;
    std::vector<CURL*> spare_;  // handles to be used again
    std::vector<ReadySocket> ready_;
};

// ---- set-up ----

Client::Implementation::Implementation(Poller& poller, ClientConfig config)
    : poller_(poller), config_(std::move(config)), curl_alarm_(poller), check_alarm_(poller) {
    headers_.add("Content-Type: " + config_.content_type);
    headers_.add("Accept: " + config_.content_type);
    headers_.add("Cache-Control: no-store");
    headers_.add("Expect:");  // no waiting for "100 Continue"
    const SignalBlock block;
    if (curl_global_init(CURL_GLOBAL_DEFAULT) != 0) throw std::runtime_error("could not initialise libcurl");
    multi_ = curl_multi_init();
    if (multi_ == nullptr) {
        curl_global_cleanup();
        throw std::runtime_error("could not initialise libcurl");
    }
    set_multi_options();
}

void Client::Implementation::set_multi_options() {
    curl_multi_setopt(multi_, CURLMOPT_SOCKETFUNCTION, &Implementation::on_socket);
    curl_multi_setopt(multi_, CURLMOPT_SOCKETDATA, this);
    curl_multi_setopt(multi_, CURLMOPT_TIMERFUNCTION, &Implementation::on_timer);
    curl_multi_setopt(multi_, CURLMOPT_TIMERDATA, this);
    curl_multi_setopt(multi_, CURLMOPT_MAXCONNECTS, config_.kept_connections);
    curl_multi_setopt(multi_, CURLMOPT_PIPELINING, CURLPIPE_NOTHING);
}

Client::Implementation::~Implementation() {
    cancel_all();
    const SignalBlock block;
    for (CURL* easy : spare_) curl_easy_cleanup(easy);
    curl_multi_cleanup(multi_);
    curl_global_cleanup();
}

// ---- posts begin ----

void Client::Implementation::post(Post post) {
    const std::uint64_t id = post.id;
    if (transfers_.contains(id)) throw std::invalid_argument("a post with this id is in flight");
    const Time now = Poller::now();
    void* easy = take_easy_handle();
    const auto where =
        transfers_.emplace(id, std::make_unique<Transfer>(std::move(post), config_, headers_, easy, now))
            .first;
    const SignalBlock block;
    if (curl_multi_add_handle(multi_, easy) != CURLM_OK) {
        transfers_.erase(where);
        release(easy, false);
        throw std::bad_alloc();
    }
    check_alarm_.set_no_later_than(where->second->next_check());
    // At once: a small body leaves over a kept connection before the caller waits again.
    socket_action(CURL_SOCKET_TIMEOUT, 0);
}

void* Client::Implementation::take_easy_handle() {
    spare_.reserve(spare_.size() + transfers_.size() + 1);  // so that release() needs no memory
    CURL* easy = nullptr;
    if (spare_.empty()) {
        easy = curl_easy_init();
    } else {
        easy = spare_.back();
        spare_.pop_back();
    }
    if (easy == nullptr) throw std::bad_alloc();
    return easy;
}

/// `added`: it is in the multi handle.
void Client::Implementation::release(void* easy, bool added) noexcept {
    const SignalBlock block;
    if (added) curl_multi_remove_handle(multi_, easy);
    curl_easy_reset(easy);
    spare_.push_back(easy);
}

// ---- what libcurl wants to be told ----

void Client::Implementation::ready(int descriptor, unsigned events) noexcept {
    try {
        ready_.push_back({descriptor, events});
    } catch (const std::bad_alloc&) {
        // The poller is level-triggered: it tells again.
    }
}

int Client::Implementation::on_socket(CURL*, curl_socket_t socket, int what, void* context, void*) noexcept {
    auto& self = *static_cast<Implementation*>(context);
    if (what == CURL_POLL_REMOVE) {
        self.poller_.forget(socket);
        return 0;
    }
    const unsigned events =
        ((what & CURL_POLL_IN) != 0 ? readable : 0U) | ((what & CURL_POLL_OUT) != 0 ? writable : 0U);
    try {
        self.poller_.watch(socket, events, self);
        return 0;
    } catch (const std::exception&) {
        return -1;  // libcurl then fails the transfer
    }
}

int Client::Implementation::on_timer(CURLM*, long timeout, void* context) noexcept {
    auto& self = *static_cast<Implementation*>(context);
    self.curl_alarm_.set(timeout < 0 ? 0 : Poller::now() + static_cast<Time>(timeout) * millisecond);
    return 0;
}

void Client::Implementation::socket_action(int descriptor, int events) {
    const SignalBlock block;
    int running = 0;
    curl_multi_socket_action(multi_, descriptor, events, &running);
    // What has ended is collected in a turn.
    if (static_cast<std::size_t>(running) < transfers_.size()) curl_alarm_.set_no_later_than(Poller::now());
}

// ---- posts go on and end ----

std::vector<Completion> Client::Implementation::turn(Time now) {
    std::vector<Completion> completions;
    const Time end = Poller::now() + turn_share;
    for (;;) {
        act_on_ready(now);
        collect_finished(completions, now);
        // libcurl writes one buffer at a time: a large body would take many of the caller's turns.
        poller_.poll();
        now = Poller::now();
        if (ready_.empty() || !completions.empty() || now >= end) break;
    }
    if (check_alarm_.when() != 0 && check_alarm_.when() <= now) check_progress(completions, now);
    return completions;
}

void Client::Implementation::act_on_ready(Time now) {
    for (const ReadySocket& socket : std::exchange(ready_, {}))
        socket_action(socket.descriptor, ((socket.events & readable) != 0 ? CURL_CSELECT_IN : 0) |
                                             ((socket.events & writable) != 0 ? CURL_CSELECT_OUT : 0));
    if (curl_alarm_.when() == 0 || curl_alarm_.when() > now) return;
    curl_alarm_.set(0);
    socket_action(CURL_SOCKET_TIMEOUT, 0);
}

void Client::Implementation::collect_finished(std::vector<Completion>& completions, Time now) {
    int left = 0;
    while (const CURLMsg* message = curl_multi_info_read(multi_, &left)) {
        if (message->msg != CURLMSG_DONE) continue;
        char* context = nullptr;
        const CURLcode result = message->data.result;
        curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &context);
        complete(completions, reinterpret_cast<Transfer*>(context)->finish(result, now));
    }
}

void Client::Implementation::complete(std::vector<Completion>& completions, Completion completion) {
    const auto found = transfers_.find(completion.id);
    release(found->second->easy(), true);
    transfers_.erase(found);
    completions.push_back(std::move(completion));
}

void Client::Implementation::check_progress(std::vector<Completion>& completions, Time now) {
    std::vector<Completion> given_up;
    for (auto& [id, transfer] : transfers_)
        if (transfer->next_check() <= now && !transfer->check_progress(now))
            given_up.push_back(transfer->give_up(now));
    for (Completion& completion : given_up) complete(completions, std::move(completion));
    Time next = 0;
    for (const auto& [id, transfer] : transfers_)
        if (next == 0 || transfer->next_check() < next) next = transfer->next_check();
    check_alarm_.set(next);
}

void Client::Implementation::cancel(std::uint64_t id) {
    const auto found = transfers_.find(id);
    if (found == transfers_.end()) return;
    release(found->second->easy(), true);
    transfers_.erase(found);
}

void Client::Implementation::cancel_all() {
    for (auto& [id, transfer] : transfers_) release(transfer->easy(), true);
    transfers_.clear();
}

Client::Client(Poller& poller, ClientConfig config)
    : implementation_(std::make_unique<Implementation>(poller, std::move(config))) {}
Client::~Client() = default;
void Client::post(Post post) {
    implementation_->post(std::move(post));
}
std::vector<Completion> Client::turn(Time now) {
    return implementation_->turn(now);
}
void Client::cancel(std::uint64_t id) {
    implementation_->cancel(id);
}
void Client::cancel_all() {
    implementation_->cancel_all();
}
std::size_t Client::in_flight() const {
    return implementation_->in_flight();
}

}  // namespace onerepl::http
