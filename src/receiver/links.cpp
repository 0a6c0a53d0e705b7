// Finding the link that a body belongs to.
#include "pg/pg.h"

#include "receiver/links.h"

extern "C" {
#include "storage/ipc.h"
}

#include "pg/error_boundary.h"
#include "pg/settings.h"

#include <algorithm>

namespace onerepl::receiver {

namespace {

std::size_t max_frames() {
    return static_cast<std::size_t>(settings::max_body_size) * 1024;
}

/// The process's only one, while it lives.
Opener* living_opener = nullptr;

void stop_opener(int, Datum) {
    if (living_opener != nullptr) living_opener->stop();
}

}  // namespace

void Links::load() {
    const Uuid own_id = load_database_id();
    // The extension was created anew: these are other links.
    if (own_id != own_id_) links_.clear();
    own_id_ = own_id;
    std::vector<Link> links = load_links(Role::central);
    std::erase_if(links_, [&](const auto& known) {
        return std::none_of(links.begin(), links.end(),
                            [&](const Link& link) { return link.id == known.first; });
    });
    for (Link& link : links) {
        auto& known = links_[link.id];
        if (known)
            known->update(link);
        else
            known = std::make_unique<LinkReceiver>(std::move(link), own_id_);
    }
}

Links::Links() {
    living_opener = &opener_;
    pg::call([] { on_proc_exit(stop_opener, 0); });
}

Links::~Links() {
    living_opener = nullptr;
}

std::uint64_t Links::expect(const std::shared_ptr<SealedBody>& body, const std::string& peer) {
    const std::string host = peer.substr(0, peer.rfind(':'));
    const auto address = read_address(body->bytes());
    const auto* parsed = std::get_if<BodyAddress>(&address);
    const LinkReceiver* link = parsed ? bound_to(parsed->parties.remote) : nullptr;
    if (!link) return order_.next({}, {});
    const std::uint64_t round = order_.next(parsed->parties.remote, host);
    opener_.add(body, round, link->link().checks_with, max_frames());
    return round;
}

std::variant<Links::Found, NoLink> Links::find(SealedBody& body, std::uint64_t round) {
    order_.begin(round);
    const auto address = read_address(body.bytes());
    if (const auto* error = std::get_if<BodyError>(&address)) return refuse(*error);
    const auto& parsed = std::get<BodyAddress>(address);
    if (parsed.direction != 0) return NoLink{400, "the body is not one of a remote"};
    LinkReceiver* link = bound_to(parsed.parties.remote);
    if (!link) return find_unbound(body.bytes());
    Opened opened = opener_.take(body, link->link().checks_with, max_frames());
    if (const auto* error = std::get_if<BodyError>(&opened)) return refuse(*error);
    return Found{link, std::move(std::get<OpenedBody>(opened))};
}

Time Links::deaf_until() const {
    Time until = 0;
    for (const auto& [id, link] : links_) until = std::max(until, link->deaf_until());
    return until;
}

LinkReceiver* Links::bound_to(const Uuid& remote) {
    for (auto& [id, link] : links_)
        if (link->link().peer == remote) return link.get();
    return nullptr;
}

/// The first link whose secret fits and that waits for its remote; or one that has another remote, which is
/// then wrong_peer: whoever knows the secret, but has another identifier, is a database that was created anew
/// or restored (P9).
std::variant<Links::Found, NoLink> Links::find_unbound(ByteView bytes) {
    LinkReceiver* other = nullptr;
    OpenedBody body;
    for (auto& [id, link] : links_) {
        Opened opened = open_body(bytes, link->link().checks_with, max_frames());
        if (const auto* error = std::get_if<BodyError>(&opened)) {
            if (*error == BodyError::signature) continue;
            return refuse(*error);
        }
        body = std::move(std::get<OpenedBody>(opened));
        if (!link->link().peer) return Found{link.get(), std::move(body)};
        other = link.get();
    }
    if (!other) return NoLink{404, "the remote is not known here, or its secret is another one"};
    return Found{other, std::move(body)};
}

NoLink Links::refuse(BodyError error) const {
    const std::string reason = describe(error);
    if (error == BodyError::signature) return {401, reason};
    if (error == BodyError::version) return {505, reason};
    if (error == BodyError::too_large) return {413, reason};
    return {400, reason};
}

}  // namespace onerepl::receiver
