// The transfers of one body that B took, for writing at once or for the queue.
#pragma once

#include "apply/applier.h"
#include "core/central.h"

namespace onerepl::receiver {

class Incoming {
  public:
    /// `frame`: as it travelled; it and the transfer point into the body, which must outlive this.
    void add(const ObjectTransfer& transfer, ByteView frame);

    bool empty() const { return taken_.empty(); }
    /// True if all of `numbers` is here, each record whole.
    bool holds(Range numbers) const;
    /// True if it holds `numbers` and nothing else, and no chunk: what `log_frames` gives are its frames as
    /// they came.
    bool is_all_of(Range numbers) const;
    std::size_t size() const { return taken_.size(); }
    /// The frames of what is to be spooled.
    Bytes frames(const Spool& spool) const;
    /// The frames of all records of `numbers` for the log: chunks of refreshes without their rows, which are
    /// in the table now. `parties`: of those frames.
    Bytes log_frames(Range numbers, const Parties& parties) const;

  private:
    friend class IncomingSource;
    struct Taken {
        ObjectTransfer transfer;
        ByteView frame;
    };
    std::size_t find(Number n) const;

    std::vector<Taken> taken_;  // by number and part, once sorted
    bool has_chunk_ = false;
};

/// Gives records of `numbers`, all of which `incoming` holds.
class IncomingSource : public apply::RecordSource {
  public:
    IncomingSource(const Incoming& incoming, Range numbers)
        : incoming_(incoming), numbers_(numbers), index_(incoming.find(numbers.first)) {}
    bool next(apply::IncomingRecord& record) override;
    void rewind(Number n) override { index_ = incoming_.find(n); }

  private:
    const Incoming& incoming_;
    Range numbers_;
    std::size_t index_;
};

}  // namespace onerepl::receiver
