// Requests that no proper client sends: each must get a clear status at once, or no answer, and never a
// handler call.

#include "harness.h"

#include <string>
#include <vector>

using namespace onerepl;
using namespace onerepl::http;
using namespace onerepl::http::test;

namespace {

struct Case {
    std::string name;
    std::string request;
    int status;  // 0: the server waits for more
};

std::string post(const std::string& fields, const std::string& rest) {
    return "POST " + std::string(path) + " HTTP/1.1\r\n" + fields + "Content-Type: " + content_type + "\r\n" +
           rest;
}
const std::string host = "Host: test\r\n";

std::string chunked(const std::string& rest) {
    return post(host + "Transfer-Encoding: chunked\r\n", "\r\n" + rest);
}

std::vector<Case> accepted() {
    return {
        {"plain post", post(host + "Content-Length: 3\r\n", "\r\nabc"), 200},
        {"empty post", post(host + "Content-Length: 0\r\n", "\r\n"), 200},
        {"chunked post", chunked("3\r\nabc\r\n0\r\n\r\n"), 200},
        {"chunked post without a chunk", chunked("0\r\n\r\n"), 200},
        {"last chunk of many zeros", chunked("3\r\nabc\r\n0000000\r\n\r\n"), 200},
        {"chunk with extension", chunked("3;a=b\r\nabc\r\n0\r\n\r\n"), 400},
        {"parameters of the content type and another case",
         "POST " + std::string(path) +
             " HTTP/1.1\r\nhOST: test\r\nContent-Type: Application/VND.onerepl; v=1\r\nContent-Length: "
             "1\r\n\r\na",
         200},
        {"get", "GET /status?x=1 HTTP/1.1\r\nHost: test\r\n\r\n", 200},
        {"get of HTTP/1.0 without Host", "GET /status HTTP/1.0\r\n\r\n", 200},
        {"absolute form", "GET http://test/status HTTP/1.1\r\nHost: test\r\n\r\n", 200},
    };
}

/// The table of requests by which the HTTP libraries were compared.
std::vector<Case> smuggling() {
    return {
        {"two different Content-Length",
         post(host + "Content-Length: 3\r\nContent-Length: 4\r\n", "\r\nabcd"), 400},
        {"the same Content-Length twice",
         post(host + "Content-Length: 3\r\nContent-Length: 3\r\n", "\r\nabc"), 400},
        {"Content-Length list", post(host + "Content-Length: 3, 3\r\n", "\r\nabc"), 400},
        {"Content-Length and Transfer-Encoding",
         post(host + "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n", "\r\n0\r\n\r\n"), 400},
        {"Transfer-Encoding and Content-Length",
         post(host + "Transfer-Encoding: chunked\r\nContent-Length: 3\r\n", "\r\n0\r\n\r\n"), 400},
        {"bare line feeds", "POST " + std::string(path) + " HTTP/1.1\nHost: test\nContent-Length: 0\n\n",
         400},
        {"one bare line feed", post(host + "X: a\nContent-Length: 0\r\n", "\r\n"), 400},
        {"bare carriage return", post(host + "X: a\rb\r\nContent-Length: 0\r\n", "\r\n"), 400},
        {"space before the colon", post(host + "Content-Length : 3\r\n", "\r\nabc"), 400},
        {"length +3", post(host + "Content-Length: +3\r\n", "\r\nabc"), 400},
        {"length -1", post(host + "Content-Length: -1\r\n", "\r\nabc"), 400},
        {"empty length", post(host + "Content-Length: \r\n", "\r\nabc"), 400},
        {"length 0x3", post(host + "Content-Length: 0x3\r\n", "\r\nabc"), 400},
        {"length of 30 digits", post(host + "Content-Length: 100000000000000000000000000000\r\n", "\r\nabc"),
         400},
        {"chunk with bare line feed", chunked("3\nabc\n0\n\n"), 400},
        {"NUL in the header", post(host + std::string("X: a\0b\r\n", 8) + "Content-Length: 0\r\n", "\r\n"),
         400},
        {"transfer encoding gzip, chunked",
         post(host + "Transfer-Encoding: gzip, chunked\r\n", "\r\n0\r\n\r\n"), 400},
        {"transfer encoding chunked, chunked",
         post(host + "Transfer-Encoding: chunked, chunked\r\n", "\r\n0\r\n\r\n"), 400},
        {"transfer encoding twice",
         post(host + "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", "\r\n0\r\n\r\n"), 400},
        {"transfer encoding identity and a length",
         post(host + "Transfer-Encoding: identity\r\nContent-Length: 3\r\n", "\r\nabc"), 400},
        {"vertical tab before chunked", post(host + "Transfer-Encoding: \vchunked\r\n", "\r\n0\r\n\r\n"),
         400},
        {"chunked in HTTP/1.0",
         "POST " + std::string(path) + " HTTP/1.0\r\n" + host + "Content-Type: " + content_type +
             "\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
         400},
        {"folded field", post(host + "X: a\r\n b\r\nContent-Length: 0\r\n", "\r\n"), 400},
        {"folded first field", "GET /status HTTP/1.1\r\n X: a\r\nHost: test\r\n\r\n", 400},
        {"no Host", post("Content-Length: 0\r\n", "\r\n"), 400},
        {"two Hosts", post(host + host + "Content-Length: 0\r\n", "\r\n"), 400},
        {"field without colon", post(host + "X\r\nContent-Length: 0\r\n", "\r\n"), 400},
        {"field without name", post(host + ": x\r\nContent-Length: 0\r\n", "\r\n"), 400},
        {"trailer", chunked("3\r\nabc\r\n0\r\nX: a\r\n\r\n"), 400},
        {"17 digits of chunk size", chunked("10000000000000003\r\nabc\r\n0\r\n\r\n"), 400},
        {"chunk size over 64 bits", chunked("fffffffffffffffff\r\nabc"), 400},
        {"chunk size that is no number", chunked("xyz\r\nabc\r\n"), 400},
        {"negative chunk size", chunked("-3\r\nabc\r\n"), 400},
        {"chunk longer than told", chunked("3\r\nabcd\r\n0\r\n\r\n"), 400},
        {"endless chunk extension", chunked("3;" + std::string(5000, 'x')), 400},
        {"two content types", post(host + "Content-Type: a/b\r\nContent-Length: 0\r\n", "\r\n"), 400},
    };
}

std::vector<Case> refused() {
    const std::string type = "Content-Type: " + std::string(content_type) + "\r\n";
    const std::string length = "Content-Length: 0\r\n\r\n";
    return {
        {"header of 300 kB",
         post(host + "X: " + std::string(300'000, 'x') + "\r\nContent-Length: 0\r\n", "\r\n"), 431},
        {"endless target", "GET /" + std::string(20'000, 'a'), 431},
        {"TLS hello", std::string("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 11), 400},
        {"SSH", "SSH-2.0-OpenSSH_9.2\r\n", 400},
        {"lower-case method", "get /status HTTP/1.1\r\n", 400},
        {"empty line first", "\r\nGET /status HTTP/1.1\r\nHost: test\r\n\r\n", 400},
        {"method without end", std::string(100, 'A'), 400},
        {"HTTP/0.9", "GET /status\r\n", 0},
        {"HTTP/0.9 with empty line", "GET /status\r\n\r\n", 400},
        {"HTTP/2 preface", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505},
        {"HTTP/1.2", "GET /status HTTP/1.2\r\nHost: test\r\n\r\n", 505},
        {"HTTP/1.x", "GET /status HTTP/1.x\r\nHost: test\r\n\r\n", 400},
        {"two spaces in the start line", "GET  /status HTTP/1.1\r\nHost: test\r\n\r\n", 400},
        {"asterisk form", "GET * HTTP/1.1\r\nHost: test\r\n\r\n", 400},
        {"another method",
         "PUT " + std::string(path) + " HTTP/1.1\r\nHost: test\r\nContent-Length: 1\r\n\r\na", 405},
        {"CONNECT", "CONNECT test:1 HTTP/1.1\r\nHost: test\r\n\r\n", 405},
        {"get of a post path", "GET " + std::string(path) + " HTTP/1.1\r\nHost: test\r\n\r\n", 405},
        {"post to a get path", "POST /status HTTP/1.1\r\nHost: test\r\n" + length, 405},
        {"unknown path", "POST /else HTTP/1.1\r\nHost: test\r\n" + type + length, 404},
        {"path with slash at its end",
         "POST " + std::string(path) + "/ HTTP/1.1\r\nHost: test\r\n" + type + length, 404},
        {"path by dots", "GET /x/../status HTTP/1.1\r\nHost: test\r\n\r\n", 404},
        {"no length", post(host, "\r\n"), 411},
        {"get with body", "GET /status HTTP/1.1\r\nHost: test\r\nContent-Length: 1\r\n\r\na", 400},
        {"body too large", post(host + "Content-Length: 2000001\r\n", "\r\nabc"), 413},
        {"chunk too large", chunked("1e8481\r\nabc"), 413},
        {"chunks too large together",
         chunked("1e8480\r\n" + std::string(2'000'000, 'x') + "\r\n1\r\nx\r\n0\r\n\r\n"), 413},
        {"other content type",
         "POST " + std::string(path) + " HTTP/1.1\r\nHost: test\r\nContent-Type: text/html\r\n" + length,
         415},
        {"no content type", "POST " + std::string(path) + " HTTP/1.1\r\nHost: test\r\n" + length, 415},
        {"content encoding", post(host + "Content-Encoding: gzip\r\n", length), 415},
        {"other expectation", post(host + "Expect: a-miracle\r\n", length), 417},
        {"half a header", "POST " + std::string(path) + " HTTP/1.1\r\nHo", 0},
        {"half a body", post(host + "Content-Length: 10\r\n", "\r\nabc"), 0},
    };
}

void try_case(const Case& one, std::size_t piece) {
    ServerConfig config = test_config();
    config.limits.body = 2'000'000;
    Site site(config);
    RawClient client(site);
    if (piece == 0) {
        client.send(one.request);
    } else {
        for (std::size_t at = 0; at < one.request.size(); at += piece) {
            client.send(std::string_view(one.request).substr(at, piece));
            site.run_until([] { return true; });
            site.poller.poll();
            site.server.turn(Poller::now());
        }
    }
    const int status = client.wait_for_answer(one.status == 0 ? 50 * millisecond : 2 * second);
    const std::string name = one.name + (piece == 0 ? "" : " in pieces of " + std::to_string(piece));
    check(status == one.status,
          name + ": status " + std::to_string(status) + ", not " + std::to_string(one.status));
    if (one.status == 200) {
        check(site.handler.calls == 1, name + ": handler calls " + std::to_string(site.handler.calls));
        check(site.observer.refusals.empty(), name + ": told as refused");
        return;
    }
    check(site.handler.calls == 0, name + ": reached the handler");
    if (one.status == 0) return;
    const std::string text = client.body();
    check(text.size() > 1 && text.find('\n') == text.size() - 1, name + ": text \"" + text + "\"");
    check(site.observer.refusals.size() == 1 && site.observer.refusals[0].status == status &&
              site.observer.refusals[0].reason + "\n" == text,
          name + ": told the observer");
    check(client.wait_for_close() || piece != 0, name + ": connection stays open");
}

/// Every prefix of a proper request, then the end: no handler call, no crash, nothing kept.
void cut_everywhere() {
    const std::vector<std::string> requests = {
        post_request("some body"), chunked("3\r\nabc\r\n5\r\ndefgh\r\n0\r\n\r\n"), chunked("0\r\n\r\n")};
    for (const std::string& request : requests)
        for (std::size_t length = 0; length < request.size(); ++length) {
            Site site;
            {
                RawClient client(site);
                client.send(std::string_view(request).substr(0, length));
                client.finish_sending();
                site.run_until([&] { return client.receive(), client.closed; }, second);
                check(client.closed && client.received.empty(),
                      "request cut after " + std::to_string(length));
            }
            check(site.handler.calls == 0 && site.server.connections() == 0 && site.server.body_bytes() == 0,
                  "nothing is left of a request cut after " + std::to_string(length));
            check(site.observer.refusals.size() == (length == 0 ? 0 : 1), "a request cut is told");
        }
}

}  // namespace

int main() {
    for (const auto& list : {accepted(), smuggling(), refused()})
        for (const Case& one : list) {
            try_case(one, 0);
            if (one.request.size() < 1000)
                for (std::size_t piece : {1, 7}) try_case(one, piece);
        }
    cut_everywhere();
    return finish();
}
