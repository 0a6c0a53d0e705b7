#include "pg/error_boundary.h"

#include <cstring>
#include <new>

namespace onerepl::pg {

Error::Error(const char* sqlstate, std::string message, std::string hint, std::string detail)
    : Error([&] {
          ErrorReport report;
          report.sqlstate = sqlstate;
          report.message = std::move(message);
          report.hint = std::move(hint);
          report.detail = std::move(detail);
          return report;
      }()) {}

bool is_transient(const std::string& sqlstate) {
    static const char* const exact[] = {"40001", "40P01", "55P03", "57014", "25006", "25P03", "25P04"};
    for (const char* state : exact)
        if (sqlstate == state) return true;
    return sqlstate.starts_with("53") || sqlstate.starts_with("57P") || sqlstate.starts_with("08") ||
           sqlstate.starts_with("58");
}

namespace detail {

namespace {

void put(char* target, std::size_t size, const std::string& text) noexcept {
    const std::size_t length = text.size() < size - 1 ? text.size() : size - 1;
    std::memcpy(target, text.data(), length);
    target[length] = '\0';
}

template <std::size_t Size>
void put(char (&target)[Size], const std::string& text) noexcept {
    put(target, Size, text);
}

void put_plain(PendingError& pending, int sqlstate, const char* message) noexcept {
    pending.sqlstate = sqlstate;
    snprintf(pending.message, sizeof pending.message, "%s", message);
}

}  // namespace

void capture_current_exception(PendingError& pending) noexcept {
    std::memset(&pending, 0, sizeof pending);
    try {
        throw;
    } catch (const Error& error) {
        const ErrorReport& report = error.report();
        const char* state = report.sqlstate.c_str();
        pending.sqlstate = report.sqlstate.size() == 5
                               ? MAKE_SQLSTATE(state[0], state[1], state[2], state[3], state[4])
                               : ERRCODE_INTERNAL_ERROR;
        put(pending.message, report.message);
        put(pending.detail, report.detail);
        put(pending.hint, report.hint);
        put(pending.context, report.context);
        put(pending.schema, report.schema);
        put(pending.table, report.table);
        put(pending.column, report.column);
        put(pending.constraint, report.constraint);
    } catch (const std::bad_alloc&) {
        put_plain(pending, ERRCODE_OUT_OF_MEMORY, "out of memory");
    } catch (const std::length_error&) {
        put_plain(pending, ERRCODE_OUT_OF_MEMORY, "out of memory");
    } catch (const std::exception& error) {
        put_plain(pending, ERRCODE_INTERNAL_ERROR, error.what());
    } catch (...) {
        put_plain(pending, ERRCODE_INTERNAL_ERROR, "unknown exception");
    }
}

void report(const PendingError& pending) {
    ereport(ERROR,
            (errcode(pending.sqlstate), errmsg_internal("%s", pending.message),
             pending.detail[0] ? errdetail_internal("%s", pending.detail) : 0,
             pending.hint[0] ? errhint("%s", pending.hint) : 0,
             pending.context[0] ? errcontext_msg("%s", pending.context) : 0,
             pending.schema[0] ? err_generic_string(PG_DIAG_SCHEMA_NAME, pending.schema) : 0,
             pending.table[0] ? err_generic_string(PG_DIAG_TABLE_NAME, pending.table) : 0,
             pending.column[0] ? err_generic_string(PG_DIAG_COLUMN_NAME, pending.column) : 0,
             pending.constraint[0] ? err_generic_string(PG_DIAG_CONSTRAINT_NAME, pending.constraint) : 0));
    pg_unreachable();
}

ErrorReport take_error(MemoryContext caller) {
    MemoryContextSwitchTo(caller);
    ErrorData* data = CopyErrorData();
    FlushErrorState();
    auto text = [](const char* value) { return std::string(value ? value : ""); };
    ErrorReport report;
    report.sqlstate = unpack_sql_state(data->sqlerrcode);
    report.message = text(data->message);
    report.detail = text(data->detail);
    report.hint = text(data->hint);
    report.context = text(data->context);
    report.schema = text(data->schema_name);
    report.table = text(data->table_name);
    report.column = text(data->column_name);
    report.constraint = text(data->constraint_name);
    FreeErrorData(data);
    return report;
}

}  // namespace detail

}  // namespace onerepl::pg
