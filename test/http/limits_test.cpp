// Timeouts, numbers of connections, memory, keep-alive and pipelining of the server.

#include "harness.h"

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <memory>

using namespace onerepl;
using namespace onerepl::http;
using namespace onerepl::http::test;

namespace {

using Clients = std::vector<std::unique_ptr<RawClient>>;

bool has_refusal(const Site& site, int status, std::string_view text) {
    for (const Refusal& refusal : site.observer.refusals)
        if (refusal.status == status && refusal.reason.find(text) != std::string::npos) return true;
    return false;
}

void keep_alive_and_close() {
    Site site;
    RawClient client(site);
    for (int i = 0; i < 3; ++i) {
        client.received.clear();
        client.send(post_request("abc"));
        check(client.wait_for_answer() == 200 && client.body() == "3\nabc", "request on a kept connection");
        check(client.received.find("\r\nConnection: keep-alive\r\n") != std::string::npos, "says so");
    }
    check(client.received.find("\r\nCache-Control: no-store\r\n") != std::string::npos, "no-store");
    check(client.received.find(" GMT\r\n") != std::string::npos, "date");
    client.received.clear();
    client.send(post_request("abc", "Connection: close\r\n"));
    check(client.wait_for_answer() == 200 && client.wait_for_close(), "Connection: close");
    RawClient old(site);
    old.send("GET /status HTTP/1.0\r\n\r\n");
    check(old.wait_for_answer() == 200 && old.wait_for_close(), "HTTP/1.0 closes");
    RawClient old_kept(site);
    old_kept.send("GET /status HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
    check(old_kept.wait_for_answer() == 200 && !old_kept.wait_for_close(50 * millisecond),
          "HTTP/1.0 with keep-alive");
    check(site.observer.refusals.empty(), "nothing was refused");
}

void expect_continue() {
    Site site;
    RawClient client(site);
    const std::string request = post_request("abc", "Expect: 100-continue\r\n");
    client.send(request.substr(0, request.size() - 3));
    check(client.wait_for_answer() == 100, "100 Continue comes before the body");
    client.received.clear();
    client.send("abc");
    check(client.wait_for_answer() == 200, "then the answer");
    client.received.clear();
    client.send("POST /else HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n");
    check(client.wait_for_answer() == 404, "or the refusal at once");
}

void pipelining() {
    Site site;
    RawClient client(site);
    std::string requests;
    for (int i = 0; i < 200; ++i) requests += post_request("request " + std::to_string(i));
    client.send(requests + "garbage\r\n\r\n");
    check(client.wait_for_close(), "closed after the garbage");
    std::size_t at = 0;
    for (int i = 0; i < 200 && at != std::string::npos; ++i)
        at = client.received.find("\nrequest " + std::to_string(i), at);
    check(at != std::string::npos, "200 pipelined requests are answered in their order");
    check(client.received.find("400 Bad Request", at) != std::string::npos, "and then the garbage is");
    check(site.handler.calls == 200, "200 handler calls");
    RawClient flood(site);
    flood.send(std::string(3'000'000, 'x'));
    check(flood.wait_for_answer() == 400, "3 MB of garbage");
}

void slow_handler_is_called_once_a_turn() {
    Site site;
    site.handler.respond = [](Request&) { return usleep(3000), text_response(200, "slow"); };
    Clients clients;
    for (int i = 0; i < 5; ++i) {
        clients.push_back(std::make_unique<RawClient>(site));
        clients.back()->send(post_request("x"));
    }
    std::size_t most = 0;
    site.run_until([&, before = site.handler.calls]() mutable {
        most = std::max(most, site.handler.calls - before);
        before = site.handler.calls;
        return site.handler.calls == 5;
    });
    check(site.handler.calls == 5 && most == 1,
          "at most " + std::to_string(most) + " handler calls in a turn");
    for (auto& client : clients) check(client->wait_for_answer() == 200, "each is answered");
}

ServerConfig short_timeouts() {
    ServerConfig config = test_config();
    config.header_timeout = 300 * millisecond;
    config.body_timeout = 300 * millisecond;
    config.write_timeout = 300 * millisecond;
    config.keep_alive_timeout = 300 * millisecond;
    return config;
}

void timeouts() {
    Site site(short_timeouts());
    RawClient silent(site);
    check(silent.wait_for_close() && silent.received.empty(), "a connection without a byte");
    check(site.observer.refusals.empty(), "is not worth a word");
    RawClient half_header(site);
    half_header.send("POST /x HTTP/1.1\r\nHo");
    check(half_header.wait_for_answer() == 408, "half a header");
    RawClient half_body(site);
    half_body.send(post_request("abcdef").substr(0, post_request("abcdef").size() - 3));
    check(half_body.wait_for_answer() == 408 && half_body.wait_for_close(), "half a body");
    check(site.server.body_bytes() == 0, "gives its memory back");
    RawClient idle(site);
    idle.send(post_request("abc"));
    check(idle.wait_for_answer() == 200 && idle.wait_for_close(), "an idle kept connection");
    check(site.observer.refusals.size() == 2, "two refusals are told");
    check(site.server.connections() == 0 ||
              site.run_until([&] { return site.server.connections() == 0; }, 10 * second),
          "no connection is left");
}

/// One byte now and then keeps no connection open.
void slow_loris() {
    ServerConfig config = short_timeouts();
    config.minimum_body_rate = 1000;
    Site site(config);
    RawClient header(site);
    RawClient body(site);
    header.send("GET /status HTTP/1.1\r\nX: ");
    body.send(post_request(std::string(100'000, 'x')).substr(0, 200));
    const Time begin = Poller::now();
    while (!(header.closed && body.closed) && Poller::now() < begin + 3 * second) {
        header.send("x");
        body.send("x");
        site.run_until([] { return false; }, 20 * millisecond);
        header.receive();
        body.receive();
        if (header.received.find("408") != std::string::npos &&
            body.received.find("408") != std::string::npos)
            break;
    }
    check(Poller::now() - begin < 2 * second, "slow peers are gone soon");
    check(has_refusal(site, 408, "header") && has_refusal(site, 408, "body"), "both are told");
}

void answer_not_taken() {
    Site site(short_timeouts());
    site.handler.respond = [](Request&) { return Response{200, content_type, Bytes(50'000'000), {}, false}; };
    RawClient client(site);
    client.send(post_request("x"));
    check(site.run_until([&] { return site.handler.calls == 1; }), "the handler is called");
    check(site.run_until([&] { return site.server.connections() == 0; }),
          "an answer that is not read times out");
    check(has_refusal(site, 0, "not taken in time"), "and is told");
}

/// The worker was busy for longer than all timeouts: what came meanwhile counts.
void busy_worker() {
    Site site(short_timeouts());
    RawClient client(site);
    client.send(post_request("abc").substr(0, 20));
    site.run_until([] { return false; }, 50 * millisecond);
    check(::usleep(600'000) == 0, "sleep");
    // Sent while nobody looked; `send` turns only after it has all.
    client.send(post_request("abc").substr(20));
    check(client.wait_for_answer() == 200, "a request that came while the worker was busy");
}

void most_connections() {
    ServerConfig config = test_config();
    config.max_connections = 10;
    Site site(config);
    Clients idle;
    for (int i = 0; i < 10; ++i) {
        idle.push_back(std::make_unique<RawClient>(site));
        idle.back()->send(post_request("x"));
        check(idle.back()->wait_for_answer() == 200, "one of ten");
    }
    idle[0]->received.clear();
    idle[0]->send(post_request("x"));
    check(idle[0]->wait_for_answer() == 200, "the first is used again");
    RawClient eleventh(site);
    eleventh.send(post_request("x"));
    check(eleventh.wait_for_answer() == 200, "an eleventh is served");
    idle[0]->receive();
    check(idle[1]->wait_for_close(), "the idlest is closed for it");
    check(!idle[0]->closed && site.server.connections() == 10, "and no other");
}

void connections_without_end() {
    ServerConfig config = test_config();
    config.max_connections = 10;
    Site site(config);
    Clients stuck;
    for (int i = 0; i < 10; ++i) {
        stuck.push_back(std::make_unique<RawClient>(site));
        stuck.back()->send("GET /status HTTP/1.1\r\nX: ");
    }
    check(site.run_until([&] { return site.server.connections() == 10; }), "ten unfinished headers");
    RawClient proper(site);
    proper.send(post_request("x"));
    check(proper.wait_for_answer(5 * second) == 200, "a proper request gets in");
    check(has_refusal(site, 0, "for a newer connection"), "at the cost of an unfinished one");
}

/// Answers "me" as somebody who was recognised.
void recognise_me(Site& site) {
    site.handler.respond = [](Request& request) {
        Response response = text_response(200, "hello");
        response.recognised = request.body == Bytes{'m', 'e'};
        return response;
    };
}

/// `count` bodies under way, of which a byte comes now and then: as strangers do who want to shut others out.
Clients dripping_bodies(Site& site, int count) {
    Clients strangers;
    for (int i = 0; i < count; ++i) {
        strangers.push_back(std::make_unique<RawClient>(site));
        strangers.back()->send(std::string_view(post_request(std::string(1000, 'x'))).substr(0, 200));
    }
    return strangers;
}

void strangers_do_not_shut_others_out() {
    ServerConfig config = test_config();
    config.max_connections = 10;
    config.body_timeout = 20 * second;
    Site site(config);
    recognise_me(site);
    RawClient known(site);
    known.send(post_request("me"));
    check(known.wait_for_answer() == 200, "somebody is recognised");
    const Clients strangers = dripping_bodies(site, 30);
    site.run_until([] { return false; }, 50 * millisecond);
    for (const auto& stranger : strangers)
        if (!stranger->closed) stranger->send("x");
    check(site.server.connections() == 10, "strangers make room for strangers");
    known.received.clear();
    known.send(post_request("me"));
    check(known.wait_for_answer() == 200, "his connection is not given up for theirs, idle as it was");
    RawClient another(site);
    another.send(post_request("me"));
    check(another.wait_for_answer() == 200, "he gets in again, though all connections are in use");
    check(has_refusal(site, 0, "for a newer connection"), "told");
}

void strangers_do_not_use_up_the_memory() {
    ServerConfig config = test_config();
    config.limits.body = 1'000'000;
    config.total_body_bytes = 1'000'000;
    config.body_timeout = 20 * second;
    Site site(config);
    recognise_me(site);
    RawClient known(site);
    known.send(post_request("me"));
    check(known.wait_for_answer() == 200, "somebody is recognised");
    RawClient stranger(site);
    stranger.send(std::string_view(post_request(std::string(999'999, 'x'))).substr(0, 900'000));
    check(site.run_until([&] { return site.server.body_bytes() > 850'000; }), "a stranger holds most");
    known.received.clear();
    known.send(post_request(std::string(800'000, 'x')));
    check(known.wait_for_answer() == 200, "and gives it up at once");
    check(stranger.wait_for_answer() == 503, "is told so");
}

void memory_of_bodies() {
    ServerConfig config = test_config();
    config.limits.body = 10'000'000;
    config.total_body_bytes = 10'000'000;
    config.body_timeout = 20 * second;
    Site site(config);
    const std::string request = post_request(std::string(9'000'000, 'x'));
    Clients holders;
    for (int i = 0; i < 2; ++i) {
        holders.push_back(std::make_unique<RawClient>(site));
        holders.back()->send(std::string_view(request).substr(0, 4'500'000));
    }
    check(site.run_until([&] { return site.server.body_bytes() > 8'900'000; }), "9 MB are held");
    RawClient early(site);
    early.send(std::string_view(request).substr(0, 3'000'000));
    check(early.wait_for_answer() == 503, "no room: 503");
    check(early.received.find("Retry-After: 1") != std::string::npos, "with Retry-After");
    check(site.server.body_bytes() <= 10'000'000, "within the limit");
    site.run_until([] { return false; }, 1100 * millisecond);
    RawClient later(site);
    later.send(request);
    check(later.wait_for_answer() == 200, "a stalled body goes for a new one");
    check(has_refusal(site, 503, "too many bodies"), "told");
    holders.clear();
    check(site.run_until([&] { return site.server.body_bytes() == 0; }), "all is given back");
}

void stopping() {
    Site site;
    RawClient idle(site);
    idle.send(post_request("x"));
    check(idle.wait_for_answer() == 200, "before the stop");
    RawClient busy(site);
    const std::string request = post_request("abc");
    busy.send(request.substr(0, request.size() - 1));
    site.run_until([] { return false; }, 20 * millisecond);
    site.server.stop_accepting();
    check(idle.wait_for_close(), "idle connections are closed");
    busy.send("c");
    check(busy.wait_for_answer() == 200 && busy.wait_for_close(), "a request that has begun is answered");
}

std::size_t resident_bytes() {
    std::size_t size = 0;
    std::size_t resident = 0;
    std::ifstream("/proc/self/statm") >> size >> resident;
    return resident * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
}

/// Thousands of connections that do nothing, from another process; requests go on meanwhile.
void idle_connections() {
    rlimit limit{};
    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
    const auto count = static_cast<int>(std::min<rlim_t>(10'000, limit.rlim_cur / 2 - 100));
    ServerConfig config = test_config();
    config.max_connections = static_cast<std::size_t>(count) + 50;
    Site site(config);
    const std::size_t before = resident_bytes();
    const pid_t child = fork();
    if (child == 0) {
        Clients clients;
        for (int i = 0; i < count; ++i) clients.push_back(std::make_unique<RawClient>(site));
        pause();
        _exit(0);
    }
    const auto wanted = static_cast<std::size_t>(count);
    const Time begin = Poller::now();
    check(site.run_until([&] { return site.server.connections() == wanted; }, 8 * second),
          std::to_string(site.server.connections()) + " of " + std::to_string(count) + " idle connections");
    const Time connected = Poller::now() - begin;
    const std::size_t memory = resident_bytes() - before;
    RawClient client(site);
    const Time first = Poller::now();
    for (int i = 0; i < 1000; ++i) {
        client.received.clear();
        client.send(post_request("x"));
        if (client.wait_for_answer() != 200) check(false, "a request beside idle connections");
    }
    std::printf("%d idle connections: %.1f MB, made in %.2f s; 1000 requests beside them: %.3f s\n", count,
                static_cast<double>(memory) / 1e6, static_cast<double>(connected) / 1e6,
                static_cast<double>(Poller::now() - first) / 1e6);
    check(memory / wanted < 2000, "memory of an idle connection");
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
    check(site.run_until([&] { return site.server.connections() <= 1; }), "all are gone with their process");
}

}  // namespace

int main() {
    idle_connections();
    keep_alive_and_close();
    expect_continue();
    pipelining();
    slow_handler_is_called_once_a_turn();
    timeouts();
    slow_loris();
    answer_not_taken();
    busy_worker();
    most_connections();
    connections_without_end();
    strangers_do_not_shut_others_out();
    strangers_do_not_use_up_the_memory();
    memory_of_bodies();
    stopping();
    return finish();
}
