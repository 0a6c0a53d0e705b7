// When A tries again after the central did not answer.
#include "core/outage.h"

#include <algorithm>

namespace onerepl {

void Outage::set_pace(Time knock, Time longest) {
    knock_ = knock;
    longest_ = longest;
}

bool Outage::contact_lost(Time now, Time departed, bool had_transfers) {
    if (last_answer_ && *last_answer_ >= departed) return false;  // one body was lost; the channel works
    if (tries_ > 0 && departed <= last_failure_) return false;    // another victim of the same try
    const bool begins = tries_++ == 0;
    last_failure_ = now;
    retry_at_ = now + knock_;
    if (had_transfers) {
        const Time pause = knock_ << std::min<std::uint32_t>(transfer_tries_++, 16);
        transfers_at_ = now + std::min(pause, longest_);
    } else {
        out_of_reach_ = true;
    }
    return begins;
}

bool Outage::contact_found(Time now, bool had_transfers) {
    last_answer_ = now;
    if (tries_ == 0) return false;
    if (out_of_reach_ || transfer_tries_ == 0 || had_transfers) return end();
    retry_at_ = std::max(now, std::min(transfers_at_, now + knock_));
    return false;
}

bool Outage::nothing_to_send() {
    return tries_ > 0 && end();
}

bool Outage::end() {
    tries_ = transfer_tries_ = 0;
    retry_at_ = transfers_at_ = 0;
    out_of_reach_ = false;
    return true;
}

/// The body after it names an answer of this start. Should B refuse that one too, the rest of the tries take
/// their time.
void Outage::not_taken(Time now, std::uint64_t departure, std::uint64_t last_departure) {
    if (not_taken_to_ > 0 && departure > not_taken_to_) retry_at_ = now + knock_;
    not_taken_to_ = last_departure;
}

bool Outage::must_knock(Time now) const {
    if (tries_ == 0) return false;
    return out_of_reach_ || now < transfers_at_ || last_answer_.value_or(0) < last_failure_;
}

}  // namespace onerepl
