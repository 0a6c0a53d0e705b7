// Packs: the format of onerepl.change_N.data. Many change records in one tuple, a byte or two each beside the
// row's own bytes. A pack is read without any other pack; an image's columns are read with its description's
// Layout.
//
// Format. A pack is a sequence of records; varints are LEB128, signed ones zigzag. A record:
//   header     bits 0-1  0 insert, 1 update, 2 delete, 3 other
//              bit 2     a description id follows (varint); else the previous record's
//              bit 3     the command id's difference to the previous record's follows (signed varint)
//              bit 4     the new image has a null bitmap
//              bit 5     an extension byte follows
//              bit 6     tuple ids are the successors of the previous ones and not written
//              bit 7     the new image is as long as the previous record's, and its length not written
//   extension  insert, update, delete:
//              bits 0-1  old image: 0 none, 1 key, 2 key and unique columns, 3 full
//              bit 2     the old image has a null bitmap
//              bit 3     the key changed (update)
//              bit 4     a bitmap of unchanged columns follows
//              bit 5     the table was rewritten since its last record (see `rewritten`)
//              bit 6     the row was too large: its images hold the key, if that, and nulls
//              other:    0 the bases of all differences are reset (packs were joined; no record)
//                        1 describe
//                        2 truncate     plus bit 4: cascade, bit 5: restart identity
//                        3 statement    plus bit 4: captured, bit 5: dropped
//   description id, command id difference
//   statement  what stands after the description's id on the wire: length (varint), bytes
//   tuple ids  (block * 2048 + offset) as signed differences to the last
//                        old id         update, delete
//                        new id         insert, update
//   old image  length (varint), bytes
//   unchanged  length (varint), bytes: bit i % 8 of byte i / 8 stands for attribute number i + 1
//   new image  length (varint), bytes
// An image is a heap tuple without its header: null bitmap, if there is one, then the data area.
#pragma once

#include "pg/pg.h"

extern "C" {
#include "access/htup_details.h"
#include "storage/itemptr.h"
}

#include "log/layout.h"

namespace onerepl::log {

/// Which columns an old image holds; the others are null in it.
enum class OldImage : std::uint8_t { none = 0, key = 1, key_and_unique = 2, full = 3 };

/// Where a row version stood (ctid). offset 0: none.
struct TupleId {
    std::uint32_t block = 0;
    std::uint16_t offset = 0;
    auto operator<=>(const TupleId&) const = default;
};

/// A row as stored; RowDecoder takes it apart.
struct Image {
    bool has_nulls = false;
    ByteView bytes;
};

/// One record of a pack. Views point into the pack.
struct PackedRecord {
    Operation operation = Operation::skip;  // insert, update, remove, truncate, describe, statement
    /// Id of the table's description as of this change; describe: the one that begins to hold here;
    /// statement: 0 if it was not captured.
    std::uint64_t description = 0;
    /// Command id under which the change was made, counted within its transaction. truncate, describe: the
    /// current one.
    std::uint32_t command = 0;
    TupleId old_id;  // update, remove: the version that was consumed
    TupleId new_id;  // insert, update: the version that was made
    /// update: none if neither the key nor a column of another unique index changed (tables with a key).
    /// remove: always there. key_and_unique only where the table has unique columns outside its key.
    OldImage old_kind = OldImage::none;
    bool key_changed = false;  // update of a table with a key
    /// The table got a new file (TRUNCATE, rewrite) before this record: ids of its records before this one,
    /// in the same transaction, do not name the same versions as ids from here on.
    bool rewritten = false;
    /// The row was larger than onerepl.max_row_size: the images hold the key's values and nulls for the
    /// others.
    bool too_large = false;
    Image old_row;
    Image new_row;  // insert, update
    /// update: columns that kept their TOAST value and are null in `new_row`. Empty: none.
    ByteView unchanged;
    bool truncate_cascade = false;
    bool truncate_restart_identity = false;
    bool statement_captured = false;
    bool statement_dropped = false;
    ByteView statement;  // statement: as on the wire, after the description's id

    bool is_unchanged(std::size_t column) const {
        return column / 8 < unchanged.size() && (unchanged[column / 8] >> column % 8 & 1);
    }
};

/// Walks through a pack's records. Never reads outside `pack`, whatever its bytes.
class PackReader {
  public:
    explicit PackReader(ByteView pack) : left_(pack) {}
    /// The next record; false at the end, and when the pack is damaged.
    bool next(PackedRecord& record);
    bool damaged() const { return damaged_; }

