// The central's queue, table onerepl.waiting: what has arrived and cannot be written yet. All in a
// transaction.
#pragma once

#include "apply/applier.h"
#include "core/central.h"

namespace onerepl::receiver {

/// Fills in `waiting` and `partial` of the link's state.
void load_waiting(int link, CentralState& state);

/// Puts a run, or a part of a record, into the queue. Of two runs that begin alike the longer one stays.
void insert_waiting(int link, const Spool& spool, ByteView frames, int compression);

/// Deletes the rows whose numbers lie in `range`.
void delete_waiting(int link, Range range);

/// Takes out what was written, up to `written`. `keep_log`: it goes to onerepl.received.
void finish_waiting(int link, Number written, bool keep_log);

/// Gives the records of `numbers` from the queue, each assembled from its parts, with the memory of one row
/// (or one record).
class WaitingSource : public apply::RecordSource {
  public:
    WaitingSource(int link, Range numbers) : link_(link), numbers_(numbers), next_(numbers.first) {}
    bool next(apply::IncomingRecord& record) override;
    void rewind(Number n) override;

  private:
    bool load_row();
    bool assemble(std::uint32_t parts);

    int link_;
    Range numbers_;
    Number next_;
    Bytes frames_;
    std::optional<FrameReader> reader_;
    // A record that came in parts.
    Bytes assembled_;
    bool assembled_last_ = false;
    bool assembled_ready_ = false;
};

}  // namespace onerepl::receiver
