// onerepl_sim: runs random schedules of the real core on both sides, counts how often each rule decided
// something, and prints the seed of every schedule in which something does not hold.
//
//   onerepl_sim --seeds FIRST..LAST [--jobs N]     exit status 0 only if all hold and every rule fired
//   onerepl_sim --seed N [--trace]                 one schedule again, with everything that happens
#include "world.h"

#include "core/rules.h"

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <charconv>
#include <cstdio>
#include <cstring>
#include <string>
#include <string_view>

namespace {

using namespace onerepl;

struct Arguments {
    std::uint64_t first = 1;
    std::uint64_t last = 1000;
    unsigned jobs = 1;
    bool trace = false;
    bool one = false;
};

/// What the jobs share.
struct Result {
    std::uint64_t passed;
    std::uint64_t failed;
    RuleCounts rules;
};

bool read_number(std::string_view text, std::uint64_t& number) {
    auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    return error == std::errc() && end == text.data() + text.size();
}

bool read_arguments(int count, char** values, Arguments& arguments) {
    for (int i = 1; i < count; ++i) {
        const std::string_view name = values[i];
        const std::string_view value = i + 1 < count ? values[i + 1] : "";
        std::uint64_t number = 0;
        if (name == "--trace") {
            arguments.trace = true;
            continue;
        }
        ++i;
        if (name == "--seed" && read_number(value, number)) {
            arguments.first = arguments.last = number;
            arguments.one = true;
        } else if (name == "--jobs" && read_number(value, number) && number > 0 && number <= 64) {
            arguments.jobs = static_cast<unsigned>(number);
        } else if (const auto dots = value.find(".."); name == "--seeds" && dots != value.npos) {
            if (!read_number(value.substr(0, dots), arguments.first)) return false;
            if (!read_number(value.substr(dots + 2), arguments.last)) return false;
        } else {
            return false;
        }
    }
    return true;
}

void run_seed(std::uint64_t seed, bool trace, Result& result) {
    try {
        sim::run_schedule(seed, trace);
        ++result.passed;
    } catch (const std::exception& error) {
        ++result.failed;
        std::printf("seed %llu: %s\n", static_cast<unsigned long long>(seed), error.what());
        std::fflush(stdout);
    }
}

void run_job(const Arguments& arguments, unsigned job, Result& result) {
    rule_counts = &result.rules;
    for (std::uint64_t seed = arguments.first + job; seed <= arguments.last; seed += arguments.jobs)
        run_seed(seed, arguments.trace, result);
}

/// A job that dies counts as a failure.
bool run_jobs(const Arguments& arguments, Result* results) {
    for (unsigned job = 0; job < arguments.jobs; ++job) {
        if (const pid_t pid = fork(); pid == 0) {
            run_job(arguments, job, results[job]);
            std::fflush(stdout);
            _exit(0);
        } else if (pid < 0) {
            return false;
        }
    }
    bool sound = true;
    for (int status = 0; wait(&status) > 0;) sound = sound && WIFEXITED(status) && WEXITSTATUS(status) == 0;
    return sound;
}

Result* shared_results(unsigned jobs) {
    void* memory =
        mmap(nullptr, sizeof(Result) * jobs, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return memory == MAP_FAILED ? nullptr : static_cast<Result*>(memory);
}

/// False if a rule never fired.
bool report_rules(const RuleCounts& counts) {
    bool all = true;
    for (std::size_t i = 0; i < counts.size(); ++i) {
        std::printf("%s%-4s%10llu", i % 6 == 0 ? "\n" : "  ", name_of(static_cast<Rule>(i)),
                    static_cast<unsigned long long>(counts[i]));
        all = all && counts[i] > 0;
    }
    std::printf("\n");
    if (!all) std::printf("a rule never fired\n");
    return all;
}

}  // namespace

int main(int count, char** values) {
    Arguments arguments;
    if (!read_arguments(count, values, arguments)) {
        std::fprintf(stderr, "usage: onerepl_sim --seeds FIRST..LAST [--jobs N] | --seed N [--trace]\n");
        return 2;
    }
    Result* results = shared_results(arguments.jobs);
    if (results == nullptr) return 2;
    const bool sound =
        arguments.one ? (run_job(arguments, 0, results[0]), true) : run_jobs(arguments, results);
    Result sum{};
    for (unsigned job = 0; job < arguments.jobs; ++job) {
        sum.passed += results[job].passed;
        sum.failed += results[job].failed;
        for (std::size_t i = 0; i < sum.rules.size(); ++i) sum.rules[i] += results[job].rules[i];
    }
    if (!sound) ++sum.failed;
    if (!arguments.one && !report_rules(sum.rules)) ++sum.failed;
    std::printf("%llu passed, %llu failed\n", static_cast<unsigned long long>(sum.passed),
                static_cast<unsigned long long>(sum.failed));
    return sum.failed == 0 ? 0 : 1;
}
