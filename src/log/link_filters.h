// Row filters and column lists of one link (P17): which changes of a table it gets, and of which columns. The
// sender evaluates them: only it has the whole rows, and each link its own choice. So capture records whole
// rows, old and new, of tables that have a row filter (CapturedTable::whole_rows).
#pragma once

#include "log/encoder.h"

#include <map>
#include <set>
#include <string>
#include <vector>

namespace onerepl::log {

/// A row of onerepl.filter: what a link gets of a table.
struct LinkFilter {
    std::uint64_t id = 0;
    Number after = 0;  // it holds from the next number on
    Oid relation = InvalidOid;
    std::string schema;  // of the relation, as it is called now; empty: it is gone
    std::string table;
    std::string rows;        // SQL; empty: all
    bool chooses = false;    // rows or columns; else the choice has ended
    Oid owner = InvalidOid;  // the table's, with whose rights `rows` is evaluated (P19); InvalidOid: gone
};

/// The id under which a table description travels on a link with a filter: another one for each filter, since
/// B keeps what it was told under an id.
std::uint64_t filtered_description(std::uint64_t filter, std::uint64_t description);
/// Taken apart again: 0 if there is none.
std::uint64_t filter_of(std::uint64_t description);
std::uint64_t description_without_filter(std::uint64_t description);

/// Loads a layout by an id of either kind, without the columns that the filter leaves out. In a transaction
/// with SPI connected. nullopt: there is none. Throws pg::Error.
std::optional<Layout> load_layout(std::uint64_t description);

/// The filter of a link for what is read of a table now; null: none. In a transaction with SPI connected.
std::optional<LinkFilter> newest_filter(int link, Oid relation);

class LinkFilters {
  public:
    explicit LinkFilters(int link) : link_(link) {}

    /// Before records are read. In a transaction with SPI connected.
    void load();
    bool empty() const { return filters_.empty(); }

    /// What holds for record `n` of a table; null: nothing.
    const LinkFilter* find(const Layout& layout, Number n) const;

    /// Makes of a record what the link gets: the same, of another kind where an update moves a row into or
    /// out of the filter, or nothing (false: a skip). Its description becomes the link's.
    bool apply(const LinkFilter& filter, RecordEncoder& encoder, PackedRecord& record);

  private:
    bool passes(const LinkFilter& filter, RecordEncoder& encoder, const Image& image);
    bool evaluate(const LinkFilter& filter, RecordEncoder& encoder, const Image& image);
    void tell(const LinkFilter& filter, const std::string& message);

    int link_;
    std::vector<LinkFilter> filters_;  // newest first
    bool loaded_ = false;
    std::uint32_t generation_ = 0;  // shared::sender_generation then
    /// An evaluation has failed: from now on each has a subtransaction of its own, and a row whose filter
    /// fails does not pass.
    bool use_subtransaction_ = false;
    std::set<std::uint64_t> told_;  // filters
    std::map<std::uint64_t, std::string> queries_;
};

}  // namespace onerepl::log
