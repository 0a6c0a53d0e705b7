// Figures, not a test: server and client in one thread.

#include "harness.h"

#include "http/client.h"

#include <sys/resource.h>

#include <cstdio>

using namespace onerepl;
using namespace onerepl::http;
using namespace onerepl::http::test;

namespace {

double processor_seconds() {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    const auto seconds = [](const timeval& time) {
        return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
    };
    return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

long peak_megabytes() {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_maxrss / 1024;
}

/// Posts `count` bodies of `size` bytes, `in_flight` at a time.
void run(std::size_t size, std::size_t count, std::size_t in_flight) {
    Site site;
    site.handler.respond = [](Request&) { return Response{200, content_type, Bytes(200, 'x'), {}, false}; };
    Client client(site.poller);
    std::size_t begun = 0;
    std::size_t ended = 0;
    site.also = [&] {
        for (const Completion& completion : client.turn(Poller::now())) {
            ++ended;
            if (!completion.answered) std::printf("%s\n", completion.error.c_str());
        }
        while (begun < count && client.in_flight() < in_flight) {
            Post post;
            post.id = ++begun;
            post.url = site.url();
            post.body.resize(size, 'b');
            client.post(std::move(post));
        }
    };
    site.also();
    site.run_until([&] { return ended == count; }, 120 * second);
}

void report(std::size_t size, std::size_t count, std::size_t in_flight) {
    const Time begin = Poller::now();
    const double processor_begin = processor_seconds();
    run(size, count, in_flight);
    const double seconds = static_cast<double>(Poller::now() - begin) / 1e6;
    const double processor = processor_seconds() - processor_begin;
    const auto requests = static_cast<double>(count);
    const double megabytes = static_cast<double>(count * size) / 1e6;
    std::printf(
        "%9zu bytes, %zu in flight: %6.0f requests/s, %5.0f MB/s; by processor time of both sides %6.0f "
        "requests/s, "
        "%5.0f MB/s; peak memory %ld MB\n",
        size, in_flight, requests / seconds, megabytes / seconds, requests / processor, megabytes / processor,
        peak_megabytes());
}

}  // namespace

int main() {
    report(200, 20'000, 1);
    report(200, 20'000, 8);
    report(1'000'000, 1000, 4);
    report(16'000'000, 60, 4);
    report(50'000'000, 20, 1);
}
