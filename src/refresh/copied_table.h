// One table of the remote, read for chunks of its copy.
#pragma once

#include "pg/pg.h"

extern "C" {
#include "executor/spi.h"
}

#include "core/record.h"
#include "log/encoder.h"

#include <string>

namespace onerepl::refresh {

enum class Access : std::uint8_t {
    granted,
    later,  // locked by somebody, or rewritten since the transaction's snapshot was taken
    gone,   // there is no such table any more
};

/// Locks the table for reading until the end of the transaction, without waiting. A table that was rewritten
/// behind the snapshot looks empty to it, so it is left alone. In a REPEATABLE READ transaction with SPI
/// connected.
Access access_table(Oid relation);

/// A key as text, a value for each column; empty: none.
using Key = std::vector<std::string>;

/// Of a table that access was granted to, for the rest of the transaction.
class CopiedTable {
  public:
    /// `compared`: the central will compare ranges of keys.
    CopiedTable(Oid relation, bool compared, log::Layouts& layouts);

    std::uint64_t description() const { return description_; }
    bool has_key() const { return !key_.empty(); }
    const std::vector<KeyOrder>& order() const { return order_; }

    /// Rows of a verification's chunk.
    struct Digest {
        std::uint64_t rows = 0;
        std::string digest;
        Key to;  // empty: to the last row
    };
    /// Of the rows behind `from`, at most `limit` of them.
    Digest digest_behind(const Key& from, std::uint64_t limit) const;

    /// Begins to read the rows whose key is behind `from`, at most `limit` of them if that is not 0.
    void read_behind(const Key& from, std::uint64_t limit);
    /// Appends one row as wire values; false at the end.
    bool next(Bytes& rows);
    /// The key of the row that `next` gave last.
    Key key() const;
    /// After the last `next`.
    void end();

  private:
    /// A column whose values are rendered as text.
    struct Rendered {
        std::size_t place;  // in the layout
        FmgrInfo* output;
    };

    void describe(Oid relation, log::Layouts& layouts);
    void plan_columns(Oid relation);
    std::vector<std::string> key_expressions() const;
    std::string condition(const Key& bound, const char* comparison, int parameter) const;
    Key key_at_end(const Key& from, std::uint64_t limit) const;
    std::string select(const Key& from, std::uint64_t limit) const;
    bool fetch();
    void free_rows();

    std::string name_;
    std::uint64_t description_ = 0;
    log::RecordEncoder* encoder_ = nullptr;
    std::vector<std::size_t> key_;  // of the layout's columns
    std::vector<KeyOrder> order_;
    std::vector<Oid> types_;  // of the key's columns
    std::vector<std::size_t> wire_;
    std::vector<Rendered> rendered_;

    Portal portal_ = nullptr;
    SPITupleTable* rows_ = nullptr;
    std::uint64_t at_ = 0;  // the next one in rows_
    MemoryContext scratch_ = nullptr;
    std::vector<Datum> selected_;  // as the query gives them
    std::vector<char> selected_nulls_;
    std::vector<Datum> values_;  // by the layout's columns
    std::vector<char> nulls_;
};

}  // namespace onerepl::refresh
