// The links on which this database is the central, as one receiver knows them, and which of them a body
// belongs to.
#pragma once

#include "receiver/fair_order.h"
#include "receiver/link_receiver.h"
#include "receiver/opener.h"

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
    /// Sees to it that the opener's thread ends before the process does. One for a process.
    Links();
    ~Links();
    Links(const Links&) = delete;
    Links& operator=(const Links&) = delete;
    /// Reads onerepl.link anew. In a transaction.
    void load();

    /// `body`, which came from `peer` ("address:port"), will be asked for by `find` when its turn comes, if
    /// its connection holds. Gives its round among the bodies that wait.
    std::uint64_t expect(const std::shared_ptr<SealedBody>& body, const std::string& peer);

    struct Found {
        LinkReceiver* link = nullptr;
        OpenedBody body;
    };
    /// Finds the link by the remote's identifier, or, for a remote that is heard of for the first time, by
    /// the secret that its signature fits (P10), and opens the body. Changes nothing: the
    /// link binds a new remote with its start (P20). `round`: as `expect` gave it.
    std::variant<Found, NoLink> find(SealedBody& body, std::uint64_t round);

    template <class Each>
    void each(Each&& work) {
        for (auto& [id, link] : links_) work(*link);
    }

    /// Until when a receiver that wrote has heard nobody, whichever link it belongs to; 0: never.
    Time deaf_until() const;

  private:
    LinkReceiver* bound_to(const Uuid& remote);
    std::variant<Found, NoLink> find_unbound(ByteView bytes);
    NoLink refuse(BodyError error) const;

    Uuid own_id_{};
    std::map<int, std::unique_ptr<LinkReceiver>> links_;
    FairOrder order_;
    Opener opener_;
};

}  // namespace onerepl::receiver
