// The sender: one process for each database that is a remote. It numbers what was committed, sends it on
// every link, and keeps the log in order. A broken link never stops another one: each link's work is a turn
// of its own.
#include "pg/pg.h"

#include "http/client.h"
#include "log/numbering.h"
#include "pg/clock.h"
#include "pg/settings.h"
#include "pg/spi.h"
#include "pg/transaction.h"
#include "sender/demand.h"
#include "sender/remote_housekeeping.h"
#include "sender/link_sender.h"
#include "sender/numbering_guests.h"
#include "shared/memory.h"
#include "worker/worker.h"

#include <algorithm>
#include <utility>

extern "C" PGDLLEXPORT void onerepl_sender_main(Datum);

namespace onerepl::sender {

namespace {

/// The tables are looked at this often although nothing was invalidated.
constexpr Time check_interval = 1 * second;
constexpr Time after_error = 1 * second;
constexpr Time held_interval = 20 * millisecond;
/// Transactions a second from which on the sender rests between steps, and the time over which they are
/// counted.
constexpr double busy_rate = 600;
constexpr Time rate_time = 100 * millisecond;
constexpr Time busy_rest = 3 * millisecond;
constexpr Time longest_rest = 100 * millisecond;

class Sender {
  public:
    Sender() : client_(poller_, {.cause_field = sqlstate_field}), waiter_(poller_.descriptor()) {
        log::set_numbering_guest(&guests_);
    }

    [[noreturn]] void run() {
        for (;;) {
            turn();
            housekeeping_.turn(pg::now());
            wait_for_work(time_to_wait());
        }
    }

  private:
    using Links = std::map<int, std::unique_ptr<LinkSender>>;

    /// Until a post has ended, somebody has committed or changed something, or the time is up. Bytes that come
    /// and go on sockets meanwhile are no reason to look into the database.
    void wait_for_work(Time timeout) {
        const Time until = pg::now() + timeout;
        std::vector<http::Completion> completions;
        do {
            poller_.arm();
            waiter_.wait(std::max<Time>(until - pg::now(), 0));
            woken_ = woken_ || waiter_.woken();
            poller_.poll();
            completions = client_.turn(pg::now());
        } while (completions.empty() && !waiter_.woken() && pg::now() < until);
        for (http::Completion& completion : completions) hand_over(std::move(completion));
    }

    /// To its link, before anything is tried that may fail (P20). Without a link nobody waits for it.
    void hand_over(http::Completion completion) {
        const auto owner = std::ranges::find_if(
            links_, [&](const auto& entry) { return entry.second->owns(completion.id); });
        if (owner != links_.end()) owner->second->arrived(std::move(completion));
    }

    /// What fails in one step, or for one link, keeps no other from its work, and is followed by a rest
    /// (P22).
    void turn() {
        wants_check_ = note_generation() || wants_check_;
        const bool look = wants_check_;
        if (pg::now() >= rest_until_) prepare();
        for (auto& [id, link] : links_) serve(*link, look);
        log::wait_for_numbers();
    }

    /// What all links need.
    void prepare() {
        worker::Fault fault;
        prepared_ = worker::attempt(
            [this] {
                if (demand_.due(pg::now()) && !find_demand()) worker::finish();
                if (numbering_is_due(wants_check_)) number();
                if (wants_check_) load();
                wants_check_ = false;
            },
            &fault);
        if (prepared_) return;
        rest_until_ = pg::now() + after_error;
        for (auto& [id, link] : links_) link->failed(fault);
    }

    /// True if tables that are kept in memory may have changed: links, what is blocked, refreshes.
    bool note_generation() {
        const std::uint32_t generation = shared::sender_generation();
        const bool look = check_.due(pg::now()) || generation != generation_;
        generation_ = generation;
        if (look) guests_.chunks().check_again();
        return look;
    }

    // ---------------------------------------------------------------- numbering, and when

    /// A step costs more than a small transaction. While they come faster than steps, the sender rests
    /// between its steps; and longer while what it numbers cannot be sent anyway, but not so long that
    /// batches get large.
    bool numbering_is_due(bool look) {
        const bool asked =
            std::ranges::any_of(links_, [](const auto& entry) { return entry.second->wants_numbering(); });
        if (asked || look || guests_.chunks().is_expected()) return true;
        return pg::now() >= number_at_ && (woken_ || resting_);
    }

    void number() {
        const Time begun = pg::now();
        if (resting_) shared::set_sender_resting(resting_ = false);
        const bool woken = std::exchange(woken_, false);
        const log::Numbered numbered = log::number_changes();
        held_ = !numbered.complete;
        woken_ = woken && held_;
        last_ = numbered.last;
        note_rate(begun, numbered.transactions);
        for (auto& [id, link] : links_) link->numbered(last_);
        if (numbered.transactions > 0) rest(begun);
    }

