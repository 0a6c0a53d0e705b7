// The settings of a worker's session.
#pragma once

namespace onerepl::worker {

/// P22: settings of databases and roles do not reach the workers, as far as they could end, slow or change
/// them. Those of apply and of values come on top (pg/fixed_settings.h). Connected, outside of a transaction.
void pin_session();

}  // namespace onerepl::worker
