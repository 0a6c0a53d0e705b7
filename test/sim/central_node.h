// B in the simulation: its durable tables, and receivers that die and come back.
#pragma once

#include "world.h"

#include "core/central.h"

namespace onerepl::sim {

/// A row of B's queue.
struct QueueRow {
    Spool meta;
    std::map<Number, std::shared_ptr<const Bytes>> records;  // of a part: that part
};

/// What is on B's disk.
struct CentralStore {
    CentralState state;  // without the queue
    std::vector<QueueRow> queue;
    std::set<std::uint64_t> descriptions;
    std::set<Number> resolved;
    std::uint64_t hash = 0;  // of all that is written
};

using Answer = std::function<void(std::uint64_t body, std::optional<Arrival> answer)>;

class CentralNode {
  public:
    explicit CentralNode(Context& context);

    void receive(std::optional<Arrival> arrival, const Answer& answer);

    const CentralStore& store() const { return store_; }
    bool knows_identical() const { return waits_.reported_identical; }
    Number most_written() const { return most_written_; }
    Stop stopped() const { return store_.state.stop; }

    // The administrator.
    void pause(bool paused);
    void resolve();
    void restore(const CentralStore& store);
    void crash();

  private:
    using Taken = std::map<std::pair<Number, std::uint32_t>, std::shared_ptr<const Bytes>>;
    /// One turn with the link: what the commit will change.
    struct Turn {
        Central central;
        CentralStore next;
        Taken taken;
        std::set<Number> replaced;
    };

    CentralState load() const;
    Turn begin();
    void offer_all(Turn& turn, const Arrival& arrival);
    void apply(Turn& turn);
    /// Writes transactions of `numbers`; false when something stops it.
    bool write(Turn& turn, Range numbers);
    std::shared_ptr<const Bytes> record(const Turn& turn, Number n, Number& first) const;
    std::shared_ptr<const Bytes> assembled(const Turn& turn, Number n) const;
    void spool(Turn& turn, std::vector<QueueRow>& queue);
    void commit(Turn& turn);
    void check_written(const CentralStore& next) const;
    void check_reply(const Reply& reply) const;
    void check();
    void receive_side_by_side(const Arrival& arrival, const Answer& answer);
    void send(std::shared_ptr<Packet> packet, const Packet& request, const Answer& answer);
    void refuse(const Packet& request, const Answer& answer);
    void maybe_crash();
    void tick();

    Context& context_;
    TraceJournal journal_;
    CentralStore store_;
    CentralWaits waits_{};
    bool up_ = true;
    std::uint64_t epoch_ = 0;
    Number most_written_ = 0;
};

}  // namespace onerepl::sim
