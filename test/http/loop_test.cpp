// Server and client in one process and one loop: what goes through, and what the client makes of strange
// answers.

#include "harness.h"

#include "http/client.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <map>
#include <optional>
#include <stdexcept>

using namespace onerepl;
using namespace onerepl::http;
using namespace onerepl::http::test;

namespace {

Bytes bytes_of(std::string_view text) {
    return Bytes(text.begin(), text.end());
}
std::string text_of(const Bytes& bytes) {
    return std::string(bytes.begin(), bytes.end());
}

/// A site with a client on the same poller.
struct Pair {
    explicit Pair(ServerConfig config = test_config()) : site(std::move(config)), client(site.poller) {
        site.also = [this] {
            for (Completion& completion : client.turn(Poller::now())) {
                const auto id = completion.id;
                done[id] = std::move(completion);
            }
        };
    }

    void post(std::uint64_t id, Bytes body, const std::string& url = {}) {
        Post post;
        post.id = id;
        post.url = url.empty() ? site.url() : url;
        post.body = std::move(body);
        this->post(std::move(post));
    }
    void post(Post post) { client.post(std::move(post)); }
    Completion wait_for(std::uint64_t id, Time limit = 5 * second) {
        if (!check(site.run_until([&] { return done.contains(id); }, limit),
                   "post " + std::to_string(id) + " ends"))
            return {};
        return done[id];
    }
    std::string error_of(Post post) {
        post.id = 1000 + done.size();
        const auto id = post.id;
        client.post(std::move(post));
        const Completion completion = wait_for(id);
        check(!completion.answered, "is not taken as an answer");
        return completion.error;
    }

