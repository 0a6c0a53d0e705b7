// Reads a table by its key through a cursor, and encodes rows as the log's are.
#include "refresh/copied_table.h"

#include "capture/description_store.h"
#include "keys/digest.h"
#include "keys/key_order.h"
#include "log/link_filters.h"
#include "pg/array_text.h"
#include "pg/compat.h"
#include "pg/rights.h"
#include "pg/spi.h"

extern "C" {
#include "access/relation.h"
#include "access/table.h"
#include "catalog/pg_class.h"
#include "catalog/pg_inherits.h"
#include "catalog/pg_type.h"
#include "storage/lmgr.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"
}

#include <algorithm>
#include <cstring>

namespace onerepl::refresh {

namespace {

constexpr long rows_fetched = 1000;

/// Plain. InvalidOid: no table, or locked.
Oid lock_and_find_file(Oid relation, Access* access) {
    *access = Access::later;
    if (!ConditionalLockRelationOid(relation, AccessShareLock)) return InvalidOid;
    *access = Access::gone;
    Relation table = try_relation_open(relation, NoLock);
    if (table == nullptr) return InvalidOid;
    Oid file = InvalidOid;
    const char kind = table->rd_rel->relkind;
    if (kind == RELKIND_RELATION || kind == RELKIND_PARTITIONED_TABLE) {
        *access = Access::granted;
        file = compat::file_of(table);
    }
    relation_close(table, NoLock);
    return file;
}

/// The table and all its partitions.
std::vector<Oid> members_of(Oid relation) {
    std::vector<Oid> members;
    List* all = pg::call([&] { return find_all_inheritors(relation, NoLock, nullptr); });
    ListCell* cell;
    foreach (cell, all) members.push_back(lfirst_oid(cell));
    return members;
}

bool is_partitioned(Oid relation) {
    return pg::call([&] { return get_rel_relkind(relation) == RELKIND_PARTITIONED_TABLE; });
}

std::string quoted(const std::string& name) {
    return pg::call([&] { return quote_identifier(name.c_str()); });
}

std::vector<pg::Param> parameters(const KeyRange& range) {
    return {pg::array_text(range.from), pg::array_text(range.to)};
}

FmgrInfo* output_of(Oid type) {
    return pg::call([&] {
        Oid output;
        bool is_varlena;
        getTypeOutputInfo(type, &output, &is_varlena);
        auto* info = static_cast<FmgrInfo*>(palloc0(sizeof(FmgrInfo)));
        fmgr_info(output, info);
        return info;
    });
}

capture::TextForm* text_form_of(Oid relation, AttrNumber column) {
    return pg::call([&] {
        auto* form = static_cast<capture::TextForm*>(palloc0(sizeof(capture::TextForm)));
        fill_text_form(*form, get_atttype(relation, column), CurrentMemoryContext);
        return form;
    });
}

/// Bytes of an encoded insert before its row: operation, flags, description.
constexpr std::ptrdiff_t size_before_row = 10;

}  // namespace

void append_texts(const std::vector<std::string>& texts, Bytes& rows) {
    Record row;
    row.operation = Operation::insert;
    for (const std::string& text : texts) row.row.push_back({ValueKind::text, view(text)});
    Bytes encoded;
    encode_record(row, encoded);
    rows.insert(rows.end(), encoded.begin() + size_before_row, encoded.end());
}

namespace {

Access access_member(Oid relation) {
    Access access = Access::later;
    const Oid file = pg::call([&] { return lock_and_find_file(relation, &access); });
    if (access != Access::granted) return access;
    Oid seen = InvalidOid;
    pg::query("SELECT relfilenode FROM pg_catalog.pg_class WHERE oid = $1", {pg::Param::oid(relation)},
              [&](const pg::Row& row) { seen = row.oid(0); });
    return seen == file ? Access::granted : Access::later;
}

}  // namespace

Access access_table(Oid relation) {
    const Access access = access_member(relation);
    if (access != Access::granted || !is_partitioned(relation)) return access;
    // A partition that is gone since the list was made will not be in the next one.
    for (const Oid member : members_of(relation))
        if (access_member(member) != Access::granted) return Access::later;
    return access;
}

CopiedTable::CopiedTable(Oid relation, int link, bool compared, log::Layouts& layouts)
    : name_((is_partitioned(relation) ? "" : "ONLY ") + keys::name_of(relation)),
      owner_(pg::call([&] { return pg::owner_of(relation); })) {
    describe(relation, link, layouts);
    const log::Layout& layout = encoder_->layout();
    wire_ = layout.wire_columns();
    key_ = layout.key();
    plan_columns(relation);
    plan_key(relation, compared);
    values_.resize(layout.columns.size());
    nulls_.resize(layout.columns.size(), 1);
    selected_.resize(wire_.size() + key_.size());  // at most
    selected_nulls_.resize(wire_.size() + key_.size());
    scratch_ = pg::call([] {
        return AllocSetContextCreate(CurrentMemoryContext, "onerepl copied rows", ALLOCSET_DEFAULT_SIZES);
    });
}

/// The newest description of the table if it is still right, else a new one, as capture does it.
void CopiedTable::describe(Oid relation, int link, log::Layouts& layouts) {
    Relation table = pg::call([&] { return table_open(relation, NoLock); });
    const Bytes encoded = log::encode_layout(log::layout_of(table));
    description_ = pg::call([&] {
        table_close(table, NoLock);
        return capture::description_of(relation, encoded.data(), encoded.size());
    });
    if (const auto filter = log::newest_filter(link, relation)) {
        description_ = log::filtered_description(filter->id, description_);
        filter_ = filter->rows;
    }
    encoder_ = layouts.find(description_);
    // Somebody has described it since the snapshot was taken: another one will do.
    if (encoder_ == nullptr) throw pg::Error("40001", "the table's description is newer than the snapshot");
}

void CopiedTable::plan_columns(Oid relation) {
    const log::Layout& layout = encoder_->layout();
    for (std::size_t position : wire_) {
        const log::LayoutColumn& column = layout.columns[position];
        if (!column.rendered) continue;
        rendered_.push_back({position, text_form_of(relation, column.number)});
    }
}

/// Only the last row's key is wanted, so the key's values are not made text by the query. A type that is
/// ordered by its text is: the order goes by its cast, which need not be its output.
void CopiedTable::plan_key(Oid relation, bool compared) {
    std::size_t after = wire_.size();
    for (std::size_t column : key_) {
        const Oid type =
            pg::call([&] { return get_atttype(relation, encoder_->layout().columns[column].number); });
        types_.push_back(type);
        order_.push_back(keys::order_of(type, compared));
        const auto position = static_cast<std::size_t>(std::ranges::find(wire_, column) - wire_.begin());
        if (order_.back() == KeyOrder::text || position == wire_.size())
            key_outputs_.push_back({after++, nullptr});
        else
            key_outputs_.push_back({position, output_of(type)});
    }
}

std::vector<std::string> CopiedTable::key_expressions() const {
    std::vector<std::string> key;
    for (std::size_t i = 0; i < key_.size(); i++)
        key.push_back(keys::ordered("t." + quoted(encoder_->layout().columns[key_[i]].name), order_[i]));
    return key;
}

/// "true" without a bound; else the parameter is the bound as text of an array.
std::string CopiedTable::condition(const Key& bound, const char* comparison, int parameter) const {
    const std::string array =
        "(CAST(CAST($" + std::to_string(parameter) + " AS pg_catalog.text) AS pg_catalog.text[]))";
    // The parameter appears in any case, so that its type is known.
    if (bound.empty()) return array + "[1] IS NULL";
    std::vector<std::string> values;
    for (std::size_t i = 0; i < key_.size(); i++)
        values.push_back(
            keys::ordered_bound(array + "[" + std::to_string(i + 1) + "]", types_[i], order_[i]));
    return keys::row_of(key_expressions()) + " OPERATOR(pg_catalog." + comparison + ") " +
           keys::row_of(values);
}

std::vector<std::string> CopiedTable::key_texts() const {
    std::vector<std::string> texts;
    for (std::size_t position : key_)
        texts.push_back("CAST(t." + quoted(encoder_->layout().columns[position].name) +
                        " AS pg_catalog.text)");
    return texts;
}

std::vector<std::string> CopiedTable::compared_columns() const {
    std::vector<std::string> columns;
    for (std::size_t position : wire_) {
        const log::LayoutColumn& column = encoder_->layout().columns[position];
        if (!column.generated) columns.push_back("t." + quoted(column.name));
    }
    return columns;
}

/// The range's bounds are the parameters $1 and $2.
std::string CopiedTable::rows_of(const KeyRange& range) const {
    return " FROM " + name_ + " AS t WHERE " + condition(range.from, ">", 1) + " AND " +
           condition(range.to, "<=", 2) + (filter_.empty() ? "" : " AND (" + filter_ + "\n)");
}

std::string CopiedTable::order_by() const {
    const std::vector<std::string> key = key_expressions();
    return key.empty() ? "" : " ORDER BY " + keys::list_of(key);
}

std::string CopiedTable::select(const KeyRange& range, std::uint64_t limit) const {
    std::vector<std::string> columns;
    for (std::size_t position : wire_)
        columns.push_back("t." + quoted(encoder_->layout().columns[position].name));
    const std::vector<std::string> texts = key_texts();
    for (std::size_t i = 0; i < key_.size(); i++)
        if (key_outputs_[i].output == nullptr) columns.push_back(texts[i]);
    std::string sql = "SELECT " + keys::list_of(columns) + rows_of(range) + order_by();
    if (limit > 0) sql += " LIMIT " + std::to_string(limit);
    return sql;
}

/// Runs a query of the range with the rights of the table's owner: casts, collations and the expressions of
/// indexes may be his code (P19).
void CopiedTable::query(const std::string& sql, const KeyRange& range,
                        const std::function<void(const pg::Row&)>& each) const {
    pg::run_as(owner_, [&] { pg::query(sql.c_str(), parameters(range), each); });
}

/// The key of the row number `limit` of the range; empty: there are not more rows than that.
Key CopiedTable::key_at_end(const KeyRange& range, std::uint64_t limit) const {
    Key end;
    if (key_.empty()) return end;
    const std::string sql = "SELECT " + keys::list_of(key_texts()) + rows_of(range) + order_by() +
                            " OFFSET " + std::to_string(limit - 1) + " LIMIT 1";
    query(sql, range, [&](const pg::Row& row) {
        for (std::size_t i = 0; i < key_.size(); i++) end.push_back(row.text(static_cast<int>(i)));
    });
    return end;
}

CopiedTable::Digest CopiedTable::digest(const KeyRange& range, std::uint64_t limit) const {
    Digest digest;
    digest.to = key_at_end(range, limit);
    const KeyRange part{range.from, digest.to.empty() ? range.to : digest.to};
    const std::string sql = "SELECT count(*), " + keys::digest_of(compared_columns()) + rows_of(part);
    query(sql, part, [&](const pg::Row& row) {
        digest.rows = row.number(0);
        digest.digest = row.text(1);
    });
    return digest;
}

std::uint32_t CopiedTable::append_row_digests(const KeyRange& range, Bytes& rows) const {
    std::vector<std::string> texts = key_texts();
    texts.push_back(keys::digests_of(compared_columns()));
    const std::string sql = "SELECT " + keys::list_of(texts) + rows_of(range) + order_by();
    std::uint32_t count = 0;
    query(sql, range, [&](const pg::Row& row) {
        for (std::size_t i = 0; i < texts.size(); i++) texts[i] = row.text(static_cast<int>(i));
        append_texts(texts, rows);
        count++;
    });
    return count;
}

void CopiedTable::read(const KeyRange& range, std::uint64_t limit) {
    const std::string sql = select(range, limit);
    const std::string from = pg::array_text(range.from), to = pg::array_text(range.to);
    pg::run_as(owner_, [&] {
        portal_ = pg::call([&] {
            Oid types[] = {TEXTOID, TEXTOID};
            Datum values[] = {CStringGetTextDatum(from.c_str()), CStringGetTextDatum(to.c_str())};
            return SPI_cursor_open_with_args(nullptr, sql.c_str(), 2, types, values, nullptr, true, 0);
        });
    });
}

void CopiedTable::free_rows() {
    if (rows_ != nullptr) pg::call([&] { SPI_freetuptable(rows_); });
    rows_ = nullptr;
}

bool CopiedTable::fetch() {
    free_rows();
    pg::run_as(owner_, [&] { pg::call([&] { SPI_cursor_fetch(portal_, true, rows_fetched); }); });
    rows_ = SPI_tuptable;
    at_ = 0;
    return rows_->numvals > 0;
}

bool CopiedTable::next(Bytes& rows) {
    if ((rows_ == nullptr || at_ == rows_->numvals) && !fetch()) return false;
    const MemoryContext before = MemoryContextSwitchTo(scratch_);
    pg::call([&] {
        heap_deform_tuple(rows_->vals[at_], rows_->tupdesc, selected_.data(),
                          reinterpret_cast<bool*>(selected_nulls_.data()));
        for (std::size_t i = 0; i < wire_.size(); i++) {
            values_[wire_[i]] = selected_[i];
            nulls_[wire_[i]] = selected_nulls_[i];
        }
        for (const Rendered& column : rendered_)
            if (!nulls_[column.position])
                values_[column.position] =
                    CStringGetTextDatum(capture::text_of(*column.form, values_[column.position]));
    });
    encoder_->encode_row(values_.data(), reinterpret_cast<const bool*>(nulls_.data()), rows);
    MemoryContextSwitchTo(before);
    MemoryContextReset(scratch_);
    at_++;
    return true;
}

Key CopiedTable::key() const {
    Key key;
    for (const KeyOutput& column : key_outputs_) {
        const Datum value = selected_[column.position];
        key.emplace_back(pg::call([&] {
            return static_cast<const char*>(column.output != nullptr
                                                ? OutputFunctionCall(column.output, value)
                                                : TextDatumGetCString(value));
        }));
    }
    return key;
}

void CopiedTable::end() {
    free_rows();
    pg::call([&] { SPI_cursor_close(portal_); });
    portal_ = nullptr;
}

}  // namespace onerepl::refresh
