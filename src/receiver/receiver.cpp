// A receiver: one of the processes that answer at a central's HTTP port, and write what comes.
#include "pg/pg.h"

#include "apply/session.h"
#include "http/server.h"
#include "pg/clock.h"
#include "pg/settings.h"
#include "pg/spi.h"
#include "pg/transaction.h"
#include "receiver/central_housekeeping.h"
#include "receiver/links.h"
#include "receiver/refusals.h"
#include "shared/memory.h"
#include "worker/worker.h"

#include <algorithm>
#include <memory>
#include <utility>

extern "C" PGDLLEXPORT void onerepl_receiver_main(Datum);

namespace onerepl::receiver {

namespace {

constexpr const char* path = "/onerepl/v1/messages";
constexpr const char* content_type = "application/vnd.onerepl";
constexpr Time longest_wait = 5 * second;
constexpr Time rest_after_failure = 1 * second;

class Receiver : public http::Handler {
  public:
    explicit Receiver(int index) : index_(index), waiter_(poller_.descriptor()) {}

    [[noreturn]] void run() {
        for (;;) {
            if (index_ >= settings::receivers) worker::finish();
            const Time now = pg::now();
            Time wait = longest_wait;
            if (now >= listen_at_) open_port();
            if (server_) worker::attempt([&] { server_->turn(now); });
            if (now >= check_at_) wait = check_and_rest();
            worker::attempt([&] { refusals_.flush(now); });
            if (index_ == 0) housekeeping_.turn(now);
            poller_.arm();
            waiter_.wait(std::min(wait, std::max<Time>(check_at_ - pg::now(), 0)));
            check_at_ = waiter_.woken() ? 0 : check_at_;
            poller_.poll();
        }
    }

  private:
    /// A port that is taken is tried again by and by, and told once.
    void open_port() {
        try {
            listen();
            told_.clear();
            shared::set_listen_error("");
        } catch (const std::exception& error) {
            listen_at_ = pg::now() + 5 * second;
            if (told_ == error.what()) return;
            told_ = error.what();
            shared::set_listen_error(error.what());
            pg::JournalBuffer journal;
            journal.write({Level::critical,
                           "P12",
                           "cannot listen at " + listening_ + ": " + told_,
                           "Check onerepl.listen, and which program uses the port.",
                           {}});
            worker::attempt([&] { pg::in_transaction([&] { journal.flush(); }); });
        }
    }

    /// Opens the port, and again when the setting has changed.
    void listen() {
        http::ServerConfig config;
        config.listen = settings::listen ? settings::listen : "";
        if (config.listen.empty()) worker::finish();
        config.routes = {{http::Method::post, path, content_type}};
        config.limits.body = static_cast<std::size_t>(settings::max_body_size) * 1024;
        config.total_body_bytes = std::max<std::size_t>(config.limits.body, 64 * 1024 * 1024);
        config.max_connections = static_cast<std::size_t>(settings::max_connections);
        if (server_ && config.listen == listening_) return server_->configure(std::move(config));
        server_.reset();
        listening_ = config.listen;
        server_ = std::make_unique<http::Server>(poller_, std::move(config), *this, refusals_);
    }

    class Task : public http::Task {
      public:
        Task(Receiver& receiver, http::Request request)
            : receiver_(receiver),
              body_(std::make_shared<SealedBody>(std::move(request.body))),
              peer_(std::move(request.peer)),
              round_(receiver.links_.expect(body_, peer_)) {}
        http::Response answer() override { return receiver_.answer(*body_, round_, peer_); }
        std::uint64_t priority() const override { return round_; }

      private:
        Receiver& receiver_;
        std::shared_ptr<SealedBody> body_;
        std::string peer_;
        std::uint64_t round_;
    };

    std::unique_ptr<http::Task> begin(http::Request request) override {
        return std::make_unique<Task>(*this, std::move(request));
    }

    http::Response answer(SealedBody& sealed, std::uint64_t round, const std::string& peer) {
        auto found = links_.find(sealed, round);
        if (const auto* none = std::get_if<NoLink>(&found)) {
            refusals_.refused(none->status, peer, none->reason);
            return http::text_response(none->status, none->reason);
        }
        auto& [link, body] = std::get<Links::Found>(found);
        try {
            http::Response response;
            response.content_type = content_type;
            response.recognised = true;
            response.body = link->receive(body, peer, [this] { return links_.deaf_until(); });
            return response;
        } catch (const pg::Error& error) {
            return put_off(*link, error);
        } catch (const std::bad_alloc&) {
            return put_off(*link, pg::Error("53200", "out of memory"));
        }
    }

    static http::Response put_off(LinkReceiver& link, const pg::Error& error) {
        http::Response response = http::text_response(503, link.put_off(error.report()));
        response.headers.emplace_back(sqlstate_field, error.report().sqlstate);
        return response;
    }

    /// P22: an error that is nobody's is every link's, and is followed by a rest.
    Time check_and_rest() {
        Time wait = rest_after_failure;
        worker::Fault fault;
        if (worker::attempt([&] { wait = check(); }, &fault)) return wait;
        check_at_ = pg::now() + rest_after_failure;
        links_.each([&](LinkReceiver& link) { link.put_off(report_of(fault)); });
        return rest_after_failure;
    }

    static pg::ErrorReport report_of(const worker::Fault& fault) {
        pg::ErrorReport report;
        report.sqlstate = fault.sqlstate;
        report.message = fault.what;
        return report;
    }

    /// Looks at all links without a body, and gives how long that can wait.
    Time check() {
        pg::in_transaction([&] {
            if (!worker::extension_exists()) worker::finish();
            links_.load();
        });
        Time wait = longest_wait;
        const Time heard_from = links_.deaf_until();
        links_.each([&](LinkReceiver& link) {
            worker::Fault fault;
            if (worker::attempt([&] { wait = std::min(wait, link.check(heard_from)); }, &fault)) return;
            wait = std::min(wait, rest_after_failure);
            link.put_off(report_of(fault));
        });
        wait = std::max(wait, 10 * millisecond);
        check_at_ = pg::now() + wait;
        return wait;
    }

    int index_;
    http::Poller poller_;
    worker::Waiter waiter_;
    Refusals refusals_;
    Links links_;
    std::string listening_;
    Time listen_at_ = 0;
    std::string told_;
    std::unique_ptr<http::Server> server_;
    Housekeeping housekeeping_;
    Time check_at_ = 0;
};

void run(Oid database) {
    const int index = worker::start(database).index;
    if (!shared::register_worker(shared::WorkerKind::receiver, index)) worker::finish();
    apply::begin_session();
    Receiver(index).run();
}

}  // namespace

}  // namespace onerepl::receiver

void onerepl_receiver_main(Datum database) {
    onerepl::pg::entry([&] { onerepl::receiver::run(DatumGetObjectId(database)); });
}
