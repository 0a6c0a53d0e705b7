// Posts bodies over HTTP, many at once, without waiting: libcurl's multi interface on the poller.
// Only client.cpp and transfer.cpp include curl. No proxy of the environment is used, no redirect followed,
// no cookie kept.
#pragma once

#include "http/poller.h"

#include <memory>
#include <string>
#include <vector>

namespace onerepl::http {

struct ClientConfig {
    std::string user_agent = "onerepl";
    /// Of what is sent, and what an answer must have to be an answer.
    std::string content_type = "application/vnd.onerepl";
    /// A field of an answer that is handed out as Completion::cause, whatever its status; its value is at
    /// most 20 letters and digits. Empty: none.
    std::string cause_field;
    /// Connections kept for use again, all hosts together.
    long kept_connections = 16;
};

/// One body to post.
struct Post {
    std::uint64_t id = 0;  // the caller's, must be unique among those in flight
    std::string url;       // http:// (https:// when TLS comes)
    Bytes body;
    std::size_t max_answer = 64 * 1024 * 1024;  // a longer answer is a transport error
    Time connect_timeout = 10 * second;         // name resolution included
    Time stall_timeout = 120 * second;          // without a byte sent, or received once the answer has begun
    // From the last byte sent to the first of the answer. A host that has vanished is noticed sooner, by
    // probes.
    Time answer_timeout = 600 * second;
};

/// How a post ended.
struct Completion {
    std::uint64_t id = 0;
    /// Status 200 with our content type and a body. Whether that is authentic is for the caller to see.
    bool answered = false;
    Bytes answer;
    /// If not answered: one line such as "HTTP status 502 from http://central:7075/...". Steady for the same
    /// cause, so that it can be compared with the last one and journalled once per change.
    std::string error;
    /// All of it was sent over a connection that holds, and the answer did not come, or not to its end.
    bool in_silence = false;
    /// The answer's field ClientConfig::cause_field, if it has one.
    std::string cause;
    /// HTTP status; 0 if none came.
    int status = 0;
    /// Seconds of the answer's Retry-After header; 0 if none.
    int retry_after = 0;
    /// From post() to the end, microseconds.
    Time duration = 0;
};

class Client {
  public:
    /// The poller must outlive the client. Throws std::runtime_error if libcurl can't be set up.
    explicit Client(Poller& poller, ClientConfig config = {});
    /// Cancels all and closes all connections.
    ~Client();
    Client(const Client&) = delete;
    Client& operator=(const Client&) = delete;

    /// Begins to post. Whatever goes wrong is told by a completion, except std::bad_alloc, and
    /// std::invalid_argument for an id that is in flight.
    void post(Post post);
    /// Does what is ready (for at most some 5 ms as long as bytes flow and nothing ends), gives up what has
    /// timed out, and returns what has ended.
    std::vector<Completion> turn(Time now);
    /// Gives up: no completion will come. Unknown ids are ignored.
    void cancel(std::uint64_t id);
    void cancel_all();
    std::size_t in_flight() const;

  private:
    class Implementation;
    std::unique_ptr<Implementation> implementation_;
};

}  // namespace onerepl::http
