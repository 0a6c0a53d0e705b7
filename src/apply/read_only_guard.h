// The read-only guard on the tables that onerepl writes on B (P8).
#pragma once

#include "pg/pg.h"

namespace onerepl::apply {

/// While an object of it lives, this backend's statements pass the guard: a flag in C that no role can set.
/// For everything of onerepl that writes guarded tables by SQL (TRUNCATE by apply, a refresh).
class WritingAllowed {
  public:
    WritingAllowed();
    ~WritingAllowed();
    WritingAllowed(const WritingAllowed&) = delete;
    WritingAllowed& operator=(const WritingAllowed&) = delete;
};

/// Whether onerepl.guarded has the table for the link: its first record has come.
bool is_noted(Oid relation, int link);

/// Keeps others from writing to onerepl.guarded until the transaction ends.
void lock_notes();

/// Puts the guard on `relation`, its partitions and the tables it is a partition of, where it is missing, and
/// notes them in onerepl.guarded for `link`. In a transaction with SPI connected, as superuser, and without
/// an open reference to the table in this session. Gives whether anything was created.
bool ensure_guard(Oid relation, int link);

}  // namespace onerepl::apply
