// B's side of one link: turns of the core's Central with its tables, its queue and apply.
#pragma once

#include "apply/applier.h"
#include "core/central.h"
#include "pg/journal_buffer.h"
#include "receiver/failures.h"
#include "receiver/incoming.h"
#include "receiver/opener.h"
#include "receiver/shared_link.h"
#include "worker/link.h"

#include <functional>

namespace onerepl::receiver {

class LinkReceiver {
  public:
    LinkReceiver(Link link, const Uuid& own_id);

    const Link& link() const { return link_; }
    /// The link as its table has it now. What is kept in memory ends with a start of the link (P20).
    void update(const Link& link);

    /// An authentic body of A came from the address `peer`. Gives the body of the answer, encoded. Outside of
    /// a transaction. Throws what keeps it from that: nothing was confirmed then.
    /// `heard_from` gives it as for `look`; it may take long.
    Bytes receive(const OpenedBody& opened, const std::string& peer, const std::function<Time()>& heard_from);
    /// `receive` threw `error`: all of the body is put off, whatever it was (P22). Told once for a cause, in
    /// the server log, the journal and the status. Gives one line for the remote. Outside of a transaction.
    std::string put_off(const pg::ErrorReport& error);
    /// Looks at the queue without a body: writes what can be written (after a resolution, after a transient
    /// error, what another receiver left), and tells the administrator what the time shows. Gives how long it
    /// may wait, in microseconds.
    /// `heard_from`: what came before may not have been heard (`Links::deaf_until`).
    Time check(Time heard_from);
    /// Until when a receiver that wrote for this link has heard nobody; 0: never.
    Time deaf_until() const;

  private:
    struct Turn;
    /// What is durable of the link, and the sequence number of its newest position.
    struct LinkState {
        CentralState central;
        KnownFailures known;
        std::int64_t position_seq = 0;
        bool memory_holds = false;  // apply::Options
    };
    /// What this receiver's last turn left, if nothing is queued or failed. It holds as long as no other
    /// receiver had a turn, nothing was invalidated, and it is young.
    struct Kept {
        bool there = false;
        std::uint64_t turn = 0;
        std::uint32_t generation = 0;
        Time loaded_at = 0;
        LinkState state;
    };
    bool addressed_here(const Body& body) const;
    bool answers_this_start(const Body& body) const;
    Nonce next_nonce() const;
    void find_copies(Turn& turn, const std::string& peer);
    void read_messages(Turn& turn, const std::vector<FrameResult>& frames);
    void take_message(Turn& turn, const FrameResult& frame);
    void write_ready(Turn& turn);
    bool write_once(Turn& turn);
    void move_position(Turn& turn, Number written, bool from_queue);
    void take_outcome(Turn& turn, const apply::Outcome& outcome);
    void note_put_off(Turn& turn, const std::string& sqlstate, const std::string& reason);
    Contact contact_of(const Turn& turn) const;
    void finish(Turn& turn);
    void end_trouble();
    void spool(Turn& turn);
    void store_start(Turn& turn);
    void in_this_start(const std::function<void()>& work);
    Bytes encode_reply(const Body& body, const Reply& reply) const;
    Bytes receive_without_lock(const OpenedBody& opened);
    CentralConfig config() const;
    void begin_turn();
    void begin_start();
    LinkState load_state();
    void keep_state(const Turn& turn);
    Number last_position() const;
    Bytes frames_for_log(const Turn& turn, Range numbers) const;

    Link link_;
    Uuid own_id_;
    pg::JournalBuffer journal_;
    apply::Applier applier_;
    SharedLink own_shared_{};  // where shared memory has no place left
    SharedLink* shared_ = nullptr;
    Kept kept_;
    Time retry_at_ = 0;  // after a transient error of apply
    Time retry_wait_ = 0;
    Time contact_stored_ = 0;
};

}  // namespace onerepl::receiver
