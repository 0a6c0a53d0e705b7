// Figures, not a test: a server and a client, each a process.

#include "harness.h"

#include "http/client.h"

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>

using namespace onerepl;
using namespace onerepl::http;
using namespace onerepl::http::test;

namespace {

double processor_seconds(int who) {
    rusage usage{};
    getrusage(who, &usage);
    const auto seconds = [](const timeval& time) {
        return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
    };
    return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

long peak_megabytes(int who) {
    rusage usage{};
    getrusage(who, &usage);
    return usage.ru_maxrss / 1024;
}

/// A process that serves until it is killed, so that the client has a processor of its own.
class ServingProcess {
  public:
    ServingProcess() {
        // The site is made in its process: an epoll descriptor is shared by a fork.
        int ends[2];
        if (pipe(ends) != 0) std::abort();
        process_ = fork();
        if (process_ == 0) serve(ends[1]);
        char text[200] = "";
        if (read(ends[0], text, sizeof text - 1) <= 0) std::abort();
        url_ = text;
        close(ends[0]);
        close(ends[1]);
    }
    ~ServingProcess() {
        kill(process_, SIGKILL);
        waitpid(process_, nullptr, 0);
    }
    ServingProcess(const ServingProcess&) = delete;
    ServingProcess& operator=(const ServingProcess&) = delete;
    const std::string& url() const { return url_; }

  private:
    [[noreturn]] static void serve(int pipe) {
        Site site;
        site.handler.respond = [](Request&) {
            return Response{200, content_type, Bytes(200, 'x'), {}, false};
        };
        if (write(pipe, site.url().data(), site.url().size()) <= 0) std::abort();
        for (;;) site.run_until([] { return false; }, 3600 * second);
    }
    std::string url_;
    pid_t process_;
};

/// Posts `count` bodies of `size` bytes, `in_flight` at a time.
void run(std::size_t size, std::size_t count, std::size_t in_flight) {
    const ServingProcess server;
    Poller poller;
    Client client(poller);
    std::size_t begun = 0;
    std::size_t ended = 0;
    while (ended < count) {
        while (begun < count && client.in_flight() < in_flight) {
            Post post;
            post.id = ++begun;
            post.url = server.url();
            post.body.resize(size, 'b');
            client.post(std::move(post));
        }
        poller.poll(second);
        for (const Completion& completion : client.turn(Poller::now())) {
            ++ended;
            if (!completion.answered) std::printf("%s\n", completion.error.c_str());
        }
    }
}

void report(std::size_t size, std::size_t count, std::size_t in_flight) {
    const Time begin = Poller::now();
    const double client_begin = processor_seconds(RUSAGE_SELF);
    const double server_begin = processor_seconds(RUSAGE_CHILDREN);
    run(size, count, in_flight);
    const double seconds = static_cast<double>(Poller::now() - begin) / 1e6;
    const double client = processor_seconds(RUSAGE_SELF) - client_begin;
    const double server = processor_seconds(RUSAGE_CHILDREN) - server_begin;
    const auto requests = static_cast<double>(count);
    const double megabytes = static_cast<double>(count * size) / 1e6;
    std::printf(
        "%9zu bytes, %zu in flight: %6.0f requests/s, %5.0f MB/s; processor time a request: client %.0f us, "
        "server %.0f us; %.0f and %.0f MB in a second of it; peak memory so far %ld and %ld MB\n",
        size, in_flight, requests / seconds, megabytes / seconds, client / requests * 1e6,
        server / requests * 1e6, megabytes / client, megabytes / server, peak_megabytes(RUSAGE_SELF),
        peak_megabytes(RUSAGE_CHILDREN));
}

}  // namespace

int main() {
    report(200, 20'000, 1);
    report(200, 20'000, 8);
    report(1'000'000, 1000, 4);
    report(16'000'000, 60, 4);
    report(50'000'000, 20, 1);
}
