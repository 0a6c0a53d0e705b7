// Journal entries about bad requests (P14), rate-limited: an attacker must not fill the journal.
#pragma once

#include "http/server.h"
#include "pg/journal_buffer.h"

#include <map>

namespace onerepl::receiver {

class Refusals : public http::Observer {
  public:
    void refused(const http::Refusal& refusal) override;
    void handler_failed(const std::string& peer, const std::string& what) override;
    /// A request that was refused by the receiver itself.
    void refused(int status, const std::string& peer, const std::string& reason) {
        refused({status, peer, reason});
    }

    /// Writes what has gathered, one entry for each kind at most once a minute, in a transaction of its own.
    void flush(Time now);

  private:
    struct Kind {
        std::uint64_t count = 0;  // since the last entry
        std::string last_peer;
        Time reported_at = 0;
    };
    std::map<std::string, Kind> kinds_;
};

}  // namespace onerepl::receiver
