// The only crossing between C++ and PostgreSQL's longjmp.
//
// entry(f): the body of every function that PostgreSQL calls. No exception leaves it; what is caught becomes
// an
//           ereport(ERROR) after everything with a destructor is gone.
// call(f):  wraps calls into PostgreSQL that may ereport. An ERROR becomes a pg::Error. Inside f: plain C and
// trivially
//           destructible locals only; f may capture C++ objects by reference and write plain data through
//           them.
//
// A caught pg::Error has not been undone: either the caller runs in a subtransaction (pg/transaction.h) or
// the only legal next step is to abort the transaction.
#pragma once

#include "pg/pg.h"
#include "pg/error.h"

#include <csetjmp>
#include <exception>
#include <type_traits>
#include <utility>

namespace onerepl::pg {

namespace detail {

/// An error on its way out of C++: plain memory, nothing to destroy.
struct PendingError {
    int sqlstate;
    char message[2048];
    char detail[4096];
    char hint[1024];
    char context[2048];
    char schema[NAMEDATALEN];
    char table[NAMEDATALEN];
    char column[NAMEDATALEN];
    char constraint[NAMEDATALEN];
};

/// Fills `pending` from the exception being handled.
void capture_current_exception(PendingError& pending) noexcept;
[[noreturn]] void report(const PendingError& pending);
/// Copies and clears PostgreSQL's current error, in the memory context given.
ErrorReport take_error(MemoryContext caller);

}  // namespace detail

template <class Function>
auto entry(Function&& function) -> decltype(function()) {
    detail::PendingError pending;
    try {
        return function();
    } catch (...) {
        detail::capture_current_exception(pending);
    }
    detail::report(pending);
}

template <class Function>
auto call(Function&& function) -> decltype(function()) {
    using Result = decltype(function());
    sigjmp_buf* const saved_stack = PG_exception_stack;
    ErrorContextCallback* const saved_context = error_context_stack;
    const MemoryContext saved_memory = CurrentMemoryContext;
    sigjmp_buf here;
    if (sigsetjmp(here, 0) != 0) {
        PG_exception_stack = saved_stack;
        error_context_stack = saved_context;
        throw Error(detail::take_error(saved_memory));
    }
    PG_exception_stack = &here;
    if constexpr (std::is_void_v<Result>) {
        function();
        PG_exception_stack = saved_stack;
        error_context_stack = saved_context;
    } else {
        static_assert(std::is_trivially_destructible_v<Result>, "only plain data may cross");
        Result result = function();
        PG_exception_stack = saved_stack;
        error_context_stack = saved_context;
        return result;
    }
}

}  // namespace onerepl::pg
