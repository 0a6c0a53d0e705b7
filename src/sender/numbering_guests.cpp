// The order of the guests, and whose failure it is.
#include "sender/numbering_guests.h"

#include "log/chunk_record.h"

#include <utility>

namespace onerepl::sender {

std::vector<log::NumberedTransaction> NumberingGuests::before(Number first, bool changes) {
    std::vector<log::NumberedTransaction> transactions;
    taking_ = true;
    const bool taken = sequences_.take(first, changes);
    taking_ = false;
    if (taken) transactions.push_back(log::sequences_transaction(first++));
    for (const log::NumberedTransaction& mark : chunks_.before(first, changes)) transactions.push_back(mark);
    return transactions;
}

void NumberingGuests::failed(const pg::ErrorReport& report) {
    if (!std::exchange(taking_, false)) return chunks_.failed(report);
    sequences_.failed(report);
}

}  // namespace onerepl::sender
