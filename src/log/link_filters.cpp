// Filters: loading, evaluating, and the kind of change that is left.
#include "log/link_filters.h"

#include "pg/journal_buffer.h"
#include "pg/rights.h"
#include "pg/spi.h"
#include "pg/transaction.h"
#include "shared/memory.h"

extern "C" {
#include "utils/builtins.h"
}

namespace onerepl::log {

namespace {

constexpr int description_bits = 40;
constexpr std::uint64_t description_mask = (std::uint64_t{1} << description_bits) - 1;

const char* const columns_of_filter =
    "SELECT f.id, f.after, f.relation, n.nspname, c.relname, coalesce(f.rows, ''),"
    " f.rows IS NOT NULL OR f.columns IS NOT NULL,"
    " coalesce(c.relowner, (SELECT r.oid FROM pg_catalog.pg_authid AS r WHERE r.rolname = f.owner), 0)"
    // The log may hold changes of a table that is gone.
    " FROM onerepl.filter AS f LEFT JOIN pg_catalog.pg_class AS c ON c.oid = f.relation"
    " LEFT JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace WHERE f.link = $1";

LinkFilter filter_from(const pg::Row& row) {
    LinkFilter filter;
    filter.id = row.number(0);
    filter.after = row.number(1);
    filter.relation = row.oid(2);
    filter.schema = row.text(3);
    filter.table = row.text(4);
    filter.rows = row.text(5);
    filter.chooses = row.boolean(6);
    filter.owner = row.oid(7);
    return filter;
}

std::string quoted(const std::string& name) {
    return pg::call([&] { return quote_identifier(name.c_str()); });
}

/// A query that evaluates the filter; its parameters are the columns that are not dropped.
std::string query_of(const LinkFilter& filter, const Layout& layout) {
    std::string columns;
    int parameter = 0;
    for (const LayoutColumn& column : layout.columns) {
        if (column.dropped) continue;
        const std::string value = "$" + std::to_string(++parameter);
        columns += columns.empty() ? "" : ", ";
        if (column.rendered)
            columns.append("CAST(")
                .append(value)
                .append(" AS ")
                .append(quoted(column.type_schema))
                .append(".")
                .append(quoted(column.type_name))
                .append(")");
        else
            columns += value;
        columns.append(" AS ").append(quoted(column.name));
    }
    return "SELECT (" + filter.rows + "\n) FROM (SELECT " + columns + ") AS t";
}

/// Leaves out the columns that the filter does not name. False: there is no such filter.
bool hide_columns(std::uint64_t filter, Layout& layout) {
    bool found = false;
    std::set<std::string> names;
    pg::query(
        "SELECT c.name FROM onerepl.filter AS f LEFT JOIN LATERAL pg_catalog.unnest(f.columns) AS c (name)"
        " ON true WHERE f.id = $1",
        {filter}, [&](const pg::Row& row) {
            found = true;
            if (!row.is_null(0)) names.insert(row.text(0));
        });
    for (LayoutColumn& column : layout.columns)
        column.hidden = !names.empty() && column.key_position == 0 && !names.contains(column.name);
    return found;
}

}  // namespace

std::uint64_t filtered_description(std::uint64_t filter, std::uint64_t description) {
    return filter << description_bits | description;
}

std::uint64_t filter_of(std::uint64_t description) {
    return description >> description_bits;
}

std::uint64_t description_without_filter(std::uint64_t description) {
    return description & description_mask;
}

std::optional<Layout> load_layout(std::uint64_t description) {
    std::optional<Layout> layout;
    pg::query("SELECT layout FROM onerepl.description WHERE id = $1",
              {description_without_filter(description)}, [&](const pg::Row& row) {
                  layout = decode_layout(row.bytea(0), description);
                  if (!layout)
                      throw pg::Error("XX001",
                                      "table description " + std::to_string(description) + " is damaged");
              });
    if (layout && filter_of(description) != 0 && !hide_columns(filter_of(description), *layout))
        layout.reset();
    return layout;
}

std::optional<LinkFilter> newest_filter(int link, Oid relation) {
    std::optional<LinkFilter> filter;
    const std::string sql =
        std::string(columns_of_filter) + " AND f.relation = $2 ORDER BY f.id DESC LIMIT 1";
    pg::query(sql.c_str(), {link, pg::Param::oid(relation)},
              [&](const pg::Row& row) { filter = filter_from(row); });
    if (filter && !filter->chooses) filter.reset();
    return filter;
}

void LinkFilters::load() {
    // The first filter comes with an order, before any number gets given that it is for.
    const std::uint32_t generation = shared::sender_generation();
    if (loaded_ && filters_.empty() && generation == generation_) return;
    filters_.clear();
    loaded_ = false;
    const std::string sql = std::string(columns_of_filter) + " ORDER BY f.id DESC";
    pg::query(sql.c_str(), {link_}, [&](const pg::Row& row) { filters_.push_back(filter_from(row)); });
    loaded_ = true;
    generation_ = generation;
}

const LinkFilter* LinkFilters::find(const Layout& layout, Number n) const {
    // Not by name: it may have got another one since.
    const Oid table = OidIsValid(layout.root) ? layout.root : layout.relation;
    for (const LinkFilter& filter : filters_) {
        if (filter.after >= n) continue;
        if (filter.relation == table) return filter.chooses ? &filter : nullptr;
    }
    return nullptr;
}

bool LinkFilters::evaluate(const LinkFilter& filter, RecordEncoder& encoder, const Image& image) {
    const Layout& layout = encoder.layout();
    std::string& query = queries_[filtered_description(filter.id, layout.id)];
    if (query.empty()) query = query_of(filter, layout);
    if (!encoder.decoder().decode(image))
        throw pg::Error("XX001",
                        "a logged row of table \"" + layout.schema + "." + layout.table + "\" is damaged");
    std::vector<pg::Param> values;
    for (std::size_t i = 0; i < layout.columns.size(); i++) {
        const LayoutColumn& column = layout.columns[i];
        if (column.dropped) continue;
        values.push_back(encoder.decoder().is_null(i)
                             ? pg::Param::null(column.type)
                             : pg::Param::datum(column.type, encoder.decoder().value(i)));
    }
    bool passes = false;
    if (!OidIsValid(filter.owner)) throw pg::Error("42704", "the owner of the table is gone");
    pg::run_as(filter.owner, [&] {
        pg::query(query.c_str(), values,
                  [&](const pg::Row& row) { passes = !row.is_null(0) && row.boolean(0); });
    });
    return passes;
}

bool LinkFilters::passes(const LinkFilter& filter, RecordEncoder& encoder, const Image& image) {
    bool result = false;
    if (!use_subtransaction_) {
        use_subtransaction_ = true;  // unless it works
        result = evaluate(filter, encoder, image);
        use_subtransaction_ = false;
        return result;
    }
    try {
        pg::in_subtransaction([&] { result = evaluate(filter, encoder, image); });
    } catch (const pg::Error& error) {
        if (pg::is_transient(error.sqlstate())) throw;
        tell(filter, error.report().message);
        return false;
    }
    return result;
}

void LinkFilters::tell(const LinkFilter& filter, const std::string& message) {
    if (!told_.insert(filter.id).second) return;
    pg::write_journal_entry(
        link_,
        {Level::critical,
         "P17",
         "the row filter of table " + filter.schema + "." + filter.table + " fails for a row: " + message,
         "Rows for which it fails are not sent. Correct it with onerepl_set_filter, which copies the table "
         "again.",
         {}});
}

bool LinkFilters::apply(const LinkFilter& filter, RecordEncoder& encoder, PackedRecord& record) {
    const bool knows_old = record.old_kind == OldImage::full;
    bool sent = true;
    // What the filter would look at may be left out of a row that was too large: the central is to hear of
    // it.
    if (!filter.rows.empty() && !record.too_large) switch (record.operation) {
            case Operation::insert:
                sent = passes(filter, encoder, record.new_row);
                break;
            case Operation::remove:
                sent = !knows_old || passes(filter, encoder, record.old_row);
                break;
            case Operation::update: {
                // One from before capture knew of the filter: the central has all rows of that time.
                if (!knows_old || !record.unchanged.empty()) break;
                const bool was = passes(filter, encoder, record.old_row);
                const bool is = passes(filter, encoder, record.new_row);
                sent = was || is;
                if (!was) {
                    record.operation = Operation::insert;
                    record.old_kind = OldImage::none;
                }
                if (!is) record.operation = Operation::remove;
                break;
            }
            default:
                break;
        }
    record.description = filtered_description(filter.id, record.description);
    return sent;
}

}  // namespace onerepl::log
