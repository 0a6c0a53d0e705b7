// Builds the frames of one body of A: loads records from the log and cuts what is too large into parts (P1).
#pragma once

#include "core/remote.h"
#include "log/reader.h"

#include <optional>

namespace onerepl::sender {

/// Frames of one body, and what they hold.
struct Built {
    Bytes frames;
    Carried carried;
    std::vector<Batch> batches;
    /// A number that was to be sent and is not in the log: the log is damaged.
    std::optional<Number> missing;
};

/// One per link, because of what it keeps for the next body. All in a transaction with SPI connected.
class BodyBuilder {
  public:
    /// `link`: id in onerepl.link.
    explicit BodyBuilder(int link) : link_(link), reader_(link) {}

    /// `part_size`: bytes of one part of a record that is larger than that (RemoteConfig::batch_bytes).
    Built build(const Parties& parties, const Outgoing& outgoing, std::uint64_t part_size);
    /// Numbers up to `n` will not be asked for in parts again.
    void forget_up_to(Number n);
    /// The transaction was rolled back, and what it wrote into the journal with it.
    void forget_notes() { noted_without_values_ = 0; }

  private:
    struct Body;
    bool add(Body& body, const Missing& wanted);
    bool add_entry(Body& body, const log::LogEntry& entry, const Missing& wanted);
    bool add_parts(Body& body, Number n, bool last_of_transaction, ByteView record, const Missing& wanted);

    /// Once for each record, until the worker ends.
    void note_without_values(Number n, std::string_view fault);

    int link_;
    Number noted_without_values_ = 0;
    log::Reader reader_;
    /// The last record that travels in parts: it is not to be read from the log once for each part.
    struct Large {
        Number n = 0;
        bool last_of_transaction = false;
        Bytes record;
    } large_;
};

}  // namespace onerepl::sender
