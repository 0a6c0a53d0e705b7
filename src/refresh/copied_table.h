// One table of the remote, read for chunks of its copy.
#pragma once

#include "pg/pg.h"

extern "C" {
#include "executor/spi.h"
}

#include "capture/render.h"
#include "core/record.h"
#include "log/encoder.h"
#include "pg/spi.h"

#include <functional>
#include <string>

namespace onerepl::refresh {

enum class Access : std::uint8_t {
    granted,
    later,  // locked by somebody, or rewritten since the transaction's snapshot was taken
    gone,   // there is no such table any more
};

/// Locks the table for reading until the end of the transaction, without waiting. A table that was rewritten
/// after the snapshot looks empty to it, so it is left alone. In a REPEATABLE READ transaction with SPI
/// connected.
Access access_table(Oid relation);

/// A key as text, a value for each column; empty: none.
using Key = std::vector<std::string>;

/// Keys after `from`, up to `to`; empty: from the first row, to the last.
struct KeyRange {
    Key from;
    Key to;
};

/// Appends a row of texts, as wire values.
void append_texts(const std::vector<std::string>& texts, Bytes& rows);

/// Of a table that access was granted to, for the rest of the transaction.
class CopiedTable {
  public:
    /// As `link` gets it. `compared`: the central will compare ranges of keys.
    CopiedTable(Oid relation, int link, bool compared, log::Layouts& layouts);

    std::uint64_t description() const { return description_; }
    bool has_key() const { return !key_.empty(); }
    const std::vector<KeyOrder>& order() const { return order_; }

    /// Rows of a verification's chunk.
    struct Digest {
        std::uint64_t rows = 0;
        std::string digest;
        Key to;  // empty: to the last row
    };
    /// Of the rows of the range, at most `limit` of them.
    Digest digest(const KeyRange& range, std::uint64_t limit) const;
    /// Appends for each row of the range, as wire values: the texts of its key and the digests of its
    /// columns. Gives the count of rows.
    std::uint32_t append_row_digests(const KeyRange& range, Bytes& rows) const;
    std::size_t column_count() const { return wire_.size(); }

    /// Begins to read the rows of the range, at most `limit` of them if that is not 0.
    void read(const KeyRange& range, std::uint64_t limit);
    /// Appends one row as wire values; false at the end.
    bool next(Bytes& rows);
    /// The key of the row that `next` gave last.
    Key key() const;
    /// After the last `next`.
    void end();

  private:
    /// A column whose values are rendered as text.
    struct Rendered {
        std::size_t position;  // in the layout
        capture::TextForm* form;
    };

    /// Where `select` has a key column, and how its value becomes text; null: it is text already.
    struct KeyOutput {
        std::size_t position;
        FmgrInfo* output;
    };

    void describe(Oid relation, int link, log::Layouts& layouts);
    void plan_columns(Oid relation);
    void plan_key(Oid relation, bool compared);
    std::vector<std::string> key_expressions() const;
    std::vector<std::string> compared_columns() const;
    std::vector<std::string> key_texts() const;
    std::string condition(const Key& bound, const char* comparison, int parameter) const;
    std::string rows_of(const KeyRange& range) const;
    std::string order_by() const;
    Key key_at_end(const KeyRange& range, std::uint64_t limit) const;
    std::string select(const KeyRange& range, std::uint64_t limit) const;
    void query(const std::string& sql, const KeyRange& range,
               const std::function<void(const pg::Row&)>& each) const;
    bool fetch();
    void free_rows();

    std::string name_;
    Oid owner_;
    std::string filter_;  // SQL; empty: all rows
    std::uint64_t description_ = 0;
    log::RecordEncoder* encoder_ = nullptr;
    std::vector<std::size_t> key_;  // of the layout's columns
    std::vector<KeyOrder> order_;
    std::vector<Oid> types_;  // of the key's columns
    std::vector<std::size_t> wire_;
    std::vector<Rendered> rendered_;
    std::vector<KeyOutput> key_outputs_;

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
