// SQL function that says what keeps a link of this database from working at all: what the settings, the
// shared memory and the library itself know. The status and the set-up calls ask it.
#include "functions/arguments.h"
#include "pg/settings.h"
#include "shared/memory.h"
#include "worker/worker.h"

#include <algorithm>
#include <optional>

extern "C" {
#include "catalog/pg_type.h"
#include "commands/dbcommands.h"
#include "utils/array.h"
#include "utils/builtins.h"

PG_FUNCTION_INFO_V1(onerepl_obstacle);
}

namespace onerepl {

namespace {

struct Obstacle {
    std::string what;
    std::string cure;
};

bool is_listed(const std::string& database) {
    const std::vector<std::string> listed = worker::listed_databases();
    return std::find(listed.begin(), listed.end(), database) != listed.end();
}

std::string own_database() {
    return pg::call([] { return get_database_name(MyDatabaseId); });
}

/// What only a central needs.
std::optional<Obstacle> port_obstacle(const shared::ServiceView& service) {
    const std::string listen = settings::listen != nullptr ? settings::listen : "";
    if (listen.empty())
        return Obstacle{"onerepl.listen is not set",
                        "Set it in postgresql.conf, as in onerepl.listen = '0.0.0.0:7075', and reload."};
    if (service.address_refused)
        return Obstacle{
            "another database of this server listens at " + listen,
            "Give each database an address of its own: ALTER DATABASE ... SET onerepl.listen = '...'."};
    if (service.listen_error[0] != '\0')
        return Obstacle{service.listen_error,
                        "Look which program uses the port, or change onerepl.listen and reload."};
    return std::nullopt;
}

std::optional<Obstacle> find_obstacle(bool central, const std::string& extension_version) {
    if (!shared::available())
        return Obstacle{
            "the library is not preloaded",
            "Add onerepl to shared_preload_libraries in postgresql.conf, and restart the server."};
    if (extension_version != ONEREPL_RELEASE)
        return Obstacle{
            "the extension is of version " + extension_version + ", the library of " ONEREPL_RELEASE,
            "Call ALTER EXTENSION onerepl UPDATE; restart the server if it was not since the installation."};
    if (const std::string database = own_database(); !is_listed(database))
        return Obstacle{"database \"" + database + "\" is not in onerepl.databases",
                        "Add it to onerepl.databases in postgresql.conf, and reload."};
    const shared::ServiceView service = shared::view_service();
    if (central)
        if (auto port = port_obstacle(service)) return port;
    if (service.shortage && !(central ? service.receiver_runs : service.sender_runs))
        return Obstacle{"no background worker is free",
                        "Raise max_worker_processes, and restart the server."};
    return std::nullopt;
}

Datum as_array(const Obstacle& obstacle) {
    return pg::call([&] {
        Datum texts[] = {CStringGetTextDatum(obstacle.what.c_str()),
                         CStringGetTextDatum(obstacle.cure.c_str())};
        return PointerGetDatum(construct_array(texts, 2, TEXTOID, -1, false, TYPALIGN_INT));
    });
}

}  // namespace

}  // namespace onerepl

PGDLLEXPORT Datum onerepl_obstacle(PG_FUNCTION_ARGS) {
    using namespace onerepl;
    const Datum found = pg::entry([&] {
        const auto obstacle = find_obstacle(PG_GETARG_BOOL(0), text_argument(fcinfo, 1));
        return obstacle ? as_array(*obstacle) : Datum{0};
    });
    if (found == 0) PG_RETURN_NULL();
    return found;
}
