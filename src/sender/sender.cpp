// The sender: one process for each database that is a remote. It numbers what was committed, sends it on
// every link, and keeps the log in order. A broken link never stops another one: each link's work is a turn
// of its own.
#include "pg/pg.h"

#include "http/client.h"
#include "log/numbering.h"
#include "pg/settings.h"
#include "pg/spi.h"
#include "pg/transaction.h"
#include "sender/demand.h"
#include "sender/numbering_guests.h"
#include "sender/link_sender.h"
#include "worker/housekeeping.h"
#include "worker/shared.h"
#include "worker/worker.h"

#include <algorithm>
#include <utility>

extern "C" PGDLLEXPORT void onerepl_sender_main(Datum);

namespace onerepl::sender {

namespace {

constexpr Time longest_wait = 5 * second;  // for housekeeping
constexpr Time after_error = 1 * second;

class Sender {
  public:
    Sender() : client_(poller_), waiter_(poller_.descriptor()) { log::set_numbering_guest(&guests_); }

    [[noreturn]] void run() {
        for (;;) {
            const bool fine = worker::attempt([this] { turn(); });
            housekeeping_.turn(worker::now());
            wait_for_work(fine ? time_to_wait() : after_error);
        }
    }

  private:
    using Links = std::map<int, std::unique_ptr<LinkSender>>;

    /// Until a post has ended, somebody has committed, or the time is up. Bytes that come and go on sockets
    /// meanwhile are no reason to look into the database.
    void wait_for_work(Time timeout) {
        const Time until = worker::now() + timeout;
        do {
            waiter_.wait(std::max<Time>(until - worker::now(), 0));
            poller_.poll();
            completions_ = client_.turn(worker::now());
        } while (completions_.empty() && !waiter_.woken() && worker::now() < until);
    }

    void turn() {
        const std::vector<http::Completion> completions = std::exchange(completions_, {});
        if (!completions.empty()) each_link([&](LinkSender& link) { take(link, completions); });
        if (demand_.due(worker::now()) && !find_demand()) worker::finish();
        confirmed_ = confirmed();
        const Number last = log::number_changes();
        load(last);
        each_link([&](LinkSender& link) {
            link.numbered(last);
            send(link);
        });
    }

    /// What fails for one link is that link's affair.
    void each_link(const std::function<void(LinkSender&)>& work) {
        for (auto& entry : links_) {
            LinkSender& link = *entry.second;
            worker::attempt([&] { work(link); });
        }
    }

    static void take(LinkSender& link, const std::vector<http::Completion>& completions) {
        if (std::none_of(completions.begin(), completions.end(),
                         [&](const auto& each) { return link.owns(each.id); }))
            return;
        pg::in_transaction([&] {
            // A position that is lost in a crash is sent again, and B drops what it has.
            pg::commit_without_wait();
            for (const http::Completion& completion : completions) link.completed(completion);
            link.store();
        });
    }

    static void send(LinkSender& link) {
        try {
            pg::in_transaction([&] {
                pg::commit_without_wait();
                link.form();
                link.store();
            });
        } catch (...) {
            link.discard_formed();
            throw;
        }
        link.post();
    }

    void load(Number last) {
        pg::in_transaction([&] {
            if (!worker::extension_exists()) worker::finish();
            if (is_zero(own_id_)) own_id_ = load_database_id();
            std::vector<Link> links = load_links(Role::remote);
            std::erase_if(links_, [&](const auto& known) {
                return std::none_of(links.begin(), links.end(),
                                    [&](const Link& link) { return link.id == known.first; });
            });
            for (Link& link : links) update(std::move(link), last);
        });
    }

    /// A dump of another database was restored here with that one's links. It must not speak in its name
    /// (P9): not even to say that it has stopped.
    bool refuse_copied(const Link& link) {
        if (link.database == own_id_) return false;
        if (link.stop != Stop::none) return true;
        store_stop(link, Stop::wrong_peer);
        pg::JournalBuffer journal(link.id);
        journal.write(
            {Level::critical,
             "P9",
             "link \"" + link.name + "\" was made in another database, of which this one is a restored copy",
             "Remove the link here, or start it anew with onerepl_restart_link() at both ends if this "
             "database "
             "takes the other's place.",
             {}});
        journal.flush();
        return true;
    }

    void update(Link link, Number last) {
        if (refuse_copied(link)) return;
        auto& known = links_[link.id];
        // A link that was started anew has another N0, or is no longer stopped: everything kept about it is
        // void.
        const bool anew = known && (known->link().challenge != link.challenge ||
                                    (known->stopped() != Stop::none && link.stop == Stop::none));
        if (known && !anew) return known->update(link);
        known = std::make_unique<LinkSender>(std::move(link), own_id_, last, client_);
        guests_.tell_sequences_again();
    }

    /// Changes when a link's S_a does.
    Number confirmed() const {
        Number sum = 0;
        for (auto& [id, link] : links_) sum += link->confirmed();
        return sum;
    }

    Time time_to_wait() {
        // A refresh goes on when its chunks are confirmed.
        if (guests_.chunks().is_busy() && confirmed() != confirmed_) return 0;
        Time wait = std::min(longest_wait, guests_.chunks().time_to_wait());
        for (auto& [id, link] : links_) wait = std::min(wait, link->time_to_wait());
        return wait;
    }

    http::Poller poller_;
    http::Client client_;
    worker::Waiter waiter_;
    worker::RemoteHousekeeping housekeeping_;
    worker::Periodic demand_{1 * second};
    std::vector<http::Completion> completions_;
    NumberingGuests guests_;
    Number confirmed_ = 0;  // as the last numbering step saw it
    Links links_;
    Uuid own_id_{};
};

void run(Oid database) {
    worker::start(database);
    if (!shared::register_worker(shared::WorkerKind::sender, 0)) worker::finish();
    if (!find_demand()) worker::finish();
    Sender().run();
}

}  // namespace

}  // namespace onerepl::sender

void onerepl_sender_main(Datum database) {
    onerepl::pg::entry([&] { onerepl::sender::run(DatumGetObjectId(database)); });
}
