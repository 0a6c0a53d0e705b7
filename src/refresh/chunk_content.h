// What a chunk holds: rows, or their digest.
#pragma once

#include "refresh/copied_table.h"

namespace onerepl::refresh {

/// What was asked for: of a row of onerepl.refresh.
struct Task {
    std::uint64_t id = 0;
    int link = 0;
    bool repair = false;
    bool partial = false;       // a range of keys is repaired
    bool with_rows = false;     // a verification names the rows
    bool one_snapshot = false;  // all chunks are made in one step
    std::uint64_t chunk_rows = 0;
    std::uint64_t chunks = 0;  // made before
};

/// What was made of a table in this step.
struct Made {
    std::uint64_t chunks = 0;
    std::uint64_t rows = 0;
    std::uint64_t bytes = 0;
    bool last = false;
    Key to;
    double pause = 0;  // seconds until the next one
};

/// Stores the next chunk of a copy under the number `first`, or all of them under one snapshot
/// (`one_snapshot`, or without a key) from there on. Both: in the transaction of the numbering step; throw
/// pg::Error.
Made make_copy(CopiedTable& table, const Task& task, Number first);

/// Stores the record that opens a copy, or ends a cancelled one; table: null if it cannot be read.
void make_mark(const CopiedTable* table, const Task& task, bool cancelled, std::uint64_t description,
               Number n);

/// Stores the next chunk of a verification under the number `n`.
Made make_digest(const CopiedTable& table, const Task& task, Number n);

}  // namespace onerepl::refresh
