// Runs one schedule: first with work and faults, then without, until both sides are identical (or know why
// not).
#include "world.h"

#include "central_node.h"
#include "remote_node.h"

#include <cstdio>

namespace onerepl::sim {

void Context::trace(const std::string& who, const std::string& what) const {
    if (!tracing) return;
    std::printf("%10.3f %-2s %s\n", static_cast<double>(clock.now()) / 1e6, who.c_str(), what.c_str());
}

void TraceJournal::write(JournalEntry entry) {
    static constexpr const char* names[] = {"information", "warning", "critical"};
    std::string what = std::string("  journal ") + names[static_cast<int>(entry.level)] + ": " + entry.rule +
                       " " + entry.message;
    if (!entry.numbers.empty()) what += " [" + to_string(entry.numbers) + "]";
    context_.trace(who_, what);
}

namespace {

constexpr Time patience = 60 * second;  // simulated: in this time both must be identical once faults stopped

constexpr std::uint64_t most_events = 500'000;

class World {
  public:
    World(std::uint64_t seed, bool trace) : World(Random(seed), trace) {}
    void run();

  private:
    World(Random random, bool trace);
    static RemoteStore first_store(const Options& options, Random& random);
    static std::vector<Change> transaction(const Options& options, Random& random);
    void plan_work(RemoteNode& remote, std::size_t transactions, Time from);
    void plan_administrator();
    void plan_fork();
    void resolve_now_and_then();
    void restore_remote(const RemoteStore& copy);
    void restore_central(const CentralStore& copy);
    void clone_remote();
    void end_faults();
    bool identical() const;
    bool any_stopped() const;
    bool all_stopped() const;
    bool fork_possible() const;
    void check_end() const;
    void run_until(Time end);
    Time sometime() { return context_.random.between(0, context_.options.active); }

