// The changes that are replicated in the simulation, and A's history of them.
#pragma once

#include "random.h"

#include "core/history.h"

#include <optional>

namespace onerepl::sim {

/// One number of A. What B writes is the whole struct, decoded from the record's bytes.
struct Change {
    std::uint64_t token = 0;  // random: no two changes are alike
    std::uint32_t size = 0;   // bytes on the wire
    bool end = false;         // last of its transaction
    bool conflict = false;    // cannot be written until resolved
    bool skip = false;        // may travel in a skip range
    std::uint64_t description = 0;

    bool operator==(const Change&) const = default;
};

/// The bytes of a change that is no skip: token, size, flags, description, then filler that follows from the
/// token.
Bytes bytes_of(const Change& change);
/// A skip range of `count` numbers.
Bytes bytes_of_skip(Number count);
/// Number of numbers that the record stands for.
Number count_of(ByteView bytes);
/// nullopt when the bytes are not exactly those that bytes_of or bytes_of_skip make.
std::optional<Change> change_of(ByteView bytes);
/// What every skipped number is.
Change skipped();

/// A's numbered changes with their batches, and a running hash that stands for "the history up to n".
class History {
  public:
    Number last() const { return changes_.size(); }
    const Change& change(Number n) const { return changes_[n - 1]; }
    /// Numbers the changes as one batch.
    void append(const std::vector<Change>& changes, const Uuid& remote, Random& random);
    Identity identity(Number n, const Uuid& remote) const;
    std::vector<Batch> batches_of(Range numbers) const;
    Number transaction_end(Number n) const;
    std::uint64_t hash(Number n) const { return n == 0 ? 0 : hashes_[n - 1]; }

  private:
    const Batch* batch_of(Number n) const;
    std::vector<Change> changes_;
    std::vector<std::uint64_t> hashes_;
    std::vector<Batch> batches_;
};

std::uint64_t extend_hash(std::uint64_t hash, const Change& change);

}  // namespace onerepl::sim
