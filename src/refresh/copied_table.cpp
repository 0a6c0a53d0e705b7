// Reads a table by its key through a cursor, and encodes rows as the log's are.
#include "refresh/copied_table.h"

#include "capture/description.h"
#include "pg/array_text.h"
#include "pg/spi.h"
#include "refresh/digest.h"
#include "refresh/key_order.h"

extern "C" {
#include "access/relation.h"
#include "access/table.h"
#include "catalog/pg_class.h"
#include "catalog/pg_type.h"
#include "storage/lmgr.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"
}

#include <cstring>

namespace onerepl::refresh {

namespace {

constexpr long rows_fetched = 1000;

Oid file_of(Relation relation) {
#if PG_VERSION_NUM >= 160000
    return relation->rd_locator.relNumber;
#else
    return relation->rd_node.relNode;
#endif
}

/// Plain. InvalidOid: no table, or locked.
Oid lock_and_find_file(Oid relation, Access* access) {
    *access = Access::later;
    if (!ConditionalLockRelationOid(relation, AccessShareLock)) return InvalidOid;
    *access = Access::gone;
    Relation table = try_relation_open(relation, NoLock);
    if (table == nullptr) return InvalidOid;
    Oid file = InvalidOid;
    if (table->rd_rel->relkind == RELKIND_RELATION) {
        *access = Access::granted;
        file = file_of(table);
    }
    relation_close(table, NoLock);
    return file;
}

std::string quoted(const std::string& name) {
    return pg::call([&] { return quote_identifier(name.c_str()); });
}

}  // namespace

Access access_table(Oid relation) {
    Access access = Access::later;
    const Oid file = pg::call([&] { return lock_and_find_file(relation, &access); });
    if (access != Access::granted) return access;
    Oid seen = InvalidOid;
    pg::query("SELECT relfilenode FROM pg_catalog.pg_class WHERE oid = $1", {pg::Param::oid(relation)},
              [&](const pg::Row& row) { seen = row.oid(0); });
    return seen == file ? Access::granted : Access::later;
}

CopiedTable::CopiedTable(Oid relation, bool compared, log::Layouts& layouts) : name_(name_of(relation)) {
    describe(relation, layouts);
    const log::Layout& layout = encoder_->layout();
    wire_ = layout.wire_columns();
    key_ = layout.key();
    plan_columns(relation);
    for (std::size_t column : key_) {
        types_.push_back(pg::call([&] { return get_atttype(relation, layout.columns[column].number); }));
        order_.push_back(order_of(types_.back(), compared));
    }
    values_.resize(layout.columns.size());
    nulls_.resize(layout.columns.size(), 1);
    selected_.resize(wire_.size() + key_.size());
    selected_nulls_.resize(wire_.size() + key_.size());
    scratch_ = pg::call([] {
        return AllocSetContextCreate(CurrentMemoryContext, "onerepl copied rows", ALLOCSET_DEFAULT_SIZES);
    });
}

/// The newest description of the table if it is still right, else a new one, as capture does it.
void CopiedTable::describe(Oid relation, log::Layouts& layouts) {
    Relation table = pg::call([&] { return table_open(relation, NoLock); });
    const Bytes encoded = log::encode_layout(log::layout_of(table));
    description_ = pg::call([&] {
        table_close(table, NoLock);
        const capture::FoundDescription newest = capture::newest_description(relation);
        const bool fits = newest.id > 0 && newest.size == encoded.size() &&
                          memcmp(newest.layout, encoded.data(), encoded.size()) == 0;
        return fits ? newest.id : capture::insert_description(relation, encoded.data(), encoded.size());
    });
    encoder_ = &layouts.of(description_);
}

void CopiedTable::plan_columns(Oid relation) {
    const log::Layout& layout = encoder_->layout();
    for (std::size_t place : wire_) {
        const log::LayoutColumn& column = layout.columns[place];
        if (!column.rendered) continue;
        rendered_.push_back({place, pg::call([&] {
                                 Oid output;
                                 bool is_varlena;
                                 getTypeOutputInfo(get_atttype(relation, column.number), &output,
                                                   &is_varlena);
                                 auto* info = static_cast<FmgrInfo*>(palloc0(sizeof(FmgrInfo)));
                                 fmgr_info(output, info);
                                 return info;
                             })});
    }
}

std::vector<std::string> CopiedTable::key_expressions() const {
    std::vector<std::string> key;
    for (std::size_t i = 0; i < key_.size(); i++)
        key.push_back(ordered("t." + quoted(encoder_->layout().columns[key_[i]].name), order_[i]));
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
        values.push_back(ordered_bound(array + "[" + std::to_string(i + 1) + "]", types_[i], order_[i]));
    return row_of(key_expressions()) + " OPERATOR(pg_catalog." + comparison + ") " + row_of(values);
}

std::string CopiedTable::select(const Key& from, std::uint64_t limit) const {
    const log::Layout& layout = encoder_->layout();
    std::string list;
    for (std::size_t place : wire_)
        list += (list.empty() ? "t." : ", t.") + quoted(layout.columns[place].name);
    for (std::size_t place : key_)
        list += ", CAST(t." + quoted(layout.columns[place].name) + " AS pg_catalog.text)";
    const std::vector<std::string> key = key_expressions();
    std::string sql = "SELECT " + list + " FROM ONLY " + name_ + " AS t WHERE " + condition(from, ">", 1);
    for (std::size_t i = 0; i < key.size(); i++) sql += (i == 0 ? " ORDER BY " : ", ") + key[i];
    if (limit > 0) sql += " LIMIT " + std::to_string(limit);
    return sql;
}

/// The key of the row number `limit` behind `from`; empty: there are not more rows than that.
Key CopiedTable::key_at_end(const Key& from, std::uint64_t limit) const {
    Key end;
    if (key_.empty()) return end;
    std::string list, order;
    const std::vector<std::string> key = key_expressions();
    for (std::size_t i = 0; i < key_.size(); i++) {
        list += (i == 0 ? "CAST(t." : ", CAST(t.") + quoted(encoder_->layout().columns[key_[i]].name) +
                " AS pg_catalog.text)";
        order += (i == 0 ? "" : ", ") + key[i];
    }
    const std::string sql = "SELECT " + list + " FROM ONLY " + name_ + " AS t WHERE " +
                            condition(from, ">", 1) + " ORDER BY " + order + " OFFSET " +
                            std::to_string(limit - 1) + " LIMIT 1";
    pg::query(sql.c_str(), {pg::array_text(from)}, [&](const pg::Row& row) {
        for (std::size_t i = 0; i < key_.size(); i++) end.push_back(row.text(static_cast<int>(i)));
    });
    return end;
}

CopiedTable::Digest CopiedTable::digest_behind(const Key& from, std::uint64_t limit) const {
    Digest digest;
    digest.to = key_at_end(from, limit);
    const log::Layout& layout = encoder_->layout();
    std::vector<std::string> columns;
    for (std::size_t place : wire_)
        if (!layout.columns[place].generated) columns.push_back("t." + quoted(layout.columns[place].name));
    const std::string sql = "SELECT count(*), " + digest_of(columns) + " FROM ONLY " + name_ +
                            " AS t WHERE " + condition(from, ">", 1) + " AND " +
                            condition(digest.to, "<=", 2);
    pg::query(sql.c_str(), {pg::array_text(from), pg::array_text(digest.to)}, [&](const pg::Row& row) {
        digest.rows = row.number(0);
        digest.digest = row.text(1);
    });
    return digest;
}

void CopiedTable::read_behind(const Key& from, std::uint64_t limit) {
    const std::string sql = select(from, limit);
    const std::string key = pg::array_text(from);
    portal_ = pg::call([&] {
        Oid types[] = {TEXTOID};
        Datum values[] = {CStringGetTextDatum(key.c_str())};
        return SPI_cursor_open_with_args(nullptr, sql.c_str(), 1, types, values, nullptr, true, 0);
    });
}

void CopiedTable::free_rows() {
    if (rows_ != nullptr) pg::call([&] { SPI_freetuptable(rows_); });
    rows_ = nullptr;
}

bool CopiedTable::fetch() {
    free_rows();
    pg::call([&] { SPI_cursor_fetch(portal_, true, rows_fetched); });
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
            if (!nulls_[column.place])
                values_[column.place] =
                    CStringGetTextDatum(OutputFunctionCall(column.output, values_[column.place]));
    });
    encoder_->encode_row(values_.data(), reinterpret_cast<const bool*>(nulls_.data()), rows);
    MemoryContextSwitchTo(before);
    MemoryContextReset(scratch_);
    at_++;
    return true;
}

Key CopiedTable::key() const {
    Key key;
    for (std::size_t i = 0; i < key_.size(); i++) {
        const Datum value = selected_[wire_.size() + i];
        key.emplace_back(pg::call([&] { return static_cast<const char*>(TextDatumGetCString(value)); }));
    }
    return key;
}

void CopiedTable::end() {
    free_rows();
    pg::call([&] { SPI_cursor_close(portal_); });
    portal_ = nullptr;
}

}  // namespace onerepl::refresh
