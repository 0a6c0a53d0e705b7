// For the tests of src/http: a loop in one process, a server that echoes, a raw client, and counted checks.
#pragma once

#include "http/server.h"

#include <cstdio>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace onerepl::http::test {

inline const char* const content_type = "application/vnd.onerepl";
inline const char* const path = "/onerepl/v1/messages";

/// Counts a check, and tells if it failed.
bool check(bool passed, const std::string& what);
/// Prints "N passed, M failed"; the exit status of the program.
int finish();

/// Answers with the body's length and bytes, or as `respond` says.
class EchoHandler final : public Handler {
  public:
    std::unique_ptr<Task> begin(Request request) override;
    Response handle(Request request);
    std::function<Response(Request&)> respond;
    std::size_t calls = 0;
};

class RecordingObserver final : public Observer {
  public:
    void refused(const Refusal& refusal) override { refusals.push_back(refusal); }
    void handler_failed(const std::string& peer, const std::string& what) override {
        failures.push_back(peer + " " + what);
    }
    std::vector<Refusal> refusals;
    std::vector<std::string> failures;
};

ServerConfig test_config();

/// A server on a port of its own, and the loop.
struct Site {
    explicit Site(ServerConfig config = test_config());

    /// Turns until `done` or `limit` is over; returns whether it was done.
    bool run_until(const std::function<bool()>& done, Time limit = 5 * second);
    std::string url() const { return "http://127.0.0.1:" + std::to_string(server.port()) + path; }

    Poller poller;
    EchoHandler handler;
    RecordingObserver observer;
    Server server;
    std::function<void()> also;  // in each turn
};

/// A plain non-blocking socket to the site, for requests that no proper client would send.
class RawClient {
  public:
    explicit RawClient(Site& site);
    ~RawClient();
    RawClient(const RawClient&) = delete;
    RawClient& operator=(const RawClient&) = delete;

    /// Sends all of it (running the site's loop meanwhile), as far as the server takes it.
    void send(std::string_view bytes);
    void finish_sending();
    /// Reads what is there. `closed` is set at the end of the stream.
    void receive();
    /// Until `received` has an answer's header and body, or the end; returns the status, 0 if none came.
    int wait_for_answer(Time limit = 2 * second);
    bool wait_for_close(Time limit = 2 * second);
    /// The text after the header of the last answer.
    std::string body() const;

    std::string received;
    bool closed = false;

  private:
    Site& site_;
    int socket_;
};

/// A proper request of our own.
std::string post_request(std::string_view body, std::string_view more_fields = {});

}  // namespace onerepl::http::test
