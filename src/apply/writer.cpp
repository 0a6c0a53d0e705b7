// Dispatches records: rows to write_row, TRUNCATEs collected into one statement, descriptions stored and
// guarded.
#include "apply/writer.h"

#include "apply/copy/write_chunk.h"
#include "apply/copy/key_range.h"
#include "apply/copy/verify.h"
#include "apply/read_only_guard.h"
#include "apply/rows/apply_transaction.h"
#include "apply/rows/deferred.h"
#include "apply/rows/foreign.h"
#include "apply/rows/map_columns.h"
#include "apply/rows/row.h"
#include "apply/rows/write.h"
#include "apply/told_statement.h"
#include "apply/tables/foreign_parts.h"
#include "apply/tables/partition_of_remote.h"
#include "apply/tables/reach.h"
#include "apply/tables/relation_maps.h"
#include "apply/tables/remove_rows.h"
#include "pg/array_text.h"
#include "pg/error_boundary.h"
#include "pg/journal_buffer.h"
#include "pg/spi.h"
#include "pg/transaction.h"

extern "C" {
#include "mb/pg_wchar.h"
}

#include <algorithm>
#include <utility>

namespace onerepl::apply {

namespace {

/// More open tables than this are closed before the next record: each holds memory and buffers.
constexpr int most_open_tables = 300;
/// More possible violations than this are looked into at the next transaction end.
constexpr std::size_t most_deferred_checks = 10000;

/// Rows of other remotes give way to the incoming one only if the administrator says so.
void spare_others(ApplyTransaction& xact, const RelationMap& target) {
    if (target.has_branch && !xact.incoming_wins)
        xact.branch_column = target.description.columns.back().name.c_str();
}

}  // namespace

void Writer::begin(bool memory_holds, const std::vector<std::uint64_t>& untold) {
    untold_ = untold;
    truncates_.clear();
    sequences_.clear();
    sequences_were_reset_ = false;
    sequences_are_complete_ = false;
    schema_was_renamed_ = false;
    told_ = {};
    pg::call([&] { begin_apply(xact_, link_); });
    if (memory_holds) return;
    maps_.begin_transaction();
    windows_.load();
}

void Writer::abandon() {
    truncates_.clear();
    forget_apply(xact_);
}

void Writer::write(const IncomingRecord& incoming, const Resolutions* resolutions) {
    xact_.n = incoming.n;
    xact_.incoming_wins = xact_.missing_is_left_to_copy = xact_.copying = false;
    xact_.branch_column = nullptr;
    const std::optional<Resolution> resolution =
        resolutions != nullptr ? resolutions->of(incoming.n) : std::nullopt;
    if (resolution == Resolution::skip) return leave_out(incoming);
    xact_.incoming_wins = resolution == Resolution::overwrite;
    if (!decode_record(incoming.record, record_))
        throw pg::Error(
            "22P03", "record cannot be read",
            "The remote is of another version, or not onerepl. Resolve the record with 'skip', and "
            "compare the tables (onerepl_verify at the remote).");
    if (record_.operation == Operation::truncate) {
        add_truncate();
    } else {
        run_truncates();
        if (record_.operation == Operation::describe)
            describe();
        else if (record_.operation == Operation::chunk)
            write_chunk_record();
        else if (record_.operation == Operation::statement)
            write_statement();
        else if (record_.operation == Operation::sequences)
            note_sequences();
        else if (record_.operation != Operation::skip)
            write_row_record();
    }
    if (incoming.last_of_transaction && !truncates_.empty()) run_truncates();
    if (incoming.last_of_transaction && xact_.check_count > most_deferred_checks)
        pg::call([&] { run_checks(xact_); });
}

/// P13: neither the record nor what it is about stands in the way. What is not known of a copy counts as a
/// hole.
void Writer::leave_out(const IncomingRecord& incoming) {
    if (!decode_record(incoming.record, record_)) return windows_.note_hole(std::nullopt);
    ForeignPlace* const places = xact_.places;
    const auto come_back = [&] {
        xact_.places = places;  // the locks of those after them are gone
        windows_.load();
        if (record_.operation == Operation::chunk) windows_.note_hole(record_.chunk.refresh);
    };
    try {
        pg::in_subtransaction([&] {
            if (record_.operation == Operation::chunk) skip_chunk();
            report_if_ahead();
        });
    } catch (const LackingDescription&) {
        come_back();
    } catch (const pg::Error& error) {
        if (pg::is_transient(error.sqlstate())) throw;
        come_back();
    }
}

void Writer::finish() {
    run_truncates();
    pg::call([&] {
        run_checks(xact_);
        close_tables(xact_);
        count_command(xact_);
        move_positions(xact_);
    });
    set_sequences();
}

void Writer::settle() {
    run_truncates();
    pg::call([&] {
        close_tables(xact_);
        count_command(xact_);
    });
}

Number Writer::oldest_pending() const {
    return oldest_buffered(xact_);
}

void Writer::roll_back_to(std::size_t mark) {
    truncates_.clear();
    xact_.check_count = mark;
    xact_.uncounted = true;
    forget_tables(xact_);
    windows_.load();
}

void Writer::run_check(std::size_t i) {
    pg::call([&] { apply::run_check(xact_, i); });
}

RelationMap& Writer::find_relation_map(std::uint64_t id) {
    RelationMap& target = described(id);
    // Making the guard changes the table, which makes the target forget it once more.
    for (int tries = 0; !target.matched && tries < 3; tries++) match(target);
    if (!target.matched) pg::call([&] { map_columns(target); });
    return target;
}

void Writer::match(RelationMap& target) {
    pg::call([&] { flush_all(xact_); });  // with what the target was
    reach(link_, target);
    pg::call([&] {
        map_columns(target);
        close_tables(xact_);  // a trigger cannot be made on a table in use
    });
    guard(target);
}

/// The first record of a table decides which link writes it (P18): two of them do not find so at the same
/// time.
void Writer::guard(RelationMap& target) {
    if (!is_noted(target.reached, link_)) {
        lock_notes();
        reach(link_, target);
    }
    ensure_guard(target.reached, link_);
}

void Writer::write_row_record() {
    RelationMap& target = find_relation_map(record_.description);
    if (record_.too_large)
        throw pg::Error(
            "54000", "the remote has left out the row's values: they are too large, or it cannot read them",
            "Bring the row here by other means (onerepl.allow_writes), then skip the record.");
    if (target.has_branch) add_branch(target, record_);
    if (windows_.is_open(target.relation)) {
        spare_others(xact_, target);
        xact_.incoming_wins = true;
        xact_.missing_is_left_to_copy = is_left_to_copy(target);
    }
    pg::call([&] {
        if (xact_.open_count > most_open_tables) close_tables(xact_);
        write_row(xact_, target, record_);
    });
}

/// Whether a row that is not there may be left to the copy: outside of a range that is repaired it never
/// comes.
bool Writer::is_left_to_copy(const RelationMap& target) const {
    const RefreshWindows::Left* const left = windows_.left_of_part(target);
    const auto is_unchanged = [](const Value& value) { return value.kind == ValueKind::unchanged; };
    if (left == nullptr || record_.operation != Operation::update || !target.has_key()) return true;
    if (std::ranges::none_of(record_.row, is_unchanged)) return true;  // it brings the whole row
    return is_in_range(target, record_.row, left->from, left->to);
}

void Writer::write_chunk_record() {
    if (record_.chunk.verify) return verify();
    RelationMap& target = find_relation_map(record_.description);
    spare_others(xact_, target);
    write_chunk(xact_, target, record_, row_of_chunk_);
    windows_.note(target, record_.chunk, xact_.n, false);
}

/// Whatever is wrong with the table, it does not stand in the way of skipping: it may not even be there.
void Writer::skip_chunk() {
    RelationMap& target = described(record_.description);
    if (record_.chunk.verify) return;
    if (!is_in_reach(link_, target)) return;
    target.relation = reach(link_, target);
    windows_.note(target, record_.chunk, xact_.n, true);
}

/// A foreign server may have committed the record when another one could not: there it is not left out. Told
/// once a transaction.
void Writer::report_if_ahead() {
    if (xact_.reported_ahead || record_.description == 0) return;
    RelationMap* const target = maps_.find(record_.description);
    if (target == nullptr || !is_in_reach(link_, *target) || !may_be_ahead(reach(link_, *target))) return;
    xact_.reported_ahead = true;
    pg::write_journal_entry(
        link_,
        {Level::critical,
         "P13",
         "records from " + std::to_string(xact_.n) +
             " on were skipped, but a foreign server may have committed what they do there",
         "If their rows belong to foreign partitions, look at them, or refresh the table with 'repair'.",
         {xact_.n, xact_.n}});
}

/// A server that cannot be asked does not stand in the way of skipping.
bool Writer::may_be_ahead(Oid relation) {
    if (!pg::call([&] { return has_foreign_partitions(relation); })) return false;
    bool ahead = true;
    ForeignPlace* const places = xact_.places;
    try {
        pg::in_subtransaction([&] { ahead = is_ahead(xact_, relation); });
    } catch (const pg::Error&) {
        xact_.places = places;  // the locks of those after them are gone
        return true;
    }
    return ahead;
}

void Writer::lack(std::uint64_t description) const {
    if (std::find(untold_.begin(), untold_.end(), description) == untold_.end())
        throw LackingDescription{description};
    throw pg::Error(
        "22P03",
        "the remote does not tell the table description " + std::to_string(description) +
            " that the record needs, or not in a way that can be read",
        "Resolve the record with 'retry', and it is asked for again; or with 'skip', and compare the "
        "tables (onerepl_verify at the remote).");
}

/// What is known of a table whether B has it or not.
RelationMap& Writer::described(std::uint64_t description) {
    RelationMap* target = maps_.find(description);
    if (target == nullptr) lack(description);
    return *target;
}

/// A table that is being filled differs, of course. One that is not there is a difference, and no failure.
void Writer::verify() {
    RelationMap& target = described(record_.description);
    if (!OidIsValid(reach(link_, target))) {
        if (record_.chunk.last) journal_missing(link_, target, xact_.n);
        return;
    }
    find_relation_map(record_.description);
    if (windows_.is_open(target.relation)) return;
    pg::call([&] {
        close_tables(xact_);
        count_command(xact_);
    });
    if (is_ahead(xact_, target.relation)) return report_not_compared(link_, target, record_, xact_.n);
    compare_digest(link_, target, record_, xact_.n);
    xact_.uncounted = true;
}

void Writer::describe() {
    pg::call([&] { close_tables(xact_); });
    RelationMap* const target = maps_.find(maps_.store(record_.table).id);
    if (!is_in_reach(link_, *target)) return;
    reach(link_, *target);
    guard(*target);
}

/// A table that is in use cannot be altered. What deferred constraints say is looked into before, because
/// row versions may move: A has altered no table with checks that were still to be made.
void Writer::write_statement() {
    RelationMap* target = nullptr;
    if (record_.statement.captured) {
        target = maps_.find(record_.description);
        if (target == nullptr) lack(record_.description);
    }
    pg::call([&] {
        run_checks(xact_);
        close_tables(xact_);
        count_command(xact_);
    });
    const Rename renamed = apply_statement(link_, xact_.n, record_.statement, target, told_);
    schema_was_renamed_ |= !renamed.old_schema.empty();
    xact_.uncounted = true;
}

void Writer::note_sequences() {
    const std::string name(record_.sequence_encoding.begin(), record_.sequence_encoding.end());
    const int encoding = pg_char_to_encoding(name.c_str());
    if (encoding < 0) throw pg::Error("22023", "encoding \"" + name + "\" of the remote is not known here");
    if (record_.sequences_complete) {
        sequences_.clear();
        sequences_are_complete_ = true;
    }
    for (const SequenceState& sequence : record_.sequences) {
        const std::string schema = to_server(sequence.schema, encoding);
        const std::string here = to_server(sequence.name, encoding);
        // At this record, so that it is this one that fails (state F).
        pg::execute("SELECT onerepl.check_sequence($1, $2, $3, $4)",
                    {link_, schema, here, sequence.last_value});
        sequences_[{schema, here}] = {sequence.last_value, sequence.is_called};
    }
}

/// What is known of others than those of a complete list.
void Writer::forget_sequences() {
    std::vector<std::string> schemas;
    std::vector<std::string> names;
    for (const auto& [name, at] : sequences_) {
        schemas.push_back(name.first);
        names.push_back(name.second);
    }
    pg::execute("SELECT onerepl.forget_other_sequences($1, $2::text[], $3::text[])",
                {link_, pg::array_text(schemas), pg::array_text(names)});
}

void Writer::set_sequences() {
    for (const auto& [name, at] : sequences_)
        pg::execute("SELECT onerepl.set_sequence($1, $2, $3, $4, $5)",
                    {link_, name.first, name.second, at.last_value, at.is_called});
    if (!sequences_.empty()) pg::execute("SELECT onerepl.bound_sequences($1)", {link_});
    if (sequences_are_complete_) forget_sequences();
    // After TRUNCATE ... RESTART IDENTITY the values that came before it hold; and A tells of its sequences
    // under the new name of a schema before it tells of the name.
    if (sequences_were_reset_ || schema_was_renamed_)
        pg::execute("SELECT onerepl.set_sequences($1)", {link_});
}

void Writer::add_truncate() {
    RelationMap& target = find_relation_map(record_.description);
    const TableDescription& table = target.description;
    std::optional<PartitionOfRemote> partition;
    if (target.has_branch && !table.partition_name.empty())
        throw pg::Error("0A000", "TRUNCATE of a partition does not reach a table that several remotes share",
                        "Delete its rows here, and resolve this record with 'skip'.");
    if (!table.partition_name.empty())
        partition = {table.partition_schema, table.partition_name, table.partition_condition};
    truncates_.push_back({target.relation, record_.truncate_restart_identity, xact_.n, std::move(partition),
                          branch_condition(target)});
}

void Writer::run_truncates() {
    if (truncates_.empty()) return;
    pg::call([&] { close_tables(xact_); });
    const Number n = xact_.n;
    const std::vector<PendingTruncate> truncates = std::exchange(truncates_, {});
    std::vector<Oid> relations;
    bool restart = false;
    for (const PendingTruncate& truncate : truncates) {
        if (!truncate.partition && truncate.branch.empty()) relations.push_back(truncate.relation);
        restart |= truncate.restart_identity;
    }
    for (const PendingTruncate& truncate : truncates) {
        if (truncate.partition) truncate_partition(truncate, relations);
        if (truncate.branch.empty()) continue;
        for (const Oid part : parts_of(xact_, truncate.relation)) delete_rows(part, truncate.branch);
    }
    xact_.n = truncates.front().n;
    std::vector<Oid> parts;
    for (const Oid relation : relations)
        for (const Oid part : parts_of(xact_, relation)) parts.push_back(part);
    if (!parts.empty()) truncate_tables(parts, restart);
    sequences_were_reset_ |= restart;
    xact_.uncounted = true;
    xact_.n = n;
}

/// A partition of the remote's. `relations` are to be truncated: if the whole table is among them, that is
/// all; our partition of the same rows becomes one of them.
void Writer::truncate_partition(const PendingTruncate& truncate, std::vector<Oid>& relations) {
    if (std::find(relations.begin(), relations.end(), truncate.relation) != relations.end()) return;
    xact_.n = truncate.n;
    if (const std::optional<Oid> same = same_partition(truncate.relation, *truncate.partition))
        relations.push_back(*same);
    else
        delete_rows_of(truncate.relation, parts_of(xact_, truncate.relation), *truncate.partition);
}

}  // namespace onerepl::apply
