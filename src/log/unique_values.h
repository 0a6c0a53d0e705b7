// Which unique values the records of a transaction give up and take, as far as that can matter for their
// order (P4).
#pragma once

#include "core/order.h"
#include "log/encoder.h"

namespace onerepl::log {

/// Two passes over the records in log order: `look` at all, then `collect` all. Only values that one record
/// gives up and another takes are collected, so that a million inserted rows cost nothing.
class UniqueValueCollector {
  public:
    explicit UniqueValueCollector(Layouts& layouts);
    /// Both use CurrentMemoryContext for scratch. Throw pg::Error.
    void check(const PackedRecord& record);
    void collect(const PackedRecord& record);
    std::vector<UniqueValue> take() { return std::move(values_); }

  private:
    /// A set of hashes with false positives.
    class Seen {
      public:
        Seen() : bits_(size / 64) {}
        void add(std::uint64_t hash) { bits_[hash % size / 64] |= std::uint64_t{1} << hash % 64; }
        bool contains(std::uint64_t hash) const { return bits_[hash % size / 64] >> hash % 64 & 1; }

      private:
        static constexpr std::size_t size = std::size_t{1} << 23;
        std::vector<std::uint64_t> bits_;
    };

    template <class Each>
    void for_each_value(const PackedRecord& record, Each&& each);
    /// Hashes of the unique sets of a row; nullopt: a null in it, or not in the image.
    std::vector<std::optional<std::uint64_t>> hashes(RecordEncoder& encoder, const Image& image);

    Layouts& layouts_;
    Seen given_up_;
    Seen taken_;
    std::uint32_t next_ = 0;
    std::vector<UniqueValue> values_;
};

}  // namespace onerepl::log