    void note_rate(Time now, std::size_t transactions) {
        const double passed = std::max<double>(static_cast<double>(now - rate_at_), 1);
        const double rate = static_cast<double>(transactions) / passed * second;
        rate_ += (rate - rate_) * std::min(1.0, passed / rate_time);
        rate_at_ = now;
    }

    void rest(Time begun) {
        const bool can_send =
            std::ranges::any_of(links_, [](const auto& entry) { return entry.second->can_send(); });
        const Time pause = !can_send ? longest_rest : rate_ < busy_rate ? 0 : busy_rest;
        number_at_ = begun + pause;
        if (pause > 0) shared::set_sender_resting(resting_ = true);
    }

    // ---------------------------------------------------------------- links

    void serve(LinkSender& link, bool look) {
        if (link.has_ceased()) return;
        if (!link.has_arrived() && !look && link.served_to() == last_ && link.time_to_wait() > 0) return;
        if (link.rests()) {
            if (!worker::attempt([&] { exchange(link); })) link.cease();
            return;
        }
        worker::Fault fault;
        if (worker::attempt([&] { exchange(link); }, &fault)) {
            if (prepared_) link.succeeded();
            return;
        }
        link.failed(fault);
        link.rest();
        // A smaller try at once: what has arrived is stored although nothing can be formed.
        if (!worker::attempt([&] { exchange(link); })) link.cease();
    }

    /// Takes answers and forms what may be sent now, in one transaction. A position that is lost in a crash
    /// is sent again, and B drops what it has; but what has got a number is on disk before it leaves (P4).
    void exchange(LinkSender& link) {
        try {
            pg::in_transaction([&] {
                pg::commit_without_wait();
                link.take_arrived();
                link.form();
                link.store();
            });
        } catch (...) {
            link.discard_formed();
            throw;
        }
        link.stored();
        guests_.chunks().note_confirmed(link.id(), link.confirmed());
        if (!link.has_formed()) return;
        log::wait_for_numbers();
        link.post();
    }

    void load() {
        pg::in_transaction([&] {
            if (!worker::extension_exists()) worker::finish();
            if (is_zero(own_id_)) own_id_ = load_database_id();
            std::vector<Link> links = load_links(Role::remote);
            std::erase_if(links_, [&](const auto& known) {
                return std::none_of(links.begin(), links.end(),
                                    [&](const Link& link) { return link.id == known.first; });
            });
            for (Link& link : links) update(std::move(link));
        });
    }

    /// A dump of another database was restored here with that one's links. It must not speak in its name
    /// (P9): not even to say that it has stopped.
    bool refuse_copied(const Link& link) {
        if (link.database == own_id_) return false;
        if (link.stop != Stop::none) return true;
        store_stop(link, Stop::wrong_peer, "this database is a copy of the one that the link was made in");
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

    void update(Link link) {
        if (refuse_copied(link)) return;
        const auto place = links_.find(link.id);
        LinkSender* const known = place == links_.end() ? nullptr : place->second.get();
        // A link that was started anew has another N0, or is no longer stopped: everything kept about it is
        // void.
        const bool anew = known && (known->link().challenge != link.challenge ||
                                    (known->stopped() != Stop::none && link.stop == Stop::none));
        if (known && !anew) return known->update(link);
        const int id = link.id;
        links_[id] = std::make_unique<LinkSender>(std::move(link), own_id_, last_, client_);
        guests_.report_sequences_again();
    }

    Time time_to_wait() {
        Time wait = time_to_prepare();
        for (auto& [id, link] : links_) wait = std::min(wait, link->time_to_wait());
        return wait;
    }

    Time time_to_prepare() {
        const Time now = pg::now();
        if (now < rest_until_) return rest_until_ - now;
        if (std::ranges::any_of(links_, [](const auto& entry) { return entry.second->wants_numbering(); }))
            return 0;
        const Time wait = std::min(check_interval, held_ ? held_interval : guests_.chunks().time_to_wait());
        return resting_ ? std::min(wait, std::max<Time>(number_at_ - now, 0)) : wait;
    }

    http::Poller poller_;
    http::Client client_;
    worker::Waiter waiter_;
    Housekeeping housekeeping_;
    worker::Periodic demand_{1 * second};
    worker::Periodic check_{check_interval};
    std::uint32_t generation_ = 0;
    bool wants_check_ = false;  // what changed was not looked at yet
    bool prepared_ = false;     // the last time it was tried
    Time rest_until_ = 0;       // after a failure of what all links need
    bool woken_ = true;         // somebody committed since the last numbering step
    bool resting_ = false;
    bool held_ = false;   // somebody held numbering in the last step
    Time number_at_ = 0;  // not before
    double rate_ = 0;     // transactions a second, lately
    Time rate_at_ = 0;
    Number last_ = 0;  // M
    NumberingGuests guests_;
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
