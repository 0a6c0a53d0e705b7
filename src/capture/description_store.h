// Rows of onerepl.description.
#pragma once

#include "pg/pg.h"

#include <cstdint>

namespace onerepl::capture {

/// The newest description of a relation, of all that are committed or made by this transaction.
struct FoundDescription {
    std::uint64_t id = 0;  // 0: there is none
    bool uncommitted = false;
    const char* layout = nullptr;  // palloc'd
    std::size_t size = 0;
};
/// May ereport.
FoundDescription newest_description(Oid relation);

/// Inserts one and returns its id. May ereport.
std::uint64_t insert_description(Oid relation, const void* layout, std::size_t size);

/// The id of the newest one if it has this layout, else of a new one. May ereport.
std::uint64_t description_of(Oid relation, const void* layout, std::size_t size);

}  // namespace onerepl::capture
