// The change records of the transaction that is running, on their way into the log (design.md "Capture").
//
// Records are collected in packs of about 8 kB, one pack under construction for each subtransaction level:
// rolling back a level drops its pack, committing it hands the pack to the level above. A full pack becomes
// one tuple of the active log table, stamped with the subtransaction that wrote it, so that it shares that
// one's fate. The last pack is written when the transaction commits or is prepared, after deferred triggers;
// it carries the transaction's place (P4).
//
// Plain C-like code without destructors: the capture trigger calls it directly. Everything may ereport.
#pragma once

#include "log/pack.h"

namespace onerepl::capture {

/// Begins capture in this transaction; registers the callbacks at the first call. False: capture is stopped,
/// and nothing is recorded in this transaction.
bool begin_capture();

void record_change(const log::RowChange& change);
void record_description(std::uint64_t description);
/// A statement of SQL. `statement`: as on the wire, after the description's id (docs/protocol/wire.md,
/// "Records").
void record_statement(std::uint64_t description, bool captured, bool dropped, const char* statement,
                      std::size_t size);
void record_truncate(std::uint64_t description, bool cascade, bool restart_identity);

}  // namespace onerepl::capture
