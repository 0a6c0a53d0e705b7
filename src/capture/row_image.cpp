// Row images. The fast path copies a tuple's stored bytes; whatever the sender could not read later goes the
// slow way.
#include "capture/row_image.h"

#include "pg/fixed_settings.h"

extern "C" {
#include "access/detoast.h"
#include "access/heaptoast.h"
#include "utils/datum.h"
}

#include <algorithm>

namespace onerepl::capture {

namespace {

using log::OldImage;
using log::RowChange;
using log::StoredRow;

/// The stored bytes can be read with the layout alone: no TOAST pointers, no attributes that were added
/// later, nothing to be rendered.
bool can_be_copied(const CapturedTable& table, HeapTuple tuple) {
    return !HeapTupleHasExternal(tuple) && !table.renders &&
           HeapTupleHeaderGetNatts(tuple->t_data) == table.images->natts;
}

StoredRow copied(HeapTuple tuple) {
    const HeapTupleHeader header = tuple->t_data;
    StoredRow row;
    if (HeapTupleHasNulls(tuple)) {
        row.bitmap = reinterpret_cast<const char*>(header->t_bits);
        row.bitmap_size = static_cast<std::size_t>(BITMAPLEN(HeapTupleHeaderGetNatts(header)));
    }
    row.data = reinterpret_cast<const char*>(header) + header->t_hoff;
    row.data_size = tuple->t_len - header->t_hoff;
    return row;
}

// ------------------------------------------------------------------------------------------------------
// forming anew

/// A row's values, in memory of the trigger.
struct Values {
    Datum* values;
    bool* nulls;
};

Values allocate(int count) {
    const Size size = static_cast<Size>(count > 0 ? count : 1);
    return {static_cast<Datum*>(palloc(sizeof(Datum) * size)),
            static_cast<bool*>(palloc(sizeof(bool) * size))};
}

Values all_null(int count) {
    Values row = allocate(count);
    for (int i = 0; i < count; i++) {
        row.values[i] = 0;
        row.nulls[i] = true;
    }
    return row;
}

Values taken_apart(Relation relation, HeapTuple tuple) {
    Values row = allocate(RelationGetDescr(relation)->natts);
    heap_deform_tuple(tuple, RelationGetDescr(relation), row.values, row.nulls);
    return row;
}

bool is_varlena(const CapturedTable& table, Relation relation, int i) {
    return !table.ways[i].dropped && TupleDescAttr(RelationGetDescr(relation), i)->attlen == -1;
}

/// Replaces what must not go into the log as it is: TOAST pointers, values to be rendered, columns that were
/// dropped.
void make_storable(const CapturedTable& table, Relation relation, Values row) {
    const int natts = table.images->natts;
    int settings_level = -1;
    for (int i = 0; i < natts; i++) {
        if (row.nulls[i]) continue;
        ColumnWay& way = table.ways[i];
        if (way.dropped) {
            row.nulls[i] = true;
        } else if (way.rendered) {
            if (way.text.depends_on_settings && settings_level < 0)
                settings_level = pg::begin_fixed_settings();
            row.values[i] = CStringGetTextDatum(text_of(way.text, row.values[i]));
        } else if (is_varlena(table, relation, i) && VARATT_IS_EXTERNAL(DatumGetPointer(row.values[i]))) {
            auto* value = reinterpret_cast<struct varlena*>(DatumGetPointer(row.values[i]));
            row.values[i] = PointerGetDatum(detoast_external_attr(value));
        }
    }
    if (settings_level >= 0) pg::end_fixed_settings(settings_level);
}

StoredRow formed(const CapturedTable& table, Values row) {
    const int natts = table.images->natts;
    bool has_nulls = false;
    for (int i = 0; i < natts; i++) has_nulls |= row.nulls[i];
    StoredRow image;
    image.bitmap_size = has_nulls ? static_cast<std::size_t>(BITMAPLEN(natts)) : 0;
    image.data_size = heap_compute_data_size(table.images, row.values, row.nulls);
    // heap_fill_tuple aligns addresses, not offsets, and leaves gaps as they are.
    const Size data_start = MAXALIGN(image.bitmap_size);
    auto* memory = static_cast<char*>(MemoryContextAllocExtended(
        CurrentMemoryContext, data_start + image.data_size + 1, MCXT_ALLOC_HUGE | MCXT_ALLOC_ZERO));
    uint16 infomask = 0;
    heap_fill_tuple(table.images, row.values, row.nulls, memory + data_start, image.data_size, &infomask,
                    has_nulls ? reinterpret_cast<bits8*>(memory) : nullptr);
    image.bitmap = memory;
    image.data = memory + data_start;
    return image;
}

/// Frees what `make_storable` has made of `originals`, when it is large: a row of 100 MB must not be there
/// thrice.
void free_made(const CapturedTable& table, Values row, const Datum* originals) {
    for (int i = 0; i < table.images->natts; i++)
        if (!row.nulls[i] && row.values[i] != originals[i]) pfree(DatumGetPointer(row.values[i]));
}

StoredRow storable(const CapturedTable& table, Relation relation, Values row) {
    const Size size = sizeof(Datum) * static_cast<Size>(table.images->natts);
    auto* originals = static_cast<Datum*>(palloc(size + 1));
    memcpy(originals, row.values, size);
    make_storable(table, relation, row);
    const StoredRow image = formed(table, row);
    free_made(table, row, originals);
    return image;
}

StoredRow whole_row(const CapturedTable& table, Relation relation, HeapTuple tuple) {
    if (can_be_copied(table, tuple)) return copied(tuple);
    return storable(table, relation, taken_apart(relation, tuple));
}

// ------------------------------------------------------------------------------------------------------ old
// image

StoredRow some_columns(const CapturedTable& table, Relation relation, HeapTuple tuple, ColumnSet columns) {
    Values values = all_null(table.images->natts);
    for (int i = 0; i < columns.count; i++) {
        const int index = columns.numbers[i] - 1;
        values.values[index] =
            heap_getattr(tuple, columns.numbers[i], RelationGetDescr(relation), &values.nulls[index]);
    }
    return storable(table, relation, values);
}

bool differs(const RowVersions& row, AttrNumber number) {
    TupleDesc descriptor = RelationGetDescr(row.relation);
    bool old_null, new_null;
    const Datum old_value = heap_getattr(row.old_row, number, descriptor, &old_null);
    const Datum new_value = heap_getattr(row.new_row, number, descriptor, &new_null);
    if (old_null || new_null) return old_null != new_null;
    const Form_pg_attribute attribute = TupleDescAttr(descriptor, number - 1);
    return !datum_image_eq(old_value, new_value, attribute->attbyval, attribute->attlen);
}

bool is_unique(const CapturedTable& table, int i) {
    for (int k = 0; k < table.unique.count; k++)
        if (table.unique.numbers[k] == i + 1) return true;
    return false;
}

bool any_differs(const RowVersions& row, ColumnSet columns) {
    // A heap-only tuple was made without touching an index, so no indexed column has changed.
    if (HeapTupleIsHeapOnly(row.new_row)) return false;
    for (int i = 0; i < columns.count; i++)
        if (differs(row, columns.numbers[i])) return true;
    return false;
}

void set_full_old_image(const CapturedTable& table, const RowVersions& row, RowChange& change) {
    change.old_kind = OldImage::full;
    change.old_row = whole_row(table, row.relation, row.old_row);
}

void set_partial_old_image(const CapturedTable& table, const RowVersions& row, RowChange& change) {
    const bool only_key = table.unique.count == table.key.count;
    change.old_kind = only_key ? OldImage::key : OldImage::key_and_unique;
    change.old_row = some_columns(table, row.relation, row.old_row, only_key ? table.key : table.unique);
}

// ------------------------------------------------------------------------------------------------------ new
// image

/// What an update need not repeat is looked for in rows and among values from these sizes on. Below, taking
/// the row apart costs more than the bytes do.
constexpr std::size_t wide_row = 256;
constexpr std::size_t large_value = 128;

bool same_toast_value(Datum old_value, Datum new_value) {
    const auto* old_pointer = DatumGetPointer(old_value);
    const auto* new_pointer = DatumGetPointer(new_value);
    return VARATT_IS_EXTERNAL_ONDISK(old_pointer) && VARATT_IS_EXTERNAL_ONDISK(new_pointer) &&
           memcmp(old_pointer, new_pointer, VARSIZE_EXTERNAL(new_pointer)) == 0;
}

bool same_inline_value(Datum old_value, Datum new_value) {
    const auto* old_pointer = DatumGetPointer(old_value);
    const auto* new_pointer = DatumGetPointer(new_value);
    if (VARATT_IS_EXTERNAL(old_pointer) || VARATT_IS_EXTERNAL(new_pointer)) return false;
    const std::size_t size = VARSIZE_ANY(new_pointer);
    return VARSIZE_ANY(old_pointer) == size && memcmp(old_pointer, new_pointer, size) == 0;
}

void leave_out(int index, int natts, Values row, RowChange& change, std::uint8_t*& bitmap) {
    if (!bitmap) {
        const std::size_t size = static_cast<std::size_t>(BITMAPLEN(natts));
        bitmap = static_cast<std::uint8_t*>(palloc0(size));
        change.unchanged = bitmap;
        change.unchanged_size = size;
    }
    bitmap[index / 8] = static_cast<std::uint8_t>(bitmap[index / 8] | 1 << index % 8);
    row.nulls[index] = true;
}

bool may_be_left_out(const CapturedTable& table, Relation relation, int i, Datum value) {
    if (!is_varlena(table, relation, i)) return false;
    const auto* pointer = DatumGetPointer(value);
    if (VARATT_IS_EXTERNAL(pointer)) return VARATT_IS_EXTERNAL_ONDISK(pointer);
    return VARSIZE_ANY(pointer) >= large_value;
}

/// Columns of an update that still hold the large value of the row before are not stored again: those that
/// are in the same place of the TOAST table, and, in a wide row, those of the same bytes. The key names the
/// row, and which unique values change hands is told by the stored ones, so these stay wherever they are.
void leave_out_unchanged(const CapturedTable& table, const RowVersions& row, Values values,
                         RowChange& change) {
    const int natts = table.images->natts;
    std::uint8_t* bitmap = nullptr;
    Values old{nullptr, nullptr};
    for (int i = 0; i < natts; i++) {
        if (values.nulls[i] || is_unique(table, i) ||
            !may_be_left_out(table, row.relation, i, values.values[i]))
            continue;
        if (old.values == nullptr) old = taken_apart(row.relation, row.old_row);
        if (old.nulls[i]) continue;
        if (same_toast_value(old.values[i], values.values[i]) ||
            same_inline_value(old.values[i], values.values[i]))
            leave_out(i, natts, values, change, bitmap);
    }
}

}  // namespace

StoredRow identity_image(const CapturedTable& table, Relation relation, HeapTuple tuple) {
    if (table.key.count == 0) return whole_row(table, relation, tuple);
    return some_columns(table, relation, tuple, table.key);
}

namespace {

/// Hexadecimal digits, and quotes round quotes.
constexpr std::uint64_t text_expansion = 3;

std::uint64_t external_size(const CapturedTable& table, Relation relation, HeapTuple tuple,
                            HeapTuple unless_in) {
    std::uint64_t size = 0;
    TupleDesc descriptor = RelationGetDescr(relation);
    for (int i = 0; i < table.images->natts; i++) {
        bool is_null;
        if (!is_varlena(table, relation, i)) continue;
        const Datum value = heap_getattr(tuple, i + 1, descriptor, &is_null);
        if (is_null || !VARATT_IS_EXTERNAL_ONDISK(DatumGetPointer(value))) continue;
        if (unless_in && !is_unique(table, i)) {
            const Datum before = heap_getattr(unless_in, i + 1, descriptor, &is_null);
            if (!is_null && same_toast_value(before, value)) continue;
        }
        size += toast_raw_datum_size(value) * (table.ways[i].rendered ? text_expansion : 1);
    }
    return size;
}

/// The central computes a generated column of the key from the other columns, so it needs them all.
bool has_generated_key(const CapturedTable& table, Relation relation) {
    TupleDesc description = RelationGetDescr(relation);
    if (description->constr == nullptr || !description->constr->has_generated_stored) return false;
    return std::any_of(table.key.numbers, table.key.numbers + table.key.count, [&](AttrNumber column) {
        return TupleDescAttr(description, column - 1)->attgenerated != '\0';
    });
}

/// Whether an update may travel without large values that it leaves as they are.
bool may_leave_out(const CapturedTable& table, const RowVersions& row) {
    return row.old_row && !table.whole_rows && !has_generated_key(table, row.relation);
}

}  // namespace

std::uint64_t large_values_size(const CapturedTable& table, const RowVersions& row) {
    const bool whole = table.whole_rows || table.key.count == 0;
    std::uint64_t size = 0;
    if (row.new_row && HeapTupleHasExternal(row.new_row)) {
        const bool leaves_out = may_leave_out(table, row) && !any_differs(row, table.key);
        size += external_size(table, row.relation, row.new_row, leaves_out ? row.old_row : nullptr);
    }
    if (row.old_row && whole && HeapTupleHasExternal(row.old_row))
        size += external_size(table, row.relation, row.old_row, nullptr);
    return size;
}

void set_key_images(const CapturedTable& table, const RowVersions& row, RowChange& change) {
    change.too_large = true;
    if (row.old_row && table.key.count == 0) {
        change.old_kind = OldImage::full;
        change.old_row = some_columns(table, row.relation, row.old_row, table.key);
    } else if (row.old_row && (!row.new_row || any_differs(row, table.unique))) {
        change.key_changed = row.new_row && any_differs(row, table.key);
        set_partial_old_image(table, row, change);
    }
    if (row.new_row) change.new_row = some_columns(table, row.relation, row.new_row, table.key);
}

void set_old_image(const CapturedTable& table, const RowVersions& row, RowChange& change) {
    if (table.key.count == 0) return set_full_old_image(table, row, change);
    if (row.new_row) {
        if (!table.whole_rows && !any_differs(row, table.unique)) return;
        change.key_changed = any_differs(row, table.key);
    }
    if (table.whole_rows)
        set_full_old_image(table, row, change);
    else
        set_partial_old_image(table, row, change);
}

void set_new_image(const CapturedTable& table, const RowVersions& row, RowChange& change) {
    const bool copies = can_be_copied(table, row.new_row);
    // A row whose key moves may be new to a central that is just being filled, and one that comes into a
    // filter is: it needs all of it.
    const bool leaves_out = may_leave_out(table, row) && !change.key_changed &&
                            (row.new_row->t_len >= wide_row || HeapTupleHasExternal(row.new_row));
    if (copies && !leaves_out) {
        change.new_row = copied(row.new_row);
        return;
    }
    Values values = taken_apart(row.relation, row.new_row);
    if (leaves_out) leave_out_unchanged(table, row, values, change);
    change.new_row =
        copies && change.unchanged == nullptr ? copied(row.new_row) : storable(table, row.relation, values);
}

}  // namespace onerepl::capture
