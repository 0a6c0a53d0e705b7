// A chunk's rows, one by one, as inserts into a range that was cleared, or (repair) as updates that leave
// equal rows alone.
#include "apply/copy/chunk.h"

#include "apply/copy/extra_rows.h"
#include "apply/rows/batch.h"
#include "apply/rows/foreign.h"
#include "apply/rows/row.h"
#include "apply/rows/write.h"
#include "apply/tables/foreign_parts.h"
#include "apply/tables/targets.h"
#include "apply/tables/truncate.h"
#include "pg/error_boundary.h"
#include "pg/spi.h"

namespace onerepl::apply {

namespace {

/// A table that others refer to cannot be truncated; their rows stay, and are right again in the end.
bool is_referenced(Oid relation) {
    return pg::query_int8(
               "SELECT 1::int8 FROM pg_catalog.pg_constraint WHERE contype = 'f' AND confrelid = $1"
               " AND conrelid <> $1 LIMIT 1",
               {pg::Param::oid(relation)})
        .has_value();
}

/// Takes this remote's rows away.
void empty_table(Batch& batch, const Target& target) {
    pg::call([&] { close_tables(batch); });
    const std::vector<Oid> parts = parts_of(batch, target.relation);
    if (!target.has_branch && !is_referenced(target.relation)) {
        if (!parts.empty()) truncate_tables(parts, false);
    } else {
        for (const Oid part : parts) delete_rows(part, branch_condition(target));
    }
    batch.uncounted = true;
}

/// True if nothing is in the way of the chunk's rows. In a table that was emptied, every row is as the remote
/// has it, so that only a row with the same key can be: one that a change has brought before the copy.
bool make_way(Batch& batch, const Target& target, const Record& record) {
    if (!target.has_key() || record.chunk.first) return true;
    pg::call([&] {
        close_tables(batch);
        count_command(batch);
    });
    batch.uncounted = true;
    return clear_range(target, record, parts_of(batch, target.relation));
}

void write_rows(Batch& batch, Target& target, const Record& record, Record& row) {
    batch.copying = true;
    row.description = record.description;
    row.old_key.reset();
    for (ChunkRows rows(record.chunk.rows); rows.next(row.row);) {
        add_branch(target, row);
        pg::call([&] { write_row(batch, target, row); });
    }
    batch.copying = false;
    pg::call([&] { flush_all(batch); });
}

void repair_rows(Batch& batch, Target& target, const Record& record, Record& row) {
    row.operation = Operation::update;
    batch.overwrite = true;
    write_rows(batch, target, record, row);
    pg::call([&] {
        close_tables(batch);
        count_command(batch);
    });
    remove_extra_rows(target, record, parts_of(batch, target.relation));
    batch.uncounted = true;
}

void insert_rows(Batch& batch, Target& target, const Record& record, Record& row) {
    const bool asked = batch.overwrite;  // the administrator's resolution
    if (record.chunk.first) empty_table(batch, target);
    batch.overwrite = target.has_key() && (!make_way(batch, target, record) || asked);
    row.operation = Operation::insert;
    // What is buffered is not seen by the search for rows in the way.
    pg::call([&] { flush_all(batch); });
    write_rows(batch, target, record, row);
}

}  // namespace

void write_chunk(Batch& batch, Target& target, const Record& record, Record& row) {
    if (record.chunk.opens || record.chunk.cancelled) return;
    if (record.chunk.repair && target.has_key())
        repair_rows(batch, target, record, row);
    else
        insert_rows(batch, target, record, row);
}

}  // namespace onerepl::apply
