// Encoding of a batch's transactions, a few bytes each.
#include "log/batch.h"

#include "log/zigzag.h"

#include <algorithm>
#include <limits>

namespace onerepl::log {

namespace {

constexpr std::uint8_t encoding_version = 1;

void put_varint(Bytes& out, std::uint64_t value) {
    for (; value >= 0x80; value >>= 7) out.push_back(static_cast<std::uint8_t>(value | 0x80));
    out.push_back(static_cast<std::uint8_t>(value));
}

/// False at the end of the input, or beyond 64 bits.
bool take_varint(ByteView& in, std::uint64_t& value) {
    value = 0;
    for (unsigned shift = 0; shift < 64 && !in.empty(); shift += 7) {
        const std::uint8_t byte = in.front();
        in = in.subspan(1);
        value |= static_cast<std::uint64_t>(byte & 0x7f) << shift;
        if (byte < 0x80) return true;
    }
    return false;
}

bool take_transaction(ByteView& in, NumberedTransaction& transaction) {
    std::uint64_t difference, where;
    if (!take_varint(in, difference) || !take_varint(in, transaction.count) || !take_varint(in, where))
        return false;
    transaction.xid += static_cast<std::uint64_t>(unzigzag(difference));
    transaction.flags = static_cast<std::uint32_t>(where / log_table_limit);
    transaction.table = static_cast<std::uint32_t>(where % log_table_limit);
    constexpr auto largest = static_cast<Number>(std::numeric_limits<std::int64_t>::max());
    return transaction.count >= 1 && transaction.count <= largest - transaction.first;
}

}  // namespace

Bytes encode_transactions(std::span<const NumberedTransaction> transactions) {
    Bytes out{encoding_version, 0};
    std::uint64_t previous = 0;
    for (const NumberedTransaction& transaction : transactions) {
        put_varint(out, zigzag(static_cast<std::int64_t>(transaction.xid - previous)));
        put_varint(out, transaction.count);
        put_varint(out, std::uint64_t{transaction.flags} * log_table_limit + transaction.table);
        out[1] = static_cast<std::uint8_t>(out[1] | 1u << transaction.table);
        previous = transaction.xid;
    }
    return out;
}

std::optional<std::vector<NumberedTransaction>> decode_transactions(ByteView in, Number batch_first) {
    if (in.size() < 2 || in[0] != encoding_version) return std::nullopt;
    in = in.subspan(2);
    std::vector<NumberedTransaction> transactions;
    NumberedTransaction transaction;
    transaction.first = batch_first;
    while (!in.empty()) {
        if (!take_transaction(in, transaction)) return std::nullopt;
        transactions.push_back(transaction);
        transaction.first += transaction.count;
    }
    return transactions;
}

std::size_t find_transaction(std::span<const NumberedTransaction> transactions, Number n) {
    const auto after = std::ranges::upper_bound(transactions, n, {}, &NumberedTransaction::first);
    if (after == transactions.begin() || n > std::prev(after)->last()) return transactions.size();
    return static_cast<std::size_t>(after - transactions.begin() - 1);
}

}  // namespace onerepl::log
