// Faults of the channel. Bodies travel as they are, or encoded and authenticated in the schedules that say
// so.
#include "channel.h"

namespace onerepl::sim {

namespace {
const Parties parties{.remote = {0xa}, .central = {0xb}};
const Bytes secret(32, 0x5c);
constexpr std::size_t max_frames = 1 << 24;

void flip_a_bit(Bytes& bytes, Random& random) {
    if (bytes.empty()) return;
    const auto at = static_cast<std::size_t>(random.between(0, static_cast<std::int64_t>(bytes.size()) - 1));
    bytes[at] = static_cast<std::uint8_t>(bytes[at] ^ 1 << random.between(0, 7));
}
}  // namespace

Time Channel::delay() {
    if (happens(options_.long_delay)) return random_.between(0, 3 * options_.reply_timeout);
    return random_.between(100, faults_ ? options_.most_delay : 20 * millisecond);
}

void Channel::send(std::shared_ptr<Packet> packet, Deliver deliver) {
    if (options_.encoded) encode(*packet);
    if (!options_.encoded && options_.damage_frame > 0)
        std::erase_if(packet->messages, [&](const Message&) { return happens(options_.damage_frame / 4); });
    int copies = happens(options_.lose) ? 0 : 1;
    if (happens(options_.duplicate)) copies += static_cast<int>(random_.between(1, 2));
    for (int copy = 0; copy < copies; ++copy) {
        std::shared_ptr<const Packet> travelling = packet;
        const bool damaged = happens(options_.damage_body);
        if (damaged && options_.encoded) {
            auto changed = std::make_shared<Packet>(*packet);
            flip_a_bit(changed->encoded, random_);
            travelling = changed;
        }
        clock_.after(delay(), [this, travelling, damaged, deliver] {
            if (damaged && !options_.encoded) return deliver(std::nullopt);
            deliver(open(travelling));
        });
    }
}

void Channel::encode(Packet& packet) {
    if (packet.refused) return;
    Body body;
    body.parties = parties;
    body.header = packet.header;
    for (const Message& message : packet.messages) encode_frame(parties, message, body.frames);
    if (happens(options_.damage_frame)) flip_a_bit(body.frames, random_);
    packet.encoded = encode_body(body, secret, {.compression = 0});
}

std::optional<Arrival> Channel::open(std::shared_ptr<const Packet> packet) {
    if (!packet->encoded.empty()) return decode(packet);
    return Arrival{packet->header, packet->messages, packet, nullptr};
}

std::optional<Arrival> Channel::decode(std::shared_ptr<const Packet> packet) {
    auto decoded = decode_body(packet->encoded, secret, max_frames);
    if (!std::holds_alternative<Body>(decoded)) return std::nullopt;
    auto body = std::make_shared<const Body>(std::get<Body>(std::move(decoded)));
    Arrival arrival{body->header, {}, packet, body};
    for (FrameReader reader(parties, body->frames); !reader.at_end();) {
        FrameResult result = reader.next();
        if (auto* message = std::get_if<Message>(&result.value))
            arrival.messages.push_back(std::move(*message));
    }
    return arrival;
}

}  // namespace onerepl::sim
