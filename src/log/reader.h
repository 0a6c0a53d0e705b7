// Reading the log back as records of the wire, in the order of their numbers.
//
// All of it runs in a transaction with an active snapshot and SPI connected, and holds no lock or pin between
// calls. A pg::Error, or an exception out of `each`, leaves scans open: abort the transaction then.
#pragma once

#include "core/history.h"
#include "core/record.h"

#include <functional>
#include <memory>
#include <string_view>

namespace onerepl::log {

/// One numbered record.
struct LogEntry {
    Number n = 0;
    bool last_of_transaction = false;  // P5
    std::uint64_t description = 0;     // id of the table description; what filters need without decoding
    Operation operation = Operation::skip;
    /// Encoded core Record; valid until `each` returns.
    ByteView record;
    /// The record has not the row's values: it was too large, or no form could be made of them.
    bool without_values = false;
    std::string_view fault{};  // then: what was wrong with them; empty: their size
};

enum class ReadEnd : std::uint8_t {
    done,     // every number of the range was handed out
    stopped,  // `each` returned false
    missing,  // the next number is not in the log: not given yet, or purged (R3f)
};

/// Keeps what makes the next read cheap (layouts, where the last one ended); the history it reads never
/// changes, so one Reader may live as long as its process. Not shared between databases. A link that reads at
/// a place of its own had better have a Reader of its own.
class Reader {
  public:
    /// `link`: whose numbers are read; those of other links' chunks are skips (P17). 0: every link's.
    explicit Reader(int link = 0);
    ~Reader();
    Reader(Reader&&) noexcept;
    Reader& operator=(Reader&&) noexcept;

    struct State;  // reader.cpp
    using Each = std::function<bool(const LogEntry&)>;

    /// Hands out the records from..to in order, from the middle of a batch or transaction if need be. Memory:
    /// one pack (a record larger than a pack: a small multiple of its size), whatever the size of the
    /// transaction; for a transaction with nested statements out of order also 40 bytes a record.
    ReadEnd read(Number from, Number to, const Each& each);

  private:
    std::unique_ptr<State> state_;
};

/// One numbered transaction, as batches list it.
struct TransactionAt {
    Range numbers;
    std::uint64_t xid = 0;
    std::int64_t made_at = 0;  // when it was numbered, microseconds since 1970
};
/// The transaction that holds `n`, if its batch is still there.
std::optional<TransactionAt> transaction_at(Number n);

/// The batches that hold any of `numbers`, in order, for a body's header (P9). Those that were purged are
/// missing.
std::vector<Batch> batches(Range numbers);

/// How long ago `n` got its number, by this server's clock; nullopt: it has none yet, or its batch is purged.
std::optional<Time> age_of(Number n);

/// The history's identity at `n` (0: the database's identifier). nullopt: beyond M, or purged.
std::optional<Identity> identity_at(Number n);

/// The number from which on all records up to M can be read; M + 1 if none can.
Number first_number();

/// The encoded TableDescription (core/record.h) of A's description `id`; nullopt if there is none.
std::optional<Bytes> description(std::uint64_t id);

}  // namespace onerepl::log
