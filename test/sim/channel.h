// The channel between A and B: it loses, damages, repeats, delays and reorders, and promises nothing.
#pragma once

#include "clock.h"
#include "schedule.h"

#include "core/body.h"

#include <deque>
#include <memory>

namespace onerepl::sim {

/// One body on its way, either way.
struct Packet {
    std::size_t remote = 0;  // whose: index of the remote
    std::uint64_t body = 0;  // which body of A it is or answers (stands for the nonces)
    bool refused = false;    // B's answer is an HTTP error
    std::variant<RemoteHeader, CentralHeader> header;
    std::vector<Message> messages;
    std::deque<Bytes> storage;  // of what `messages` point to
    Bytes encoded;              // if not empty, this is what travels

    // What was true when it was formed, for the checks.
    Number written = 0;
    std::uint64_t written_hash = 0;
};

/// What the receiver of a packet sees of it.
struct Arrival {
    std::variant<RemoteHeader, CentralHeader> header;
    std::vector<Message> messages;
    std::shared_ptr<const Packet> packet;
    std::shared_ptr<const Body> body;  // storage of decoded messages
};

using Deliver = std::function<void(std::optional<Arrival>)>;

class Channel {
  public:
    Channel(Clock& clock, const Options& options, Random& random)
        : clock_(clock), options_(options), random_(random) {}

    /// Hands the packet over once, several times or never; nullopt: something arrived that is not authentic.
    void send(std::shared_ptr<Packet> packet, Deliver deliver);
    void end_faults() { faults_ = false; }

  private:
    bool happens(double probability) { return faults_ && random_.chance(probability); }
    Time delay();
    void encode(Packet& packet);
    std::optional<Arrival> open(std::shared_ptr<const Packet> packet);
    std::optional<Arrival> decode(std::shared_ptr<const Packet> packet);

    Clock& clock_;
    const Options& options_;
    Random& random_;
    bool faults_ = true;
};

}  // namespace onerepl::sim
