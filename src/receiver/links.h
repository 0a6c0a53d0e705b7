// The links on which this database is the central, as one receiver knows them, and which of them a body
// belongs to.
#pragma once

#include "receiver/link_receiver.h"

#include <map>
#include <memory>
#include <variant>

namespace onerepl::receiver {

/// Why a body is not for any link here.
struct NoLink {
    int status = 0;
    std::string reason;
};

class Links {
  public:
    /// Reads onerepl.link anew. In a transaction.
    void load();

    struct Found {
        LinkReceiver* link = nullptr;
        Body body;
    };
    /// Finds the link by the remote's identifier, or, for a remote that is heard of for the first time, by
    /// the secret that its signature fits (P10), and decodes the body. Outside of a transaction; binds a new
    /// remote to its link.
    std::variant<Found, NoLink> find(ByteView bytes);

    template <class Each>
    void each(Each&& work) {
        for (auto& [id, link] : links_) work(*link);
    }

  private:
    LinkReceiver* bound_to(const Uuid& remote);
    std::variant<Found, NoLink> find_unbound(ByteView bytes, const BodyAddress& address);
    NoLink refuse(BodyError error) const;
    bool adopt(LinkReceiver& link, const Uuid& remote);

    Uuid own_id_{};
    std::map<int, std::unique_ptr<LinkReceiver>> links_;
};

}  // namespace onerepl::receiver
