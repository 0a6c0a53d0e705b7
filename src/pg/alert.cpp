// Starts onerepl.alert_command. Not by system(): the command must not inherit sockets and files of a worker,
// and nothing of the alert may reach the shell as code.
#include "pg/pg.h"

#include "pg/alert.h"
#include "pg/error_boundary.h"
#include "pg/settings.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <vector>

namespace onerepl::pg {

namespace {

constexpr std::size_t most_alerts = 20;
constexpr std::size_t longest_value = 32768;  // an environment variable of Linux may have 128 kB

std::vector<Alert> pending;
bool registered = false;

/// How the command's process begins: no open files of ours, no blocked or ignored signals, its own session.
class SpawnOptions {
  public:
    SpawnOptions() {
        posix_spawn_file_actions_init(&files);
        posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
        posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
        posix_spawn_file_actions_adddup2(&files, STDOUT_FILENO, STDERR_FILENO);
#if defined(__GLIBC__) && (__GLIBC__ > 2 || __GLIBC_MINOR__ >= 34)
        posix_spawn_file_actions_addclosefrom_np(&files, STDERR_FILENO + 1);
#endif
        sigset_t none, all;
        sigemptyset(&none);
        sigfillset(&all);
        posix_spawnattr_init(&attributes);
        posix_spawnattr_setsigmask(&attributes, &none);
        posix_spawnattr_setsigdefault(&attributes, &all);
        posix_spawnattr_setflags(&attributes,
                                 POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSID);
    }
    ~SpawnOptions() {
        posix_spawn_file_actions_destroy(&files);
        posix_spawnattr_destroy(&attributes);
    }
    SpawnOptions(const SpawnOptions&) = delete;
    SpawnOptions& operator=(const SpawnOptions&) = delete;

    posix_spawn_file_actions_t files;
    posix_spawnattr_t attributes;
};

std::array<std::string, 4> variables_of(const Alert& alert) {
    return {"ONEREPL_LEVEL=" + alert.level, "ONEREPL_LINK=" + alert.link,
            "ONEREPL_MESSAGE=" + alert.message.substr(0, longest_value),
            "ONEREPL_HINT=" + alert.hint.substr(0, longest_value)};
}

void run(const Alert& alert, std::string command) {
    std::array<std::string, 4> variables = variables_of(alert);
    std::vector<char*> environment;
    environment.reserve(variables.size() + 1);
    for (std::string& variable : variables) environment.push_back(variable.data());
    for (char** other = environ; other != nullptr && *other != nullptr; other++)
        environment.push_back(*other);
    environment.push_back(nullptr);

    // The outer shell ends at once, so that the command is nobody's child of ours and leaves no zombie.
    std::string shell = "/bin/sh", option = "-c", script = "/bin/sh -c \"$1\" &", name = "onerepl";
    char* arguments[] = {shell.data(), option.data(), script.data(), name.data(), command.data(), nullptr};
    SpawnOptions options;
    pid_t child = 0;
    if (posix_spawn(&child, shell.c_str(), &options.files, &options.attributes, arguments,
                    environment.data()) != 0)
        return;
    while (waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
    }
}

void run_all() noexcept {
    try {
        std::vector<Alert> alerts;
        alerts.swap(pending);
        for (const Alert& alert : alerts) run(alert, settings::alert_command);
    } catch (...) {
        // No memory for an alert: the journal and the server log have it.
    }
}

void at_end(XactEvent event, void*) {
    if (pending.empty()) return;
    if (event == XACT_EVENT_COMMIT || event == XACT_EVENT_PREPARE)
        run_all();
    else if (event == XACT_EVENT_ABORT)
        pending.clear();
}

}  // namespace

void alert_at_commit(Alert alert) {
    if (settings::alert_command == nullptr || *settings::alert_command == '\0' ||
        pending.size() >= most_alerts)
        return;
    if (!registered) call([] { RegisterXactCallback(at_end, nullptr); });
    registered = true;
    pending.push_back(std::move(alert));
}

}  // namespace onerepl::pg
