// Whose body is next: remotes take turns, however many bodies each has sent.
#pragma once

#include "core/types.h"

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>

namespace onerepl::receiver {

/// In each round every remote that has bodies waiting has one of them.
class FairOrder {
  public:
    /// The round of a further body of `remote` from `host`: a round after its last one, or in the round at
    /// hand. Its signature is not looked at yet: whoever pretends to be a remote elsewhere takes none of its
    /// turns.
    std::uint64_t next(const Uuid& remote, std::string_view host) {
        const Key key = has_room() ? Key(remote, host) : Key();
        std::uint64_t& last = last_[key];
        last = last < round_ ? round_ : last + 1;
        return last;
    }
    /// A body of this round has its turn.
    void begin(std::uint64_t round) {
        if (round > round_) round_ = round;
    }

  private:
    using Key = std::pair<Uuid, std::string>;

    /// Without room those who are not remembered share one body in each round.
    bool has_room() {
        if (last_.size() < most_remembered) return true;
        std::erase_if(last_, [&](const auto& each) { return each.second < round_; });
        return last_.size() < most_remembered;
    }

    static constexpr std::size_t most_remembered = 1000;
    std::uint64_t round_ = 1;
    std::map<Key, std::uint64_t> last_;
};

}  // namespace onerepl::receiver
