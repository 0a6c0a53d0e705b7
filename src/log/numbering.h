// P4: numbers for what has been committed since the last time. Only the sender numbers.
#pragma once

#include "log/batch.h"
#include "pg/error.h"

namespace onerepl::log {

/// Records that are not changes and get their numbers in a numbering step, so that they are exact at their
/// position: those of `before` come before all changes that this step numbers (which `changes` tells of),
/// those of `behind` after all changes that its snapshot sees. Called in the step's transaction, which is
/// REPEATABLE READ, with SPI connected; what the guest writes is committed with the numbers, or not at all.
class NumberingGuest {
  public:
    virtual ~NumberingGuest() = default;
    /// Before anything else. True: `behind` will give at least one transaction.
    virtual bool begin() = 0;
    /// Transactions whose numbers begin at `first` and follow each other, empty for none.
    virtual std::vector<NumberedTransaction> before(Number first, bool changes) = 0;
    virtual std::vector<NumberedTransaction> behind(Number first) = 0;
    /// The step was committed.
    virtual void committed() {}
    /// One of the first three threw this; the step was rolled back and is done again without the guest.
    /// Outside of a transaction.
    virtual void failed(const pg::ErrorReport& report) = 0;
};

/// This process's guest, for every step from now on; null: none.
void set_numbering_guest(NumberingGuest* guest);

/// One numbering step, in a transaction of its own (call it outside of one, in a background worker). Gives
/// numbers to the transactions that its snapshot sees and the last step's did not, ordered by (place, xid),
/// and returns M, the largest number, when that is on disk. Without news it writes nothing and costs one
/// indexed query. Memory is bounded however many transactions there are. `complete`, if given: false when
/// somebody holds numbering (onerepl.hold_numbering), so that nothing got a number. Throws pg::Error; nothing
/// has changed then.
Number number_changes(bool* complete = nullptr);

/// M: the largest number, 0 when the log is empty. In a transaction with SPI connected.
Number last_number();

}  // namespace onerepl::log
