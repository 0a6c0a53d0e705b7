// Table descriptions as the remote keeps them: how the stored bytes of a captured row are to be read
// (design.md "What is stored"). One row of onerepl.description each; made by capture when a table's newest
// description no longer fits.
#pragma once

#include "pg/pg.h"

extern "C" {
#include "access/tupdesc.h"
#include "utils/rel.h"
}

#include "core/record.h"

#include <optional>
#include <string>
#include <vector>

namespace onerepl::log {

/// One attribute of the physical relation. `columns[i]` has attribute number i + 1; dropped ones are among
/// them, because old rows still hold their bytes.
struct LayoutColumn {
    std::int16_t number = 0;  // attnum, from 1
    std::string name;
    bool dropped = false;
    bool generated = false;
    /// Values are stored as the text of the type's output function (a `text` in the image), written under
    /// fixed settings: types whose meaning could change later (enums, composites, reg*, extension types).
    bool rendered = false;
    /// Belongs to the key or to another unique (or exclusion) index, expressions and predicates included.
    bool unique = false;
    /// Type of the value in the image: a domain's base type; text if rendered; 0 if dropped.
    Oid type = InvalidOid;
    std::int16_t length = 0;  // typlen, by_value, align, storage: as in pg_attribute, of `type`
    bool by_value = false;
    char align = 'c';
    char storage = 'p';
    std::int32_t typmod = -1;
    /// Position in the key from 1; 0: not part of it.
    std::uint16_t key_position = 0;
    /// As the wire tells it: the base type of a domain that is stored as bytes, else the declared type.
    std::string type_schema;
    std::string type_name;
    /// A link's column list leaves it out (log/link_filters.h); not part of the encoding.
    bool hidden = false;

    bool operator==(const LayoutColumn&) const = default;
};

struct Layout {
    std::uint64_t id = 0;  // onerepl.description.id; not part of the encoding
    Oid relation = InvalidOid;
    std::string schema;
    std::string table;
    std::vector<LayoutColumn> columns;
    /// Per unique index without expressions, the key's first: its columns (indexes into `columns`), in the
    /// index's order. Their old values are in old images of kind key_and_unique (or key, for the first) and
    /// full.
    std::vector<std::vector<std::uint16_t>> unique_sets;
    /// The tracked table that the relation is a partition of: its rows travel under that one's name, so that
    /// B may have other partitions, or none. InvalidOid, empty: none.
    Oid root = InvalidOid;
    std::string root_schema;
    std::string root_table;
    /// What the partition's rows fulfil (SQL, under fixed settings); empty: nothing.
    std::string partition_condition;

    /// A hash of defaults, checks and NOT NULL. Rows are read without them; but that they have changed is a
    /// change of the table's shape (P21), whichever statement did it.
    std::uint64_t rules = 0;

    /// Equal but for the id and the rules: rows of both are read alike and look alike on the wire.
    bool same_as(const Layout& other) const;
    bool has_key() const;
    /// Indexes into `columns` in key order; empty: no key, old images are full.
    std::vector<std::size_t> key() const;
    /// Indexes into `columns` of those that are on the wire (all but the dropped and hidden), in the wire's
    /// order: element i is column i of `describe()`.
    std::vector<std::size_t> wire_columns() const;
    /// The description as it travels. Calls nothing that can fail but memory.
    TableDescription describe() const;
    /// A descriptor that reads this layout's images (heap_deform_tuple), palloc'd in CurrentMemoryContext.
    /// Uses no catalogue: it works also after the table or its types are gone. May ereport (memory) only.
    TupleDesc tuple_descriptor() const;
};

/// What onerepl.description.layout holds. Big-endian, with a version byte first.
Bytes encode_layout(const Layout& layout);
/// nullopt: not a layout. `id`: the row's id column.
std::optional<Layout> decode_layout(ByteView in, std::uint64_t id);

/// The relation's present layout (id 0): key is the primary key, else the replica identity index, else none.
/// Needs a lock on the relation. Throws pg::Error.
Layout layout_of(Relation relation);

}  // namespace onerepl::log
