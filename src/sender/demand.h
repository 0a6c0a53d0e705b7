// What a database needs of workers.
#pragma once

namespace onerepl::sender {

/// Finds out whether this database needs a sender (it has a central, or captures) and how many receivers (it
/// has a remote, and an address to listen at), and tells the launcher. Gives whether it needs a sender.
/// Outside of a transaction.
bool find_demand();

}  // namespace onerepl::sender