  private:
    std::uint64_t varint();
    std::int64_t signed_varint();
    ByteView take(std::uint64_t size);
    ByteView counted() { return take(varint()); }
    TupleId next_id(std::uint64_t& base, bool successor);
    void reset_bases();
    void other(PackedRecord& record, std::uint8_t what);
    void row_change(PackedRecord& record, std::uint8_t header, std::uint8_t extension);
    void ids(std::uint8_t header, PackedRecord& record);

    ByteView left_;
    bool damaged_ = false;
    std::uint64_t description_ = 0;
    std::uint32_t command_ = 0;
    std::uint64_t old_id_ = 0;
    std::uint64_t new_id_ = 0;
    std::uint64_t new_length_ = 0;
};

/// Takes images of one layout apart.
class RowDecoder {
  public:
    /// The descriptor is made in CurrentMemoryContext, which must outlive the decoder. Throws pg::Error
    /// (memory).
    explicit RowDecoder(const Layout& layout);
    /// Values may point into a copy of the image that lives until the next decode; varlena values may be
    /// compressed or short, never external. False: the image cannot be one of this layout (too short for its
    /// null bitmap).
    bool decode(const Image& image);
    /// By index into Layout::columns. The value is of LayoutColumn::type.
    bool is_null(std::size_t column) const { return nulls_[column] != 0; }
    Datum value(std::size_t column) const { return values_[column]; }
    std::size_t size() const { return values_.size(); }
    TupleDesc descriptor() const { return descriptor_; }

  private:
    TupleDesc descriptor_;
    std::vector<std::uint64_t> copy_;  // aligned as heap tuples are
    std::vector<Datum> values_;
    std::vector<char> nulls_;
};

// ----------------------------------------------------------------------------------------------------------
// writing

/// A pack under construction. Plain palloc'd memory and no destructor: the capture trigger is left by
/// longjmp.
struct Pack {
    char* data = nullptr;  // a varlena: its header, then the records
    std::size_t used = 0;  // bytes of `data`, header included
    std::size_t capacity = 0;
    // bases of the differences, as in PackReader
    std::uint64_t description = 0;
    std::uint32_t command = 0;
    std::uint64_t old_id = 0;
    std::uint64_t new_id = 0;
    std::uint64_t new_length = 0;
};

/// A piece of a heap tuple that goes into a pack: null bitmap and data area.
struct StoredRow {
    const char* bitmap = nullptr;
    std::size_t bitmap_size = 0;
    const char* data = nullptr;
    std::size_t data_size = 0;
    std::size_t size() const { return bitmap_size + data_size; }
};

/// A row change to be written. Null pointers where there is nothing.
struct RowChange {
    std::uint8_t operation = 0;  // as in the header: 0 insert, 1 update, 2 delete
    std::uint64_t description = 0;
    std::uint32_t command = 0;
    const ItemPointerData* old_id = nullptr;
    const ItemPointerData* new_id = nullptr;
    OldImage old_kind = OldImage::none;
    bool key_changed = false;
    bool rewritten = false;
    bool too_large = false;
    StoredRow old_row;
    StoredRow new_row;
    const std::uint8_t* unchanged = nullptr;
    std::size_t unchanged_size = 0;
};

/// Most bytes that the record of `change` can take.
inline std::size_t packed_size_limit(const RowChange& change) {
    return change.old_row.size() + change.new_row.size() + change.unchanged_size + 64;
}

inline bool pack_is_empty(const Pack& pack) {
    return pack.used <= VARHDRSZ;
}

/// An empty pack in `context`, with room for `size` bytes. All may ereport (memory; 54000 beyond 1 GB).
void pack_begin(Pack& pack, MemoryContext context, std::size_t size);
void pack_append(Pack& pack, const RowChange& change);
void pack_append_describe(Pack& pack, std::uint64_t description, std::uint32_t command);
void pack_append_truncate(Pack& pack, std::uint64_t description, std::uint32_t command, bool cascade,
                          bool restart);
/// `statement`: as on the wire, after the description's id.
void pack_append_statement(Pack& pack, std::uint64_t description, std::uint32_t command, bool captured,
                           bool dropped, const char* statement, std::size_t size);
/// Empties the pack; its memory stays unless a huge row made it large.
void pack_clear(Pack& pack);
/// Frees the memory; the pack is as default-constructed then.
void pack_free(Pack& pack);
/// Makes room so that a pack of `size` bytes can be joined without allocating.
void pack_reserve(Pack& pack, std::size_t size);
/// Puts the records of `tail` after those of `pack`.
void pack_join(Pack& pack, const Pack& tail);

}  // namespace onerepl::log
