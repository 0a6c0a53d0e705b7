// P16, P22: when A tries again after the central did not answer, and what with.
#pragma once

#include "core/types.h"

#include <optional>

namespace onerepl {

/// An outage begins with a body that gets no answer. Its first tries are knocks, small and soon; a body of
/// transfers that failed while knocks are answered is tried again with doubling pauses, counted by tries, not
/// by the bodies that one try took.
class Outage {
  public:
    /// `knock`: the pause between knocks; `longest`: the longest one between tries with transfers, >= knock.
    void set_pace(Time knock, Time longest);

    /// A body that left at `departed` got no answer. True: an outage begins with it.
    bool contact_lost(Time now, Time departed, bool had_transfers);
    /// One got its answer. True: the outage is over with it. An answered knock says nothing about a body of
    /// transfers that failed while the central was in reach.
    bool contact_found(Time now, bool had_transfers);
    /// Nothing is left that has to be delivered. True: that ends an outage.
    bool nothing_to_send();
    /// The central let the body of this `departure` be, since it named no answer of this start (P10); bodies
    /// up to `last_departure` have left.
    void not_taken(Time now, std::uint64_t departure, std::uint64_t last_departure);

    bool is_on() const { return tries_ > 0; }
    /// Nothing leaves before.
    Time retry_at() const { return retry_at_; }
    /// The next body is to be empty.
    bool must_knock(Time now) const;

  private:
    bool end();

    Time knock_ = second;
    Time longest_ = second;
    std::optional<Time> last_answer_;
    std::uint32_t tries_ = 0;           // in a row without an answer
    std::uint32_t transfer_tries_ = 0;  // of bodies with transfers
    bool out_of_reach_ = false;         // a knock got no answer: only knocks go until one does
    Time last_failure_ = 0;
    Time retry_at_ = 0;
    Time transfers_at_ = 0;           // no transfers before
    std::uint64_t not_taken_to_ = 0;  // bodies up to here may not know of this start at the central
};

}  // namespace onerepl
