// Links as the workers read them from onerepl.link.
#pragma once

#include "core/body.h"
#include "pg/error_boundary.h"

#include <optional>
#include <string>
#include <vector>

namespace onerepl {

struct Link {
    int id = 0;
    std::string name;
    std::string url;    // role remote only
    Bytes signs_with;   // keys of HMAC: of our bodies,
    Bytes checks_with;  // and of the peer's
    std::optional<Uuid> peer;
    bool paused = false;
    std::optional<Number> start;  // N0
    Identity start_identity{};
    Stop stop = Stop::none;
    Uuid database{};  // that the link was made in
    /// New with every start. Role central: names the answers until the link has started (P10).
    Nonce challenge{};
    Time reply_timeout = 0;         // Tr
    Time state_query_interval = 0;  // Ts
    Time send_interval = 0;         // Ti

    bool operator==(const Link&) const = default;
};

/// What this database is on a link.
enum class Role : std::uint8_t { remote, central };

/// All links on which this database has `role` and that have a secret, by id; settings fill in what the link
/// does not override. In a transaction.
std::vector<Link> load_links(Role role);

/// This database's identifier. In a transaction.
Uuid load_database_id();

/// The remote binds the link to the central's identifier at the first authentic contact, unless it was
/// started anew since it was loaded. In a transaction.
void bind_peer(const Link& link, const Uuid& peer);

/// The central's: peer, start and its identity, as `link` has them. In the transaction of the first position
/// (P20), under the link's lock.
void store_start(const Link& link);

/// Whether this is still the link's start; if so it stays it while the transaction lives.
bool is_this_start(const Link& link);

/// Stops the link for good (P9), unless it was started anew since it was loaded. `detail`: what was seen, for
/// the status. In a transaction.
void store_stop(const Link& link, Stop stop, const std::string& detail);

/// HTTP field of a central's answer that takes nothing: the SQLSTATE of what keeps it from that.
constexpr const char* sqlstate_field = "Onerepl-SQLSTATE";

/// Notes for the status when the peer was last heard of and what it said. In a transaction.
struct Contact {
    std::string error;  // why there is none; empty: the peer was heard
    std::optional<Number> peer_number;
    std::string peer_state;
    /// Why there is none, for the status: "silent" (the connection holds, and no answer comes), "refused"
    /// (the peer does not know this link or this secret); empty: anything else, or no error.
    std::string error_kind{};
    std::string peer_sqlstate{};  // the peer takes nothing because of this; empty: it does
    std::string own_error{};      // what fails here, whatever the peer says; empty: nothing
    /// The central: the remote's header `oldest`, and how long ago it got its number.
    std::optional<Number> oldest{};
    Time age = 0;
};
void store_contact(int link, const Contact& contact);

/// The central cannot write just now for this transient error; empty: it can again. In a transaction.
void store_put_off(int link, const std::string& reason);

}  // namespace onerepl
