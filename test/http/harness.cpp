// The tests' loop, server and raw client.

#include "harness.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

namespace onerepl::http::test {

namespace {

int passed_checks = 0;
int failed_checks = 0;

}  // namespace

bool check(bool passed, const std::string& what) {
    ++(passed ? passed_checks : failed_checks);
    if (!passed) std::printf("FAILED: %s\n", what.c_str());
    return passed;
}

int finish() {
    std::printf("%d passed, %d failed\n", passed_checks, failed_checks);
    return failed_checks == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

namespace {

class EchoTask final : public Task {
  public:
    EchoTask(EchoHandler& handler, Request request) : handler_(handler), request_(std::move(request)) {}
    Response answer() override { return handler_.handle(std::move(request_)); }

  private:
    EchoHandler& handler_;
    Request request_;
};

}  // namespace

std::unique_ptr<Task> EchoHandler::begin(Request request) {
    return std::make_unique<EchoTask>(*this, std::move(request));
}

Response EchoHandler::handle(Request request) {
    ++calls;
    if (respond) return respond(request);
    Response response;
    response.content_type = content_type;
    const std::string size = std::to_string(request.body.size()) + "\n";
    response.body.assign(size.begin(), size.end());
    response.body.insert(response.body.end(), request.body.begin(), request.body.end());
    return response;
}

ServerConfig test_config() {
    ServerConfig config;
    config.listen = "127.0.0.1:0";
    config.limits.body = 64 * 1024 * 1024;
    config.routes = {{Method::post, path, content_type}, {Method::get, "/status", ""}};
    return config;
}

Site::Site(ServerConfig config) : server(poller, std::move(config), handler, observer) {}

bool Site::run_until(const std::function<bool()>& done, Time limit) {
    const Time end = Poller::now() + limit;
    for (;;) {
        if (done()) return true;
        const Time now = Poller::now();
        if (now >= end) return false;
        poller.poll(std::min<Time>(end - now, 5 * millisecond));
        server.turn(Poller::now());
        if (also) also();
    }
}

RawClient::RawClient(Site& site) : site_(site), socket_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<std::uint16_t>(site.server.port()));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (connect(socket_, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) std::perror("connect");
}

RawClient::~RawClient() {
    if (socket_ >= 0) close(socket_);
}

void RawClient::send(std::string_view bytes) {
    site_.run_until([&] {
        const ssize_t count = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
        if (count < 0 && errno != EAGAIN) return true;
        if (count > 0) bytes.remove_prefix(static_cast<std::size_t>(count));
        return bytes.empty();
    });
}

void RawClient::finish_sending() {
    shutdown(socket_, SHUT_WR);
}

void RawClient::receive() {
    char buffer[65536];
    for (;;) {
        const ssize_t count = recv(socket_, buffer, sizeof buffer, MSG_DONTWAIT);
        if (count > 0) {
            received.append(buffer, static_cast<std::size_t>(count));
            continue;
        }
        if (count == 0 || errno != EAGAIN) closed = true;
        return;
    }
}

int RawClient::wait_for_answer(Time limit) {
    site_.run_until(
        [&] {
            receive();
            const auto end = received.find("\r\n\r\n");
            if (end == std::string::npos) return closed;
            const auto field = received.find("Content-Length: ");
            if (field == std::string::npos || field > end) return true;  // 100 Continue
            return received.size() >= end + 4 + std::stoul(received.substr(field + 16)) || closed;
        },
        limit);
    return received.starts_with("HTTP/1.1 ") ? std::stoi(received.substr(9, 3)) : 0;
}

bool RawClient::wait_for_close(Time limit) {
    return site_.run_until([&] { return receive(), closed; }, limit);
}

std::string RawClient::body() const {
    const auto end = received.rfind("\r\n\r\n");
    return end == std::string::npos ? "" : received.substr(end + 4);
}

std::string post_request(std::string_view body, std::string_view more_fields) {
    return "POST " + std::string(path) + " HTTP/1.1\r\nHost: test\r\nContent-Type: " + content_type +
           "\r\nContent-Length: " + std::to_string(body.size()) + "\r\n" + std::string(more_fields) + "\r\n" +
           std::string(body);
}

}  // namespace onerepl::http::test
