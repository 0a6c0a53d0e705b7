// A record of the wire as the log shows it to the administrator.
#pragma once

#include "pg/pg.h"

#include "core/record.h"

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace onerepl {

struct RecordText {
    std::optional<std::string> relation;  // as A calls it, quoted: schema.table
    std::optional<std::string>
        object_id;  // the key's value, or a row literal of several; nullopt: the object is the table
    std::optional<std::string> moved_to;   // the key after an update that changed it
    std::optional<std::string> operation;  // insert, update, delete, truncate, describe, skip
};

/// `table`: the record's description; null if it is not known, then only the operation is told. Values of
/// types that this database does not know are shown in hexadecimal. Throws pg::Error.
RecordText text_of(const Record& record, const TableDescription* table);

/// Table descriptions by id, each loaded once.
class Descriptions {
  public:
    /// What gives the encoded description of an id (core/record.h); nullopt if there is none.
    using Load = std::function<std::optional<Bytes>(std::uint64_t id)>;
    explicit Descriptions(Load load) : load_(std::move(load)) {}
    /// Null if it is not known. Stays valid as long as this.
    const TableDescription* find(std::uint64_t id);

  private:
    Load load_;
    std::map<std::uint64_t, std::optional<TableDescription>> known_;
};

/// schema.table, quoted as needed.
std::string qualified_name(const TableDescription& table);

/// Several values as record_out writes them, "(1,\"a b\",)"; one alone as it is, nullopt as an empty text.
std::string object_id_of(const std::vector<std::optional<std::string>>& values);

}  // namespace onerepl
