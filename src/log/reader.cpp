// Reading the log back in the order of its numbers.
#include "pg/pg.h"

extern "C" {
#include "mb/pg_wchar.h"
}

#include "core/bytes.h"
#include "log/batch.h"
#include "log/chunk_record.h"
#include "log/encoder.h"
#include "log/link_filters.h"
#include "log/pack_cache.h"
#include "log/pack_scan.h"
#include "log/reader.h"
#include "log/recent_batches.h"
#include "log/transaction_order.h"
#include "pg/spi.h"
#include "pg/transaction.h"

#include <deque>
#include <set>

namespace onerepl::log {

namespace {

// Batch rows that one query brings.
constexpr std::uint64_t batches_fetched = 64;
// Buffers larger than this are given back after use.
constexpr std::size_t large = 1024 * 1024;
// Capture's flag of a transaction: records may be out of order.
constexpr std::uint32_t flag_out_of_order = 1;

struct EncodedBatch {
    Range numbers;
    Bytes transactions;
};

/// A memory context that is emptied for each pack. Not deleted when an exception passes: its parent is about
/// to go.
class Scratch {
  public:
    Scratch()
        : parent_(CurrentMemoryContext), context_(pg::call([] {
              return AllocSetContextCreate(CurrentMemoryContext, "onerepl log reader",
                                           ALLOCSET_DEFAULT_SIZES);
          })) {}
    /// Code in `work` allocates in the context.
    template <class Work>
    decltype(auto) in(Work&& work) {
        struct Back {
            MemoryContext to;
            ~Back() { MemoryContextSwitchTo(to); }
        } back{MemoryContextSwitchTo(context_)};
        return work();
    }
    void reset() { MemoryContextReset(context_); }
    void remove() { MemoryContextDelete(context_); }

  private:
    MemoryContext parent_;
    MemoryContext context_;
};

}  // namespace

/// What stays between reads.
struct Reader::State {
    explicit State(int of_link) : link(of_link), filters(of_link) {}

    int link;
    LinkFilters filters;
    Layouts layouts;
    Bytes encoded;
    std::set<std::uint64_t> careful;  // descriptions of records of which a value's function made an error
    std::string fault;                // of the record at hand

    // The batch that was read last, and some after it.
    std::deque<EncodedBatch> following;
    Range batch;
    std::vector<NumberedTransaction> transactions;

    /// The pack where the last read ended, so that the next one need not count from the transaction's start.
    struct {
        std::uint64_t xid = 0;
        std::int32_t seq = 0;
        Number first = 0;
    } resume;

    std::optional<TransactionOrder> order;
    PackCache packs;

    bool load_batch(Number n);
    void fetch_batches(Number n);
    void release_large(std::size_t size);
};

void Reader::State::fetch_batches(Number n) {
    following.clear();
    pg::query(
        "SELECT first, last, transactions FROM onerepl.batch"
        " WHERE first >= (SELECT first FROM onerepl.batch WHERE first <= $1 ORDER BY first DESC LIMIT 1)"
        " ORDER BY first LIMIT $2",
        {n, batches_fetched}, [&](const pg::Row& row) {
            following.push_back({{row.number(0), row.number(1)}, row.bytea(2)});
        });
}

/// Makes the batch that holds `n` the current one; false if there is none.
bool Reader::State::load_batch(Number n) {
    if (batch.contains(n)) return true;
    while (!following.empty() && following.front().numbers.last < n) following.pop_front();
    const auto* recent = following.empty() ? recent_batches().find(n) : nullptr;
    if (recent) following.push_back({recent->batch.numbers, recent->transactions});
    if (following.empty() || !following.front().numbers.contains(n)) fetch_batches(n);
    if (following.empty() || !following.front().numbers.contains(n)) return false;
    auto decoded = decode_transactions(following.front().transactions, following.front().numbers.first);
    if (!decoded || decoded->empty() || decoded->back().last() != following.front().numbers.last)
        throw pg::Error("XX001", "onerepl.batch of number " + std::to_string(n) + " is damaged");
    batch = following.front().numbers;
    transactions = std::move(*decoded);
    following.pop_front();
    return true;
}

/// After a pack of `size` bytes: a row of 100 MB is not to stay in three buffers until the next one comes.
void Reader::State::release_large(std::size_t size) {
    if (encoded.capacity() > large) Bytes().swap(encoded);
    if (size > large) layouts.forget();
}

namespace {

/// Send functions convert text to the client's encoding. A worker has no client, but ALTER DATABASE may have
/// given it a client_encoding; what travels is in A's own. A session's is left alone: who reads there
/// receives the same way.
void use_own_encoding() {
    if (MyBackendType != B_BG_WORKER || pg_get_client_encoding() == GetDatabaseEncoding()) return;
    pg::call([] { SetClientEncoding(GetDatabaseEncoding()); });
}

/// One call of Reader::read.
class Reading {
  public:
    Reading(Reader::State& state, Number from, Number to, const Reader::Each& each)
        : state_(state), next_(from), to_(to), each_(each) {}