    Context context_;
    CentralNode central_;
    RemoteNode remote_;
    std::optional<RemoteNode> clone_;
    Number cloned_at_ = 0;
    std::uint64_t events_ = 0;
};

World::World(Random random, bool trace)
    : context_([&] { return draw_options(random); }(), random, trace),
      central_(context_),
      remote_(context_, 0, first_store(context_.options, context_.random)) {
    context_.central = &central_;
    context_.remotes = {&remote_};
}

RemoteStore World::first_store(const Options& options, Random& random) {
    RemoteStore store;
    store.id = random.identity();
    if (options.start > 0) {
        std::vector<Change> before(options.start);
        for (Change& change : before) change.token = random.next(), change.size = 30;
        before.back().end = true;
        store.history.append(before, store.id, random);
    }
    store.position.start = store.position.confirmed = store.position.sent = options.start;
    store.position.start_identity = store.history.identity(options.start, store.id);
    return store;
}

std::vector<Change> World::transaction(const Options& options, Random& random) {
    const bool forks = options.fork != Options::Fork::none;
    const std::int64_t most = random.chance(forks ? 0.4 : 0.1) ? 30 : 5;
    std::vector<Change> changes(static_cast<std::size_t>(random.between(1, most)));
    for (Change& change : changes) {
        if (random.chance(options.skip)) {
            change = skipped();
            continue;
        }
        change.token = random.next();
        change.size = static_cast<std::uint32_t>(random.chance(0.1) ? random.between(200, 1500)
                                                                    : random.between(25, 120));
        change.conflict = random.chance(options.conflict);
        if (random.chance(options.unknown_table))
            change.description = static_cast<std::uint64_t>(random.between(1, 5));
    }
    changes.back().end = true;
    return changes;
}

void World::plan_work(RemoteNode& remote, std::size_t transactions, Time from) {
    for (std::size_t i = 0; i < transactions; ++i)
        context_.clock.at(std::max(from, sometime()),
                          [this, &remote] { remote.commit(transaction(context_.options, context_.random)); });
}

void World::plan_administrator() {
    for (std::size_t i = 0; i < context_.options.blocks; ++i) {
        context_.clock.at(sometime(), [this] {
            remote_.block(remote_.store().history.last() +
                          static_cast<Number>(context_.random.between(0, 4)));
        });
        context_.clock.at(sometime(), [this] { remote_.unblock_all(); });
    }
    for (std::size_t i = 0; i < context_.options.pauses; ++i) {
        context_.clock.at(sometime(), [this] { remote_.pause(context_.random.chance(0.5)); });
        context_.clock.at(sometime(), [this] { central_.pause(context_.random.chance(0.5)); });
    }
    if (context_.options.purge)
        for (int i = 0; i < 5; ++i) context_.clock.at(sometime(), [this] { remote_.purge(); });
    resolve_now_and_then();
}

void World::resolve_now_and_then() {
    context_.clock.after(context_.random.between(100 * millisecond, second), [this] {
        central_.resolve();
        resolve_now_and_then();
    });
}

void World::plan_fork() {
    const Time first = sometime();
    const bool soon = context_.random.chance(0.6);
    const Time left = context_.options.active - first;
    const Time second_moment =
        first + context_.random.between(0, soon ? std::min<Time>(left, 500 * millisecond) : left);
    switch (context_.options.fork) {
        case Options::Fork::none:
            return;
        case Options::Fork::restore_remote:
            context_.clock.at(first, [this, second_moment] {
                context_.clock.at(second_moment, [this, copy = remote_.store()] { restore_remote(copy); });
            });
            return;
        case Options::Fork::restore_central:
            context_.clock.at(first, [this, second_moment] {
                context_.clock.at(second_moment, [this, copy = central_.store()] { restore_central(copy); });
            });
            return;
        case Options::Fork::clone:
            context_.clock.at(first, [this] { clone_remote(); });
            return;
    }
}

void World::restore_remote(const RemoteStore& copy) {
    context_.other_histories.push_back(remote_.store().history);
    if (context_.departed > copy.history.last()) context_.fork = true;
    remote_.restore(copy);
}

void World::restore_central(const CentralStore& copy) {
    if (context_.confirmed > std::max(copy.state.written, context_.options.start)) context_.fork = true;
    central_.restore(copy);
}

void World::clone_remote() {
    context_.trace("A'", "is a clone of A from now on");
    cloned_at_ = remote_.store().history.last();
    clone_.emplace(context_, 1, remote_.store());
    context_.remotes.push_back(&*clone_);
    if (context_.random.chance(0.7))
        plan_work(*clone_, context_.options.transactions / 3, context_.clock.now());
}

void World::end_faults() {
    context_.trace("", "faults end");
    context_.faults = false;
    context_.channel.end_faults();
    for (RemoteNode* remote : context_.remotes) {
        remote->unblock_all();
        remote->pause(false);
    }
    central_.pause(false);
}

bool World::identical() const {
    const CentralStore& central = central_.store();
    if (!central.state.started || !central_.knows_identical()) return false;
    for (const RemoteNode* remote : context_.remotes) {
        const RemoteStore& store = remote->store();
        const Number last = store.history.last();
        if (!remote->process() || !store.committed.empty() ||
            remote->process()->position().confirmed != last || central.state.written != last ||
            central.hash != store.history.hash(last))
            return false;
    }
    return true;
}

bool World::any_stopped() const {
    for (const RemoteNode* remote : context_.remotes)
        if (remote->stopped() != Stop::none) return true;
    return central_.stopped() != Stop::none;
}

bool World::all_stopped() const {
    for (const RemoteNode* remote : context_.remotes)
        if (remote->stopped() == Stop::none) return false;
    // One that was restored to the time before its start has nothing to stop.
    return central_.stopped() != Stop::none || !central_.store().state.started;
}

bool World::fork_possible() const {
    if (context_.fork) return true;
    if (!clone_) return false;
    return std::max(remote_.store().history.last(), clone_->store().history.last()) > cloned_at_;
}

void World::check_end() const {
    if (any_stopped()) {
        if (!fork_possible()) throw Violation("a link was stopped without a fork");
        if (!all_stopped()) throw Violation("a link was stopped on one side only");
        return;
    }
    if (!identical()) {
        const RemoteStore& store = remote_.store();
        throw Violation("not identical in time: M " + std::to_string(store.history.last()) + ", S_a " +
                        std::to_string(store.position.confirmed) + ", S_b " +
                        std::to_string(central_.store().state.written) +
                        (central_.knows_identical() ? "" : ", B does not know it"));
    }
    if (!context_.options.faultless()) return;
    for (const auto& [n, times] : remote_.departures())
        if (times != 1) throw Violation("record " + std::to_string(n) + " was sent twice without need");
}

void World::run_until(Time end) {
    while (context_.clock.step(end))
        if (++events_ > most_events) throw Violation("endless activity");
}

void World::run() {
    context_.trace("", to_string(context_.options));
    plan_work(remote_, context_.options.transactions, 0);
    plan_administrator();
    plan_fork();
    const Time active_end = context_.clock.now() + context_.options.active;
    run_until(active_end);
    end_faults();
    for (Time waited = 0; waited < patience; waited += 250 * millisecond) {
        run_until(context_.clock.now() + 250 * millisecond);
        if (any_stopped() ? all_stopped() : identical()) break;
    }
    check_end();
}

}  // namespace

void run_schedule(std::uint64_t seed, bool trace) {
    World world(seed, trace);
    world.run();
}

}  // namespace onerepl::sim