    Site site;
    Client client;
    std::map<std::uint64_t, Completion> done;
};

void expect_text(const std::string& got, const std::string& wanted, const std::string& name) {
    check(got.find(wanted) != std::string::npos, name + ": \"" + got + "\" has no \"" + wanted + "\"");
}

void bodies_of_all_sizes() {
    Pair pair;
    std::uint64_t id = 0;
    for (std::size_t size : {0, 1, 100, 65535, 65536, 1'000'000, 20'000'000}) {
        Bytes body(size);
        for (std::size_t i = 0; i < size; ++i) body[i] = static_cast<std::uint8_t>(i * 7 + i / 251);
        pair.post(++id, body);
        const Completion completion = pair.wait_for(id);
        check(completion.answered && completion.status == 200,
              "a body of " + std::to_string(size) + ": " + completion.error);
        const std::string wanted = std::to_string(size) + "\n" + text_of(body);
        check(text_of(completion.answer) == wanted, "the echo of " + std::to_string(size));
    }
    check(pair.site.server.connections() == 1, "one connection is used again");
    check(pair.site.server.body_bytes() == 0, "no body is left");
}

void several_in_flight() {
    Pair pair;
    for (std::uint64_t id = 1; id <= 20; ++id) pair.post(id, Bytes(100'000, static_cast<std::uint8_t>(id)));
    check(pair.client.in_flight() == 20, "all are in flight");
    for (std::uint64_t id = 1; id <= 20; ++id) {
        const Completion completion = pair.wait_for(id);
        check(completion.answered && completion.answer.size() == 100'007 && completion.answer.back() == id,
              "its own answer");
    }
    check(pair.client.in_flight() == 0, "none is in flight");
}

void cancelling() {
    Pair pair;
    for (std::uint64_t id = 1; id <= 4; ++id) pair.post(id, Bytes(5'000'000));
    pair.client.cancel(2);
    pair.client.cancel(99);
    pair.wait_for(1);
    check(!pair.done.contains(2), "no completion of a cancelled post");
    pair.post(5, Bytes(50'000'000));
    pair.site.run_until([] { return false; }, 20 * millisecond);
    pair.client.cancel_all();
    check(pair.client.in_flight() == 0, "all are cancelled");
    pair.post(6, bytes_of("x"));
    check(pair.wait_for(6).answered, "posts go on after that");
    bool refused = false;
    pair.post(7, bytes_of("x"));
    try {
        pair.post(7, bytes_of("x"));
    } catch (const std::invalid_argument&) {
        refused = true;
    }
    check(refused, "the same id twice");
}

/// What proxies answer in our server's place: all are transport errors with a text that says which.
void strange_answers() {
    Pair pair;
    Response response;
    pair.site.handler.respond = [&](Request&) { return response; };
    Post post;
    post.url = pair.site.url();
    post.body = bytes_of("x");
    post.max_answer = 1000;
    for (int status : {201, 204, 301, 302, 307, 401, 403, 404, 407, 408, 413, 429, 500, 502, 503, 504}) {
        response = text_response(status, "why");
        response.headers = {{"Location", pair.site.url() + "/login"}, {"Retry-After", "7"}};
        expect_text(pair.error_of(post), "HTTP status " + std::to_string(status) + " from http://127.0.0.1",
                    "status");
        check(pair.done.rbegin()->second.retry_after == 7, "Retry-After");
    }
    response = text_response(413, "body is larger");
    expect_text(pair.error_of(post), "messages: body is larger", "the text of the answer is quoted");
    response = {200, "text/html", bytes_of("<html>"), {}, false};
    expect_text(pair.error_of(post), "answer of content type text/html from http://", "HTML");
    response.body = {};
    expect_text(pair.error_of(post), "answer of content type text/html from http://", "empty HTML");
    response = {200, "", bytes_of("x"), {}, false};
    expect_text(pair.error_of(post), "answer without a content type", "no type");
    response = {200, content_type, {}, {}, false};
    expect_text(pair.error_of(post), "empty answer", "empty answer");
    response = {200, content_type, Bytes(1001), {}, false};
    expect_text(pair.error_of(post), "answer is larger than 1000 bytes", "long answer");
    response = {502, "text/html", Bytes(1'000'000, 'x'), {}, false};
    expect_text(pair.error_of(post), "HTTP status 502", "long page of a gateway");
    response = {200, "Application/VND.oneREPL; a=b", bytes_of("x"), {}, false};
    pair.post(1, bytes_of("x"));
    check(pair.wait_for(1).answered, "content type in another case with parameters");
}

void bad_addresses() {
    Pair pair;
    Post post;
    post.body = bytes_of("x");
    const auto error_of = [&](const std::string& url) {
        post.url = url;
        return pair.error_of(post);
    };
    expect_text(error_of("http://127.0.0.1:1/x"),
                "could not connect to http://127.0.0.1:1/x: Connection refused", "refused");
    expect_text(error_of("http://me:secret@127.0.0.1:1/x"), "http://127.0.0.1:1/x", "no password is shown");
    expect_text(error_of("http://no-such-host.invalid/x"), "could not resolve the host name of",
                "unknown host");
    expect_text(error_of("file:///etc/passwd"), "transfer to file:///etc/passwd failed", "another protocol");
    expect_text(error_of(""), "failed", "no URL");
    expect_text(error_of("http://127.0.0.1:99999/"), "failed", "bad port");
}

/// A listening socket that is served by the test itself, byte by byte.
struct FakeServer {
    FakeServer() {
        sockaddr_in address{};
        address.sin_family = AF_INET;
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        socklen_t size = sizeof address;
        bind(listener, reinterpret_cast<sockaddr*>(&address), size);
        listen(listener, 10);
        getsockname(listener, reinterpret_cast<sockaddr*>(&address), &size);
        url = "http://127.0.0.1:" + std::to_string(ntohs(address.sin_port)) + "/";
    }
    ~FakeServer() {
        if (connection >= 0) close(connection);
        close(listener);
    }
    /// Accepts and reads what is there; true when a whole small request was read.
    bool has_request() {
        if (connection < 0) connection = accept4(listener, nullptr, nullptr, SOCK_NONBLOCK);
        char buffer[4096];
        const ssize_t count = connection < 0 ? 0 : recv(connection, buffer, sizeof buffer, 0);
        if (count > 0) request.append(buffer, static_cast<std::size_t>(count));
        return request.find("\r\n\r\n") != std::string::npos;
    }
    void send(std::string_view text) { ::send(connection, text.data(), text.size(), MSG_NOSIGNAL); }
    void hang_up() { close(std::exchange(connection, -1)); }

    int listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    int connection = -1;
    std::string url;
    std::string request;
};

Completion answered_by_hand(const std::string& answer, bool hang_up, std::string* request = nullptr) {
    Pair pair;
    FakeServer fake;
    Post post;
    post.id = 1;
    post.url = fake.url;
    post.body = bytes_of("x");
    post.stall_timeout = 200 * millisecond;
    post.answer_timeout = 300 * millisecond;
    pair.post(std::move(post));
    pair.site.run_until([&] { return fake.has_request(); });
    fake.send(answer);
    if (hang_up) fake.hang_up();
    if (request != nullptr) *request = fake.request;
    return pair.wait_for(1);
}

void broken_answers() {
    const std::string ours = "HTTP/1.1 200 OK\r\nContent-Type: application/vnd.onerepl\r\n";
    std::string request;
    Completion completion = answered_by_hand(ours + "Content-Length: 2\r\n\r\nok", true, &request);
    check(completion.answered && text_of(completion.answer) == "ok",
          "an answer by hand: " + completion.error);
    expect_text(request, "\r\nCache-Control: no-store\r\n", "no-store in the request");
    check(request.find("Expect") == std::string::npos, "no Expect in the request");
    expect_text(answered_by_hand("", true).error, "connection closed without an answer by http://",
                "hang-up");
    expect_text(answered_by_hand(ours + "Content-Length: 5\r\n\r\nok", true).error,
                "connection closed within the answer", "half");
    expect_text(answered_by_hand("", false).error, "no answer for 300 ms from http://", "silence");
    expect_text(answered_by_hand(ours + "Content-Length: 5\r\n\r\nok", false).error,
                "stalled while receiving for 200 ms", "stall");
    expect_text(answered_by_hand("SSH-2.0-x\r\n", true).error, "failed: Received HTTP/0.9", "SSH");
    expect_text(answered_by_hand("HTTP/1.1 302 Found\r\nLocation: /l\r\n\r\n", true).error, "HTTP status 302",
                "redirect");
    check(answered_by_hand(ours + "Transfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n", false).answered,
          "chunked");
}

void server_that_does_not_read() {
    Pair pair;
    FakeServer fake;
    Post post;
    post.url = fake.url;
    post.body = Bytes(50'000'000);
    post.stall_timeout = 200 * millisecond;
    expect_text(pair.error_of(post), "stalled while sending for 200 ms", "a server that does not read");
}

/// The answer may take longer than a stall: the handler works.
void slow_handler() {
    Pair pair;
    pair.site.handler.respond = [](Request&) {
        usleep(600'000);
        return Response{200, content_type, bytes_of("late"), {}, false};
    };
    Post post;
    post.id = 1;
    post.url = pair.site.url();
    post.body = Bytes(1000);
    post.stall_timeout = 100 * millisecond;
    pair.post(std::move(post));
    check(pair.wait_for(1).answered, "a handler slower than the stall timeout");
}

void handler_that_throws() {
    Pair pair;
    pair.site.handler.respond = [](Request&) -> Response { throw std::runtime_error("secret detail"); };
    pair.post(1, bytes_of("x"));
    const Completion completion = pair.wait_for(1);
    check(completion.status == 500 && completion.error.find("internal error") != std::string::npos,
          completion.error);
    check(completion.error.find("secret") == std::string::npos, "the detail stays inside");
    check(pair.site.observer.failures.size() == 1 &&
              pair.site.observer.failures[0].find("secret detail") != std::string::npos,
          "the observer is told");
    pair.site.handler.respond = [](Request&) -> Response { throw 5; };
    pair.post(2, bytes_of("x"));
    bool passed_on = false;
    try {
        pair.site.run_until([&] { return pair.done.contains(2); });
    } catch (int) {
        passed_on = true;
    }
    check(passed_on, "an exception that is not a std::exception passes through turn()");
    pair.site.handler.respond = nullptr;
    pair.post(3, bytes_of("x"));
    check(pair.wait_for(3).answered, "and the server goes on");
}

/// The server closes the kept connection; the next post must not fail for that.
void connection_closed_meanwhile() {
    ServerConfig config = test_config();
    config.keep_alive_timeout = 50 * millisecond;
    Pair pair(config);
    for (std::uint64_t id = 1; id <= 3; ++id) {
        pair.post(id, bytes_of("x"));
        check(pair.wait_for(id).answered, "a post on a connection that the server has closed");
        check(pair.site.run_until([&] { return pair.site.server.connections() == 0; }),
              "kept connections time out");
    }
}

/// 413 and its kind reach a client that is still sending.
void refused_while_sending() {
    ServerConfig config = test_config();
    config.limits.body = 1'000'000;
    Pair pair(config);
    Post post;
    post.url = pair.site.url();
    post.body = Bytes(50'000'000);
    expect_text(pair.error_of(post), "HTTP status 413 from http", "413 within 50 MB");
    post.url += "/else";
    expect_text(pair.error_of(post), "HTTP status 4", "404 within 50 MB");
}

void two_servers_on_one_port() {
    Pair pair;
    ServerConfig config = test_config();
    config.listen = "127.0.0.1:" + std::to_string(pair.site.server.port());
    Site other(config);
    pair.site.also = [&, turn = pair.site.also] {
        other.poller.poll();
        other.server.turn(Poller::now());
        turn();
    };
    for (std::uint64_t id = 1; id <= 40; ++id) pair.post(id, bytes_of("x"));
    for (std::uint64_t id = 1; id <= 40; ++id) check(pair.wait_for(id).answered, "a post to a shared port");
    check(pair.site.handler.calls > 0 && other.handler.calls > 0, "both servers got some");
}

void addresses_to_listen_on() {
    const auto error_of = [](const std::string& listen) -> std::string {
        ServerConfig config = test_config();
        config.listen = listen;
        try {
            Site site(config);
        } catch (const std::exception& error) {
            return error.what();
        }
        return "";
    };
    for (const char* good : {"127.0.0.1:0", "*:0", "localhost:0", "127.0.0.1:0, 127.0.0.2:0"})
        check(error_of(good).empty(), std::string(good) + ": " + error_of(good));
    for (const char* bad : {"", ":", "7075", "127.0.0.1", "127.0.0.1:", "127.0.0.1:x", "127.0.0.1:70000",
                            "::1:70", "[::1:70", "127.0.0.1:0,", "no-such-host.invalid:0", "192.0.2.1:0"})
        check(!error_of(bad).empty(), std::string("listens on ") + bad);
}

void signals_are_left_alone() {
    struct sigaction before {};
    struct sigaction after {};
    sigaction(SIGPIPE, nullptr, &before);
    sigset_t mask_before{};
    sigset_t mask_after{};
    pthread_sigmask(SIG_SETMASK, nullptr, &mask_before);
    {
        Pair pair;
        pair.post(1, bytes_of("x"));
        pair.post(2, bytes_of("x"), "http://localhost:" + std::to_string(pair.site.server.port()) + path);
        pair.wait_for(1);
        pair.wait_for(2);
    }
    sigaction(SIGPIPE, nullptr, &after);
    pthread_sigmask(SIG_SETMASK, nullptr, &mask_after);
    check(before.sa_handler == after.sa_handler, "SIGPIPE's handler");
    check(std::memcmp(&mask_before, &mask_after, sizeof mask_before) == 0, "signal mask");
}

}  // namespace

int main() {
    setenv("http_proxy", "http://127.0.0.1:1/", 1);  // is not to be used
    bodies_of_all_sizes();
    several_in_flight();
    cancelling();
    strange_answers();
    bad_addresses();
    broken_answers();
    server_that_does_not_read();
    slow_handler();
    handler_that_throws();
    connection_closed_meanwhile();
    refused_while_sending();
    two_servers_on_one_port();
    addresses_to_listen_on();
    signals_are_left_alone();
    return finish();
}
