// A chunk's rows, one by one, as inserts into a range that was cleared, or (repair) as updates that leave
// equal rows alone.
#include "apply/copy/write_chunk.h"

#include "apply/copy/extra_rows.h"
#include "apply/rows/apply_transaction.h"
#include "apply/rows/foreign.h"
#include "apply/rows/row.h"
#include "apply/rows/write.h"
#include "apply/tables/foreign_parts.h"
#include "apply/tables/relation_maps.h"
#include "apply/tables/remove_rows.h"
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
void empty_table(ApplyTransaction& xact, const RelationMap& target) {
    pg::call([&] { close_tables(xact); });
    const std::vector<Oid> parts = parts_of(xact, target.relation);
    if (!target.has_branch && !is_referenced(target.relation)) {
        if (!parts.empty()) truncate_tables(parts, false);
    } else {
        for (const Oid part : parts) delete_rows(part, branch_condition(target));
    }
    xact.uncounted = true;
}

/// True if nothing is in the way of the chunk's rows. In a table that was emptied, every row is as the remote
/// has it, so that only a row with the same key can be: one that a change has brought before the copy.
bool make_way(ApplyTransaction& xact, const RelationMap& target, const Record& record) {
    if (!target.has_key() || record.chunk.first) return true;
    pg::call([&] {
        close_tables(xact);
        count_command(xact);
    });
    xact.uncounted = true;
    return clear_range(target, record, parts_of(xact, target.relation));
}

void write_rows(ApplyTransaction& xact, RelationMap& target, const Record& record, Record& row) {
    xact.copying = true;
    row.description = record.description;
    row.old_key.reset();
    for (ChunkRows rows(record.chunk.rows); rows.next(row.row);) {
        add_branch(target, row);
        pg::call([&] { write_row(xact, target, row); });
    }
    xact.copying = false;
    pg::call([&] { flush_all(xact); });
}

void repair_rows(ApplyTransaction& xact, RelationMap& target, const Record& record, Record& row) {
    row.operation = Operation::update;
    xact.incoming_wins = true;
    write_rows(xact, target, record, row);
    pg::call([&] {
        close_tables(xact);
        count_command(xact);
    });
    remove_extra_rows(target, record, parts_of(xact, target.relation));
    xact.uncounted = true;
}

void insert_rows(ApplyTransaction& xact, RelationMap& target, const Record& record, Record& row) {
    const bool asked = xact.incoming_wins;  // the administrator's resolution
    if (record.chunk.first) empty_table(xact, target);
    xact.incoming_wins = target.has_key() && (!make_way(xact, target, record) || asked);
    row.operation = Operation::insert;
    // What is buffered is not seen by the search for rows in the way.
    pg::call([&] { flush_all(xact); });
    write_rows(xact, target, record, row);
}

}  // namespace

void write_chunk(ApplyTransaction& xact, RelationMap& target, const Record& record, Record& row) {
    if (record.chunk.opens || record.chunk.cancelled) return;
    if (record.chunk.repair && target.has_key())
        repair_rows(xact, target, record, row);
    else
        insert_rows(xact, target, record, row);
}

}  // namespace onerepl::apply
