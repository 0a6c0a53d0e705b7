// One schedule: a remote (sometimes a clone of it too), a central, the channel, an administrator, and what
// must hold.
#pragma once

#include "channel.h"
#include "records.h"

#include "core/journal.h"

#include <stdexcept>

namespace onerepl::sim {

/// What must hold does not.
class Violation : public std::runtime_error {
  public:
    using std::runtime_error::runtime_error;
};

/// Thrown where a process dies; what it had not committed is lost.
struct Crash {};

class RemoteNode;
class CentralNode;

/// What the nodes share.
struct Context {
    Options options;
    Random random;
    Clock clock;
    Channel channel;
    bool tracing = false;
    bool faults = true;
    /// Histories that were lost by a restore, or that a clone goes on from: B may hold a prefix of one of
    /// these too.
    std::vector<History> other_histories;
    Number departed = 0;   // largest number that ever left a remote
    Number confirmed = 0;  // largest number that B ever confirmed
    /// A link may be stopped: two histories exist, or B lost what it had confirmed.
    bool fork = false;
    std::vector<RemoteNode*> remotes;
    CentralNode* central = nullptr;

    Context(const Options& drawn, const Random& generator, bool trace)
        : options(drawn), random(generator), channel(clock, options, random), tracing(trace) {}
    Context(const Context&) = delete;

    bool happens(double probability) { return faults && random.chance(probability); }
    void trace(const std::string& who, const std::string& what) const;
};

/// Writes entries to the trace.
class TraceJournal : public Journal {
  public:
    TraceJournal(const Context& context, std::string who) : context_(context), who_(std::move(who)) {}
    void write(JournalEntry entry) override;

  private:
    const Context& context_;
    std::string who_;
};

/// Runs the schedule of a seed; throws Violation.
void run_schedule(std::uint64_t seed, bool trace);

}  // namespace onerepl::sim
