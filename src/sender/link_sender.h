// The sender's side of one link: the core's Remote with its tables, its bodies and its HTTP posts.
#pragma once

#include "core/remote.h"
#include "http/client.h"
#include "pg/clock.h"
#include "pg/journal_buffer.h"
#include "sender/body_builder.h"
#include "worker/link.h"
#include "worker/worker.h"

#include <deque>
#include <map>
#include <memory>

namespace onerepl::sender {

class LinkSender : private NumberedHistory {
  public:
    /// Loads the link's position. In a transaction. `last`: M_a.
    LinkSender(Link link, const Uuid& own_id, Number last, http::Client& client);
    ~LinkSender() override;

    int id() const { return link_.id; }
    const Link& link() const { return link_; }
    /// The administrator may have changed it. In a transaction.
    void update(const Link& link);

    /// A post of this link has ended. Kept until a turn has taken it (P20). Outside of a transaction.
    void arrived(http::Completion completion) { arrived_.push_back(std::move(completion)); }
    bool has_arrived() const { return !arrived_.empty(); }
    /// Takes what has arrived. In a transaction.
    void take_arrived();
    /// A numbering step has ended with M_a = last (P2).
    void numbered(Number last) { remote_.numbered(last); }
    bool wants_numbering() const { return remote_.wants_numbering(); }
    /// M_a as the last `form` knew it.
    Number served_to() const { return served_to_; }

    /// Forms what may be sent now, or a first piece of it (`time_to_wait` is 0 then). In a transaction;
    /// nothing leaves before `post`.
    void form();
    bool has_formed() const { return !formed_.empty(); }
    /// Hands what was formed to the transport. Outside of a transaction, when what it holds is on disk.
    void post();
    /// The transaction of `form` was rolled back.
    void discard_formed();

    /// Writes position, stop, contact and journal as far as they have changed. In a transaction.
    void store();
    /// The transaction of `store` was committed.
    void stored();

    /// P22: a turn has failed. What comes back is told.
    void failed(const worker::Fault& fault);
    /// For a while the link forms no transfers, but keeps contact.
    void rest();
    /// Not even a turn without transfers could be done: nothing is tried before the rest is over.
    void cease();
    /// A turn went well.
    void succeeded();
    bool rests() const { return pg::now() < rest_until_; }
    bool has_ceased() const { return pg::now() < ceased_until_; }
    /// Microseconds until `form` or `store` may have something to do if nothing happens; 0: now.
    Time time_to_wait();
    /// False while the administrator, a stop, or the wait after a failure keeps transfers back.
    bool can_send() const;
    /// S_a.
    Number confirmed() const { return remote_.position().confirmed; }
    Stop stopped() const { return remote_.stopped(); }
    /// Id of a post of this link.
    bool owns(std::uint64_t post) const { return posted_.contains(post); }

  private:
    struct Posted {
        Nonce nonce{};
    };
    struct Formed {
        std::uint64_t id = 0;
        Bytes bytes;
        bool is_empty = false;  // of records
    };

    std::optional<Identity> identity(Number n) override;
    Number transaction_end(Number n) override;

    Parties parties() const;
    RemoteConfig config() const;
    void apply_blocks();
    /// The reason why the answer is not an authentic one to this post; empty if it was taken.
    std::string take_answer(std::uint64_t id, const Posted& posted, const Bytes& answer);
    void completed(const http::Completion& completion);
    void note_contact(std::string error);
    void set_own_error(std::string error);
    void give_up_overtaken();
    void report_missing(Number n);
    RemoteHeader header() const;

    Link link_;
    Uuid own_id_;
    http::Client& client_;
    pg::JournalBuffer journal_;
    Remote remote_;
    BodyBuilder builder_;
    std::map<std::uint64_t, Posted> posted_;
    std::deque<http::Completion> arrived_;
    Nonce last_answer_{};
    std::uint64_t heard_ = 0;  // of that answer
    std::deque<Formed> formed_;
    std::int64_t position_seq_ = 0;
    Contact contact_;
    bool contact_changed_ = false;
    bool contact_storing_ = false;  // in the transaction that runs
    Time contact_stored_ = 0;
    Stop stop_stored_ = Stop::none;
    Number missing_told_ = 0;
    int failures_ = 0;  // turns in a row
    Time rest_until_ = 0;
    Time ceased_until_ = 0;
    Number served_to_ = 0;
    bool more_to_form_ = false;
};

}  // namespace onerepl::sender
