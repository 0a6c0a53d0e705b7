// Reading and changing of onerepl.link and its like.
#include "worker/link.h"

#include "pg/settings.h"
#include "pg/spi.h"

#include <algorithm>

namespace onerepl {

namespace {

Identity identity_of(const Bytes& bytes) {
    Identity identity{};
    if (bytes.size() == identity.size()) std::copy(bytes.begin(), bytes.end(), identity.begin());
    return identity;
}

Time milliseconds_or(const pg::Row& row, int column, int setting) {
    return row.is_null(column) ? setting * millisecond : static_cast<Time>(row.float8(column) * 1e6);
}

}  // namespace

std::vector<Link> load_links(Role role) {
    std::vector<Link> links;
    pg::query(
        "SELECT id, name, coalesce(url, ''), signs_with, peer, paused, start, start_identity, stop::int4,"
        "       extract(epoch FROM reply_timeout)::float8, extract(epoch FROM state_query_interval)::float8,"
        "       extract(epoch FROM send_interval)::float8, database, challenge, checks_with"
        "  FROM onerepl.link JOIN onerepl.link_key ON link = id WHERE role = $1 ORDER BY id",
        {role == Role::remote ? "remote" : "central"}, [&](const pg::Row& row) {
            Link link;
            link.id = row.int4(0);
            link.name = row.text(1);
            link.url = row.text(2);
            link.signs_with = row.bytea(3);
            if (!row.is_null(4)) link.peer = row.uuid(4);
            link.paused = row.boolean(5);
            if (!row.is_null(6)) link.start = row.number(6);
            link.start_identity = identity_of(row.bytea(7));
            link.stop = static_cast<Stop>(row.int4(8));
            link.reply_timeout = milliseconds_or(row, 9, settings::reply_timeout);
            link.state_query_interval = milliseconds_or(row, 10, settings::state_query_interval);
            link.send_interval = milliseconds_or(row, 11, settings::send_interval);
            link.database = row.uuid(12);
            link.challenge = row.uuid(13);
            link.checks_with = row.bytea(14);
            links.push_back(std::move(link));
        });
    return links;
}

Uuid load_database_id() {
    Uuid id{};
    pg::query("SELECT id FROM onerepl.database", {}, [&](const pg::Row& row) { id = row.uuid(0); });
    return id;
}

void bind_peer(const Link& link, const Uuid& peer) {
    pg::execute("UPDATE onerepl.link SET peer = $2 WHERE id = $1 AND peer IS NULL AND challenge = $3",
                {link.id, pg::Param::uuid(peer), pg::Param::uuid(link.challenge)});
}

void store_start(const Link& link) {
    pg::execute(
        "UPDATE onerepl.link SET peer = $2, start = $3, start_identity = $4 WHERE id = $1 AND challenge = $5",
        {link.id, pg::Param::uuid(*link.peer), *link.start, ByteView(link.start_identity),
         pg::Param::uuid(link.challenge)});
}

bool is_this_start(const Link& link) {
    return pg::execute("SELECT FROM onerepl.link WHERE id = $1 AND challenge = $2 FOR SHARE",
                       {link.id, pg::Param::uuid(link.challenge)}) > 0;
}

void store_stop(const Link& link, Stop stop, const std::string& detail) {
    pg::execute(
        "UPDATE onerepl.link SET stop = $2::int4, stop_detail = nullif($4, '') WHERE id = $1 AND challenge = "
        "$3",
        {link.id, static_cast<std::int32_t>(stop), pg::Param::uuid(link.challenge), detail});
}

void store_contact(int link, const Contact& contact) {
    const pg::Param error = contact.error.empty() ? pg::Param::null(25) : pg::Param(contact.error);
    const pg::Param number = contact.peer_number ? pg::Param(*contact.peer_number) : pg::Param::null(20);
    const pg::Param own_error =
        contact.own_error.empty() ? pg::Param::null(25) : pg::Param(contact.own_error);
    const pg::Param kind = contact.error_kind.empty() ? pg::Param::null(25) : pg::Param(contact.error_kind);
    const pg::Param sqlstate =
        contact.peer_sqlstate.empty() ? pg::Param::null(25) : pg::Param(contact.peer_sqlstate);
    const pg::Param oldest = contact.oldest ? pg::Param(*contact.oldest) : pg::Param::null(20);
    pg::execute(
        "INSERT INTO onerepl.contact (link, last_contact, last_error, last_error_at, peer_number, peer_state,"
        "                             own_error, oldest, oldest_since, error_kind, peer_sqlstate)"
        " VALUES ($1, CASE WHEN $2 IS NULL THEN clock_timestamp() END, $2, CASE WHEN $2 IS NOT NULL THEN "
        "clock_timestamp() END,"
        "         $3, $4, $5, $6,"
        "         CASE WHEN $6 IS NOT NULL THEN clock_timestamp() - pg_catalog.make_interval(secs => $7) "
        "END, $8, $9)"
        " ON CONFLICT (link) DO UPDATE SET last_contact = coalesce(excluded.last_contact, "
        "contact.last_contact),"
        "    last_error = excluded.last_error,"
        "    last_error_at = coalesce(excluded.last_error_at, contact.last_error_at),"
        "    peer_number = coalesce(excluded.peer_number, contact.peer_number),"
        "    peer_state = coalesce(excluded.peer_state, contact.peer_state),"
        "    own_error = excluded.own_error, oldest = excluded.oldest, oldest_since = excluded.oldest_since,"
        "    error_kind = excluded.error_kind, peer_sqlstate = excluded.peer_sqlstate",
        {link, error, number, contact.peer_state, own_error, oldest,
         static_cast<double>(contact.age) / second, kind, sqlstate});
}

void store_put_off(int link, const std::string& reason) {
    pg::execute(
        "INSERT INTO onerepl.contact (link, put_off) VALUES ($1, nullif($2, ''))"
        " ON CONFLICT (link) DO UPDATE SET put_off = excluded.put_off",
        {link, reason});
}

}  // namespace onerepl