    ReadEnd run() {
        use_own_encoding();
        if (state_.link != 0) state_.filters.load();
        const ReadEnd end = batches();
        tables_.close();
        scratch_.remove();
        state_.layouts.trim();
        state_.packs.trim();
        return end;
    }

  private:
    ReadEnd batches();
    ReadEnd transaction(const NumberedTransaction& transaction);
    ReadEnd chunks(const NumberedTransaction& transaction);
    ReadEnd in_log_order(const NumberedTransaction& transaction);
    ReadEnd pack(const NumberedTransaction& transaction, ByteView data, Number& n);
    ReadEnd out_of_log_order(const NumberedTransaction& transaction);
    bool hand_out(const NumberedTransaction& transaction, const PackedRecord& record);
    bool encode(const PackedRecord& record, Bytes& out);
    bool encode_change(RecordEncoder& encoder, const PackedRecord& record, Bytes& out);
    bool encode_filtered(const LinkFilter& filter, RecordEncoder& encoder, PackedRecord record, Bytes& out);

    Reader::State& state_;
    Number next_;
    const Number to_;
    const Reader::Each& each_;
    LogTables tables_;
    Scratch scratch_;
};

ReadEnd Reading::batches() {
    ReadEnd end = ReadEnd::done;
    while (next_ <= to_ && end == ReadEnd::done) {
        if (!state_.load_batch(next_)) return ReadEnd::missing;
        const std::size_t index = find_transaction(state_.transactions, next_);
        end = transaction(state_.transactions.at(index));
    }
    return end;
}

ReadEnd Reading::transaction(const NumberedTransaction& transaction) {
    if (transaction.table == chunk_table) return chunks(transaction);
    const bool ordered = (transaction.flags & flag_out_of_order) && transaction.count > 1;
    return ordered ? out_of_log_order(transaction) : in_log_order(transaction);
}

/// Where the description's id is in an encoded record that is not a skip.
std::uint64_t description_of(ByteView record) {
    ByteReader reader(record);
    reader.u16();
    return reader.u64();
}

/// A chunk that is gone was confirmed, or the link was started anew since: it is not sent again.
ReadEnd Reading::chunks(const NumberedTransaction& transaction) {
    const int link = static_cast<int>(transaction.flags);
    while (next_ <= std::min(to_, transaction.last())) {
        const bool everybodys = link == 0;
        const bool wanted = everybodys || state_.link == 0 || state_.link == link;
        std::optional<Bytes> record;
        if (wanted) record = everybodys ? load_sequences(next_) : load_chunk(next_);
        LogEntry entry;
        entry.n = next_;
        entry.last_of_transaction = entry.n == transaction.last();
        if (record) {
            entry.operation = Operation{record->front()};
            entry.description = description_of(*record);
        } else {
            encode_record(Record{}, record.emplace());
        }
        entry.record = *record;
        next_++;
        if (!each_(entry)) return ReadEnd::stopped;
    }
    return ReadEnd::done;
}

/// What PostgreSQL says when a value's form is larger than its memory can be.
bool is_too_large(const pg::Error& error) {
    return error.sqlstate() == "54000" ||
           (error.sqlstate() == "XX000" &&
            error.report().message.starts_with("invalid memory alloc request size"));
}

bool is_row_change(const PackedRecord& record) {
    return record.operation == Operation::insert || record.operation == Operation::update ||
           record.operation == Operation::remove;
}

/// False: without the row's values, which were not captured, or of which no form can be made. A fault of a
/// value's function costs the transaction; from then on the table's records have a subtransaction each.
bool Reading::encode_change(RecordEncoder& encoder, const PackedRecord& record, Bytes& out) {
    state_.fault.clear();
    try {
        if (state_.careful.contains(record.description))
            pg::in_subtransaction([&] { encoder.encode(record, out); });
        else
            encoder.encode(record, out);
        return !record.too_large;
    } catch (const pg::Error& error) {
        if (!is_row_change(record) || pg::is_transient(error.sqlstate())) throw;
        if (!is_too_large(error)) {
            if (state_.careful.insert(record.description).second) throw;
            state_.fault = error.report().message;
        }
    }
    out.clear();
    encoder.encode_without_data(record, out);
    return false;
}

/// Encodes the record next_ as the link gets it. False: without the row's values.
bool Reading::encode(const PackedRecord& record, Bytes& out) {
    if (record.description != 0) {
        RecordEncoder& encoder = state_.layouts.of(record.description);
        if (!state_.filters.empty())
            if (const LinkFilter* filter = state_.filters.find(encoder.layout(), next_))
                return encode_filtered(*filter, encoder, record, out);
        if (record.operation != Operation::statement) return encode_change(encoder, record, out);
    }
    RecordEncoder::encode_statement(record, out);
    return true;
}

bool Reading::encode_filtered(const LinkFilter& filter, RecordEncoder& encoder, PackedRecord record,
                              Bytes& out) {
    if (!state_.filters.apply(filter, encoder, record)) {
        encode_record(Record{}, out);
    } else if (record.operation == Operation::statement) {
        RecordEncoder::encode_statement(record, out);
    } else {
        return encode_change(state_.layouts.of(record.description), record, out);
    }
    return true;
}

/// Encodes the record next_ and gives it to the caller; false if he wants no more. Moves next_.
bool Reading::hand_out(const NumberedTransaction& transaction, const PackedRecord& record) {
    Bytes& encoded = state_.encoded;
    encoded.clear();
    LogEntry entry;
    entry.without_values = !scratch_.in([&] { return encode(record, encoded); });
    entry.fault = state_.fault;
    entry.n = next_++;
    entry.last_of_transaction = entry.n == transaction.last();
    entry.description = record.description;
    entry.operation = Operation{encoded.front()};
    entry.record = encoded;
    return each_(entry);
}

ReadEnd Reading::in_log_order(const NumberedTransaction& transaction) {
    auto& resume = state_.resume;
    if (resume.xid != transaction.xid || resume.first > next_)
        resume = {transaction.xid, 0, transaction.first};
    PackScan scan(tables_, transaction.table, transaction.xid, resume.seq);
    Number n = resume.first;  // the first of the pack at hand
    ReadEnd end = ReadEnd::done;
    while (end == ReadEnd::done && next_ <= std::min(to_, transaction.last())) {
        if (!scan.next()) {
            end = ReadEnd::missing;
            break;
        }
        resume = {transaction.xid, scan.seq(), n};
        if (!scan.is_last() && n + scan.count() <= next_) {
            n += scan.count();
            continue;
        }
        const ByteView data = scratch_.in([&] { return scan.data(); });
        end = pack(transaction, data, n);
        scratch_.reset();
        state_.release_large(data.size());
    }
    scan.close();
    return end;
}

/// The records of one pack, whose first has number `n`; moves `n` after them.
ReadEnd Reading::pack(const NumberedTransaction& transaction, ByteView data, Number& n) {
    PackReader reader(data);
    for (PackedRecord record; reader.next(record); n++) {
        if (n < next_) continue;
        if (next_ > to_) return ReadEnd::done;
        if (n > transaction.last())
            throw pg::Error("XX001", "transaction " + std::to_string(transaction.xid) +
                                         " has more records in the onerepl log than were numbered");
        if (!hand_out(transaction, record)) return ReadEnd::stopped;
    }
    if (reader.damaged()) throw pg::Error("XX001", "a pack of the onerepl log is damaged");
    return ReadEnd::done;
}

ReadEnd Reading::out_of_log_order(const NumberedTransaction& transaction) {
    if (!state_.order || state_.order->xid() != transaction.xid) {
        state_.order.reset();
        state_.order.emplace(tables_, transaction);
    }
    TransactionOrder& order = *state_.order;
    if (order.size() != transaction.count) {
        const bool gone = order.size() == 0;
        state_.order.reset();
        if (gone) return ReadEnd::missing;
        throw pg::Error("XX001", "transaction " + std::to_string(transaction.xid) +
                                     " has another number of records in the onerepl log than were numbered");
    }
    while (next_ <= std::min(to_, transaction.last())) {
        const TransactionOrder::Place place = order.at(next_ - transaction.first, tables_, state_.layouts);
        const auto& records = scratch_.in([&]() -> const std::vector<PackedRecord>& {
            return state_.packs.records(tables_, transaction, order.seq(place.pack));
        });
        const bool more = hand_out(transaction, records.at(place.record));
        scratch_.reset();
        state_.release_large(state_.encoded.size());
        if (!more) return ReadEnd::stopped;
    }
    return ReadEnd::done;
}

}  // namespace

Reader::Reader(int link) : state_(std::make_unique<State>(link)) {}
Reader::~Reader() = default;
Reader::Reader(Reader&&) noexcept = default;
Reader& Reader::operator=(Reader&&) noexcept = default;

ReadEnd Reader::read(Number from, Number to, const Each& each) {
    return Reading(*state_, from, to, each).run();
}

}  // namespace onerepl::log
