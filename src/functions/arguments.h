// Arguments of SQL functions as C++ values.
#pragma once

#include "pg/error_boundary.h"

#include <string>

namespace onerepl {

/// A text argument; empty if it is null.
inline std::string text_argument(FunctionCallInfo fcinfo, int argument) {
    if (PG_ARGISNULL(argument)) return {};
    char* const copy = pg::call([&] { return text_to_cstring(PG_GETARG_TEXT_PP(argument)); });
    std::string text = copy;
    pfree(copy);
    return text;
}

}  // namespace onerepl
