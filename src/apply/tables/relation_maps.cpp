// The descriptions of one link's remote, cached, and how catalog changes make them forget B's side.
#include "apply/tables/relation_maps.h"

#include "apply/rows/relation_map.h"
#include "pg/spi.h"

extern "C" {
#include "mb/pg_wchar.h"
#include "utils/inval.h"
#include "utils/syscache.h"
}

#include <set>

namespace onerepl::apply {

namespace {

// PostgreSQL's invalidation callbacks cannot be unregistered: they look here who is still alive.
std::set<RelationMaps*>& living() {
    static std::set<RelationMaps*> all;
    return all;
}

void relation_changed(Datum, Oid relation) {
    for (RelationMaps* targets : living()) targets->invalidate(relation);
}

void catalog_changed(Datum, int, uint32) {
    relation_changed(0, InvalidOid);
}

void register_callbacks() {
    static bool registered = false;
    if (registered) return;
    registered = true;
    pg::call([] {
        CacheRegisterRelcacheCallback(relation_changed, 0);
        CacheRegisterSyscacheCallback(NAMESPACEOID, catalog_changed, 0);
        CacheRegisterSyscacheCallback(TYPEOID, catalog_changed, 0);
    });
}

void to_server(std::string& text, int encoding) {
    const char* converted =
        pg::call([&] { return pg_any_to_server(text.c_str(), static_cast<int>(text.size()), encoding); });
    if (converted != text.c_str()) text = converted;
}

void names_to_server(TableDescription& description, int encoding) {
    to_server(description.schema, encoding);
    to_server(description.name, encoding);
    to_server(description.partition_schema, encoding);
    to_server(description.partition_name, encoding);
    to_server(description.partition_condition, encoding);
    for (ColumnDescription& column : description.columns) {
        to_server(column.name, encoding);
        to_server(column.type_schema, encoding);
        to_server(column.type_name, encoding);
    }
}

/// The description with its names in B's encoding.
TableDescription read_description(ByteView encoded, int& encoding) {
    std::optional<TableDescription> description = decode_description(encoded);
    if (!description) throw pg::Error("22P03", "table description cannot be read");
    encoding = pg_char_to_encoding(description->encoding.c_str());
    if (encoding < 0)
        throw pg::Error("22023",
                        "encoding \"" + description->encoding + "\" of the remote is not known here");
    names_to_server(*description, encoding);
    return std::move(*description);
}

/// The branch as one more column, and of the key.
void describe_branch(TableDescription& description, const std::string& column) {
    const std::size_t keys = description.key().size();
    description.columns.push_back({.name = column,
                                   .type_schema = "pg_catalog",
                                   .type_name = "text",
                                   .key_position = static_cast<std::uint16_t>(keys > 0 ? keys + 1 : 0)});
}

std::string to_remote(const std::string& text, int encoding) {
    return pg::call([&] {
        return static_cast<const char*>(
            pg_server_to_any(text.c_str(), static_cast<int>(text.size()), encoding));
    });
}

}  // namespace

void find_place(int link, RelationMap& target) {
    TableDescription& description = target.description;
    target.schema = description.schema;
    target.name = description.name;
    pg::query(
        "SELECT schema, coalesce(name, $3), coalesce(branch_column, ''), coalesce(branch, '')"
        " FROM onerepl.target WHERE link = $1 AND remote_schema = $2 AND remote_table IN ($3, '')"
        " ORDER BY remote_table DESC LIMIT 1",
        {link, description.schema, description.name}, [&](const pg::Row& row) {
            target.schema = row.text(0);
            target.name = row.text(1);
            target.has_place = true;
            target.has_branch = !row.text(2).empty();
            if (!target.has_branch) return;
            target.branch = to_remote(row.text(3), target.encoding);
            describe_branch(description, row.text(2));
        });
}

namespace {

std::unique_ptr<RelationMap> make_relation_map(int link, ByteView encoded) {
    auto target = std::make_unique<RelationMap>();
    target->description = read_description(encoded, target->encoding);
    find_place(link, *target);
    target->key = target->description.key();
    target->converts = target->encoding != GetDatabaseEncoding();
    return target;
}

}  // namespace

void add_branch(const RelationMap& target, Record& record) {
    if (!target.has_branch) return;
    const Value branch{ValueKind::text, view(target.branch)};
    if (!record.row.empty()) record.row.push_back(branch);
    if (record.old_key) record.old_key->push_back(branch);
}

std::string branch_condition(const RelationMap& target) {
    if (!target.has_branch) return {};
    const std::string branch = to_server(view(target.branch), target.encoding);
    return pg::call([&] {
        return static_cast<const char*>(
            psprintf("t.%s OPERATOR(pg_catalog.=) %s",
                     quote_identifier(target.description.columns.back().name.c_str()),
                     quote_literal_cstr(branch.c_str())));
    });
}

std::string to_server(ByteView text, int encoding) {
    std::string converted(text.begin(), text.end());
    to_server(converted, encoding);
    return converted;
}

RelationMaps::RelationMaps(int link) : link_(link) {
    register_callbacks();
    living().insert(this);
}

RelationMaps::~RelationMaps() {
    living().erase(this);
}

RelationMap* RelationMaps::find(std::uint64_t id) {
    if (last_ != nullptr && last_->description.id == id && last_->checked_in == transaction_) return last_;
    last_ = nullptr;
    const auto known = maps_.find(id);
    if (known != maps_.end() && known->second->checked_in == transaction_) return last_ = known->second.get();
    Found found = read(id, known == maps_.end() ? nullptr : known->second.get());
    if (!found.there) {
        maps_.erase(id);
        return nullptr;
    }
    std::unique_ptr<RelationMap>& target = maps_[id];
    if (found.changed) target = std::move(found.changed);
    target->checked_in = transaction_;
    return last_ = target.get();
}

RelationMaps::Found RelationMaps::read(std::uint64_t id, const RelationMap* known) const {
    Found found;
    pg::query("SELECT xmin, description FROM onerepl.remote_description WHERE link = $1 AND id = $2",
              {pg::Param(link_), pg::Param(id)}, [&](const pg::Row& row) {
                  found.there = true;
                  bool is_null;
                  const TransactionId version = DatumGetTransactionId(row.datum(0, &is_null));
                  if (known != nullptr && known->version == version) return;
                  found.changed = make_relation_map(link_, row.bytea(1));
                  found.changed->description.id = id;
                  found.changed->version = version;
              });
    return found;
}

TableDescription RelationMaps::store(ByteView encoded) {
    int encoding;
    TableDescription description = read_description(encoded, encoding);
    pg::execute(
        "INSERT INTO onerepl.remote_description (link, id, description) VALUES ($1, $2, $3)"
        " ON CONFLICT (link, id) DO UPDATE SET description = EXCLUDED.description",
        {pg::Param(link_), pg::Param(description.id), pg::Param(encoded)});
    last_ = nullptr;
    maps_.erase(description.id);
    return description;
}

void RelationMaps::forget() {
    last_ = nullptr;
    maps_.clear();
}

void RelationMaps::invalidate(Oid relation) {
    for (auto& [id, target] : maps_)
        if (!OidIsValid(relation) || target->relation == relation) target->matched = target->holds = false;
}

}  // namespace onerepl::apply
