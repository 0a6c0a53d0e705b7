// P4: numbers for what has been committed since the last time. Only the sender numbers.
#pragma once

#include "log/batch.h"
#include "pg/error.h"

namespace onerepl::log {

/// Records that are not changes and get their numbers in a numbering step, so that they are exact at their
/// position: those of `before` come before all changes that this step numbers (which `changes` tells of),
/// those of `after` past all changes that its snapshot sees. Called in the step's transaction, which is
/// REPEATABLE READ, with SPI connected; what the guest writes is committed with the numbers, or not at all.
class NumberingGuest {
  public:
    virtual ~NumberingGuest() = default;
    /// False: `begin` is not called, and `after` neither. Asked after the step has taken its snapshot.
    virtual bool is_expected() const = 0;
    /// Before anything else. True: `after` will give at least one transaction.
    virtual bool begin() = 0;
    /// Transactions whose numbers begin at `first` and follow each other, empty for none.
    virtual std::vector<NumberedTransaction> before(Number first, bool changes) = 0;
    virtual std::vector<NumberedTransaction> after(Number first) = 0;
    /// The step was committed.
    virtual void committed() {}
    /// The step was rolled back, whoever was to blame. `failed` follows if it was the guest.
    virtual void rolled_back() {}
    /// One of the first three threw this; the step was rolled back and is done again without the guest.
    /// Outside of a transaction.
    virtual void failed(const pg::ErrorReport& report) = 0;
};

/// This process's guest, for every step from now on; null: none.
void set_numbering_guest(NumberingGuest* guest);

/// What a step gave.
struct Numbered {
    Number last = 0;               // M
    std::size_t transactions = 0;  // that got their numbers in it
    bool complete = true;          // false: somebody held numbering
};

/// One numbering step, in a transaction of its own (call it outside of one, in a background worker). Gives
/// numbers to the transactions that its snapshot sees and the last step's did not, ordered by (commit_lsn, xid),
/// and returns M, the largest number, which need not be on disk yet: see wait_for_numbers. Without news it
/// writes nothing and costs a look at the log's indexes. Memory is bounded however many transactions there
/// are. Nothing gets a number while somebody holds numbering (onerepl.hold_numbering). Throws pg::Error;
/// nothing has changed then.
Numbered number_changes();

/// Returns when all numbers that this process gave are on disk, and so may be told to others. Outside of a
/// transaction.
void wait_for_numbers() noexcept;

/// M: the largest number, 0 when the log is empty. In a transaction with SPI connected.
Number last_number();

}  // namespace onerepl::log
