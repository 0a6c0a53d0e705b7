// What an object transfer carries: one logged change. Row values travel as pgoutput's do: null, unchanged,
// text, binary.
#pragma once

#include "core/types.h"

#include <optional>

namespace onerepl {

enum class Operation : std::uint8_t {
    insert = 'I',
    update = 'U',
    remove = 'D',
    truncate = 'T',
    describe = 'R',   // a table description takes effect here; its object is the table (P17)
    skip = 'S',       // this number means nothing to this link; counts as written (P17)
    chunk = 'C',      // a piece of a table's copy, exact at its number (Part III, P17)
    statement = 'X',  // a statement of SQL that the remote executed at this place (P17)
    sequences = 'Q',  // where sequences stood after all changes up to here (P17)
};

/// As the administrator knows it: "insert", "update", "delete", "truncate", "describe", "refresh",
/// "statement", "sequences", "skip".
const char* name_of(Operation operation);

enum class ValueKind : std::uint8_t { null = 'n', unchanged = 'u', text = 't', binary = 'b' };

struct Value {
    ValueKind kind = ValueKind::null;
    ByteView bytes{};  // text: in A's server encoding, no terminator; binary: the type's send format
};

/// How the values of a key column are ordered where ranges of keys are compared, so that both sides agree.
enum class KeyOrder : std::uint8_t {
    natural = 'n',    // the type's own order
    collate_c = 'c',  // a string: bytes of its characters' codes (COLLATE "C")
    text = 't',       // the value's text, as collate_c
};

/// Part III: rows of one table whose keys lie in (from, to], as they were when all numbers before the chunk's
/// had happened and none after it. The chunks of one refresh follow each other by key; all rows of a table
/// without key are in the chunks of one transaction.
struct Chunk {
    std::uint64_t refresh = 0;  // A's id of the refresh, never used again
    /// The table is about to be copied: until the last chunk its changes are written tolerantly. Has no rows.
    bool opens = false;
    bool first = false;      // the first one with rows: B empties the table, unless it is repaired
    bool last = false;       // the copy is complete
    bool cancelled = false;  // the copy ends here and is not complete. Has no rows.
    bool repair = false;     // B's rows stay where they are equal; those in the range that A lacks go
    /// Nothing is copied: B compares. The first row is two texts, the count of rows and their digest. If
    /// there are more, each is a row of A: the texts of its key, and one of 16 digits for each compared
    /// column.
    bool verify = false;
    bool partial = false;  // only a range of keys is repaired: what else the table lacks, it goes on to lack
    std::vector<KeyOrder> order{};  // for each column of the key
    /// The keys as text, in A's encoding; empty: from the first row, to the last.
    std::vector<ByteView> from{};
    std::vector<ByteView> to{};
    std::uint32_t row_count = 0;
    ByteView rows{};  // read them by ChunkRows
};

/// A setting of PostgreSQL.
struct Setting {
    ByteView name{};
    ByteView value{};
};

/// What was done on A at this place beside changing rows. All texts are in `encoding`, without zero bytes.
struct Statement {
    /// Recorded by itself, because it changes a tracked table, whose description the record names as it was
    /// before; else the administrator gave it to be executed on both sides.
    bool captured = false;
    /// The table was dropped. There is no text, and nothing is executed.
    bool dropped = false;
    ByteView encoding{};     // of A's database, as "UTF8"
    ByteView search_path{};  // under which `text` is to be read
    /// Other settings under which it is to be read and executed, where they are not the usual ones.
    std::vector<Setting> settings{};
    ByteView text{};
};

/// Where a sequence stood when all changes before the record had happened, or further on.
struct SequenceState {
    ByteView schema{};
    ByteView name{};
    std::int64_t last_value = 0;
    bool is_called = false;  // false: last_value is the next one
};

struct Record {
    Operation operation = Operation::skip;
    /// Id of the table description; 0 for skip, sequences, and a statement that was not captured.
    std::uint64_t description = 0;
    /// The object's key (description's key columns, in their order) before the change; or, if the description
    /// has no key, the whole old row (all columns, in order). update: only when the key changed, or without
    /// key; remove: always.
    std::optional<std::vector<Value>> old_key{};
    /// insert, update: the row's columns in the description's order.
    std::vector<Value> row{};
    /// insert, update, remove: the row was too large for A's log, or for a message. The key's values are
    /// there if possible, all others are `unchanged`: B cannot write it.
    bool too_large = false;
    /// describe: the encoded TableDescription.
    ByteView table{};
    /// truncate: flags of the statement.
    bool truncate_cascade = false;
    bool truncate_restart_identity = false;
    Chunk chunk{};
    Statement statement{};
    /// sequences: these are all that follow; others that were told before are gone, or have other names.
    bool sequences_complete = false;
    /// sequences: their names are in this encoding, of A's database, without zero bytes.
    ByteView sequence_encoding{};
    std::vector<SequenceState> sequences{};
};

void encode_record(const Record& record, Bytes& out);
/// Views point into `in`. nullopt: not a record (P14: never a crash, whatever the bytes).
std::optional<Record> decode_record(ByteView in);
/// The same into a record that is used again, so that its memory is too. False: not a record, and `record` is
/// undefined.
bool decode_record(ByteView in, Record& record);

/// Walks through a chunk's rows.
class ChunkRows {
  public:
    explicit ChunkRows(ByteView rows) : left_(rows) {}
    /// The next row: the description's columns in their order. False at the end, or if that is no row.
    bool next(std::vector<Value>& row);
    bool at_end() const { return left_.empty(); }

  private:
    ByteView left_;
};

struct ColumnDescription {
    std::string name{};
    std::string type_schema{};
    std::string
        type_name{};  // as in pg_type.typname, of the base type for a domain whose values travel binary
    std::int32_t typmod = -1;
    /// Position in the key from 1; 0: not part of it.
    std::uint16_t key_position = 0;
    /// Generated columns are described, but travel as `unchanged`: B computes its own.
    bool generated = false;

    bool operator==(const ColumnDescription&) const = default;
};

/// A table as its records are to be read. The id is A's, never reused.
struct TableDescription {
    std::uint64_t id = 0;
    std::string schema{};
    std::string name{};
    std::string encoding{};  // of A's database, as "UTF8"
    std::vector<ColumnDescription> columns{};
    /// Where A's rows are in a partition: its own name, which matters to TRUNCATE alone; `schema` and `name`
    /// are those of the table that it belongs to. Empty: they are not.
    std::string partition_schema{};
    std::string partition_name{};
    /// The condition that the partition's rows fulfil, in SQL over the columns; empty: they need not.
    std::string partition_condition{};

    /// Indexes into `columns`, in key order; empty: no key, old rows travel whole.
    std::vector<std::size_t> key() const;
    bool operator==(const TableDescription&) const = default;
};

void encode_description(const TableDescription& table, Bytes& out);
std::optional<TableDescription> decode_description(ByteView in);

}  // namespace onerepl
