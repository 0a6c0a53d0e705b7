// From stored bytes to the wire: captured rows of one layout become encoded core records.
#pragma once

#include "pg/pg.h"

#include "log/layout.h"
#include "log/pack.h"

#include <map>
#include <memory>

namespace onerepl::log {

/// Encodes the records of one table description. Numbers, dates, strings and the like are converted here;
/// other types by their send function.
class RecordEncoder {
  public:
    /// What it keeps in PostgreSQL's memory goes to `context`, which must outlive it. Throws pg::Error.
    RecordEncoder(Layout layout, MemoryContext context);

    /// Appends the record's wire form (core/record.h) to `out`. Scratch memory comes from
    /// CurrentMemoryContext. Throws pg::Error: XX001 if the image is damaged.
    void encode(const PackedRecord& record, Bytes& out);
    /// The same of a row change, without its values but the key's: its form could not be made. Throws
    /// pg::Error as above.
    void encode_without_data(const PackedRecord& record, Bytes& out);

    /// The same for a statement, which needs no encoder.
    static void encode_statement(const PackedRecord& record, Bytes& out);

    /// Appends a row that is not from the log, as a record's row: values by index into the layout's columns,
    /// those that are rendered as `text`. Throws pg::Error.
    void encode_row(const Datum* values, const bool* nulls, Bytes& out);

    const Layout& layout() const { return layout_; }
    /// The encoded TableDescription.
    const Bytes& description() const { return description_; }
    /// For those who want the values themselves.
    RowDecoder& decoder() { return decoder_; }

  private:
    /// How a value becomes bytes.
    enum class Form : std::uint8_t { omitted, fixed1, fixed2, fixed4, fixed8, plain16, string, bytes, send };
    struct Column {
        std::size_t index = 0;  // into the layout's columns
        Form form = Form::send;
        bool text = false;  // ValueKind::text
        FmgrInfo* send = nullptr;
    };

    Column plan(std::size_t index, MemoryContext context) const;
    static Form form_of(const LayoutColumn& column);
    bool is_left_out(const PackedRecord* record, std::size_t column) const;
    void put_row(const PackedRecord& record, Bytes& out);
    void put_old(const PackedRecord& record, Bytes& out);
    void put_columns(const std::vector<Column>& columns, const PackedRecord* record, Bytes& out);
    void put_value(const Column& column, Datum value, Bytes& out);
    void take_apart(const Image& image);

    Layout layout_;
    RowDecoder decoder_;
    std::vector<Column> row_;  // the wire's columns
    std::vector<Column> old_;  // the key's columns; without a key the same as row_
    bool has_key_ = false;
    std::vector<bool> in_key_;  // by the layout's columns
    Bytes description_;
};

/// Encoders by description id (also those of log/link_filters.h), loaded when they are first asked for.
class Layouts {
  public:
    Layouts() = default;
    ~Layouts();
    Layouts(const Layouts&) = delete;
    Layouts& operator=(const Layouts&) = delete;

    /// Stays valid until `forget`. In a transaction with SPI connected. Throws pg::Error: XX001 if there is
    /// no such description.
    RecordEncoder& of(std::uint64_t description);
    /// Null if there is no such description.
    RecordEncoder* find(std::uint64_t description);
    /// Drops all; references become invalid.
    void forget();
    /// Gives the memory back when very many descriptions were loaded; references become invalid then.
    void trim();

  private:
    MemoryContext context_ = nullptr;
    std::map<std::uint64_t, std::unique_ptr<RecordEncoder>> encoders_;
    RecordEncoder* newest_ = nullptr;  // the last one asked for: rows of one table come in runs
};

}  // namespace onerepl::log
