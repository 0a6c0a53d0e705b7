// Changes as bytes, and the history of A in the simulation.
#include "records.h"

#include "core/bytes.h"

#include <algorithm>

namespace onerepl::sim {

namespace {
constexpr std::size_t fixed_bytes = 8 + 4 + 1 + 8;
}

Bytes bytes_of(const Change& change) {
    Bytes bytes;
    ByteWriter writer(bytes);
    writer.u64(change.token);
    writer.u32(change.size);
    writer.u8(static_cast<std::uint8_t>(change.end | change.conflict << 1));
    writer.u64(change.description);
    while (bytes.size() < change.size)
        bytes.push_back(static_cast<std::uint8_t>(change.token + bytes.size() * 7));
    return bytes;
}

Change skipped() {
    Change change;
    change.token = 1;
    change.skip = true;
    return change;
}

Bytes bytes_of_skip(Number count) {
    Bytes bytes;
    ByteWriter writer(bytes);
    writer.u64(count);
    writer.u32(0);
    return bytes;
}

Number count_of(ByteView bytes) {
    ByteReader reader(bytes);
    const Number count = reader.u64();
    return reader.u32() == 0 && reader.ok() ? count : 1;
}

std::optional<Change> change_of(ByteView bytes) {
    ByteReader reader(bytes);
    Change change;
    change.token = reader.u64();
    change.size = reader.u32();
    if (reader.ok() && change.size == 0) return skipped();
    const std::uint8_t flags = reader.u8();
    change.end = flags & 1;
    change.conflict = flags & 2;
    change.description = reader.u64();
    if (!reader.ok() || change.size > 1 << 20) return std::nullopt;
    const Bytes expected = bytes_of(change);
    if (!std::equal(expected.begin(), expected.end(), bytes.begin(), bytes.end())) return std::nullopt;
    return change;
}

std::uint64_t extend_hash(std::uint64_t hash, const Change& change) {
    hash = (hash ^ change.token) * 0x9e3779b97f4a7c15u;
    return (hash ^ (hash >> 29)) * 0xbf58476d1ce4e5b9u + (change.end && !change.skip ? 1 : 0);
}

void History::append(const std::vector<Change>& changes, const Uuid& remote, Random& random) {
    Batch batch;
    batch.numbers = {last() + 1, last() + changes.size()};
    batch.before = identity(last(), remote);
    batch.random = random.identity();
    for (const Change& change : changes) {
        hashes_.push_back(extend_hash(hash(last()), change));
        changes_.push_back(change);
    }
    batches_.push_back(batch);
}

const Batch* History::batch_of(Number n) const {
    auto found = std::lower_bound(batches_.begin(), batches_.end(), n, [](const Batch& batch, Number number) {
        return batch.numbers.last < number;
    });
    return found == batches_.end() || !found->numbers.contains(n) ? nullptr : &*found;
}

Identity History::identity(Number n, const Uuid& remote) const {
    if (n == 0) return identity_at_zero(remote);
    return identity_at(*batch_of(n), n);
}

std::vector<Batch> History::batches_of(Range numbers) const {
    std::vector<Batch> batches;
    for (const Batch* batch = batch_of(numbers.first); batch != batches_.data() + batches_.size(); ++batch) {
        if (batch->numbers.first > numbers.last) break;
        batches.push_back(*batch);
    }
    return batches;
}

Number History::transaction_end(Number n) const {
    while (n < last() && !change(n).end) ++n;
    return n;
}

}  // namespace onerepl::sim
