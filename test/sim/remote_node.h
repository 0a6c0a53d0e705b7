// A in the simulation: its durable tables, and the sender that dies and comes back.
#pragma once

#include "world.h"

#include "core/remote.h"

namespace onerepl::sim {

/// What is on A's disk.
struct RemoteStore {
    Uuid id{};
    History history;
    RemotePosition position;
    std::set<Number> blocked;
    bool paused = false;
    std::vector<std::vector<Change>> committed;  // not numbered yet
    Number purged = 0;
};

/// Builds the body that `outgoing` asks for, as the sender does.
struct Formed {
    std::shared_ptr<Packet> packet;
    Carried carried;
};
Formed form(const RemoteStore& store, const Outgoing& outgoing, const RemoteHeader& header,
            std::uint64_t part_bytes);

class RemoteNode : private NumberedHistory {
  public:
    RemoteNode(Context& context, std::size_t index, RemoteStore store);

    const RemoteStore& store() const { return store_; }
    const Remote* process() const { return remote_ ? &*remote_ : nullptr; }
    Stop stopped() const { return remote_ ? remote_->stopped() : store_.position.stop; }

    // The application and the administrator.
    void commit(std::vector<Change> transaction);
    void block(Number n);
    void unblock_all();
    void pause(bool paused);
    void purge();
    /// Crash, and go on from another disk.
    void restore(const RemoteStore& store);
    void crash();
    /// How often each number left A whole (or its first part did).
    const std::map<Number, int>& departures() const { return departures_; }

  private:
    std::optional<Identity> identity(Number n) override;
    Number transaction_end(Number n) override { return store_.history.transaction_end(n); }

    void start();
    void wake_after(Time delay);
    void turn();
    void number();
    void persist();
    void maybe_crash();
    void send(const Outgoing& outgoing);
    void arrived(std::uint64_t epoch, std::uint64_t body, std::optional<Arrival> arrival);
    void timed_out(std::uint64_t epoch, std::uint64_t body);
    void guarded(const std::function<void()>& work);
    void check_states(bool after_block);
    void check_fork(const Packet& answer);
    void check_outgoing(const Outgoing& outgoing);
    void check_not_on_its_way(const Carried& carried) const;
    void note_departure(const Formed& formed, const Outgoing& outgoing, std::uint64_t body);
    void note_delivery(const Carried& carried, const CentralHeader& header);

    Context& context_;
    std::size_t index_;
    std::string name_;
    TraceJournal journal_;
    RemoteStore store_;
    std::optional<RemotePosition> unflushed_;
    std::optional<Remote> remote_;
    std::uint64_t epoch_ = 0;  // of the process: answers to an earlier one are nobody's
    std::uint64_t bodies_ = 0;
    std::map<std::uint64_t, Carried> waiting_;  // bodies without an answer
    RangeSet delivered_;                        // what authentic answers told to have arrived
    Time next_wake_ = 0;
    std::map<Number, RecordState> states_;
    std::map<Number, int> departures_;
};

}  // namespace onerepl::sim
