// A chunk's rows, one by one, as inserts that win, or (repair) as updates that leave equal rows alone.
#include "apply/chunk.h"

#include "apply/row.h"
#include "apply/surplus.h"
#include "apply/truncate.h"
#include "pg/guard.h"
#include "pg/spi.h"

namespace onerepl::apply {

namespace {

/// A table that others refer to can not be truncated; their rows stay, and are right again in the end.
bool is_referenced(Oid relation) {
    return pg::query_int8(
               "SELECT 1::int8 FROM pg_catalog.pg_constraint WHERE contype = 'f' AND confrelid = $1"
               " AND conrelid <> $1 LIMIT 1",
               {pg::Param::oid(relation)})
        .has_value();
}

void empty_table(Batch& batch, Oid relation) {
    pg::call([&] { close_tables(batch); });
    if (is_referenced(relation))
        delete_all(relation);
    else
        truncate_tables({relation}, false);
    batch.uncounted = true;
}

void write_rows(Batch& batch, Target& target, const Record& record, Record& row) {
    const bool keyed = target.has_key();
    batch.overwrite = keyed;  // rows without key may be equal
    batch.copying = true;
    row.operation = record.chunk.repair && keyed ? Operation::update : Operation::insert;
    row.description = record.description;
    row.old_key.reset();
    for (ChunkRows rows(record.chunk.rows); rows.next(row.row);)
        pg::call([&] { write_row(batch, target, row); });
    batch.copying = false;
}

}  // namespace

void write_chunk(Batch& batch, Target& target, const Record& record, Record& row) {
    if (record.chunk.opens || record.chunk.cancelled) return;
    const bool repair = record.chunk.repair && target.has_key();
    if (record.chunk.first && !repair) empty_table(batch, target.relation);
    // What is buffered is not seen by the search for rows in the way.
    pg::call([&] { flush_all(batch); });
    write_rows(batch, target, record, row);
    if (!repair) return pg::call([&] { flush_all(batch); });
    pg::call([&] {
        close_tables(batch);
        count_command(batch);
    });
    remove_surplus(target, record);
    batch.uncounted = true;
}

}  // namespace onerepl::apply
