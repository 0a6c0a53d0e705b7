// A PostgreSQL error as a C++ exception, with all that a decision about it needs.
#pragma once

#include <stdexcept>
#include <string>

namespace onerepl::pg {

/// What an ErrorData said. `sqlstate` in text form, as "23505".
struct ErrorReport {
    std::string sqlstate = "XX000";
    std::string message;
    std::string detail;
    std::string hint;
    std::string context;
    std::string schema;
    std::string table;
    std::string column;
    std::string constraint;
};

/// Thrown by pg::call for an ereport(ERROR), and by our own code for an error that a user is to see:
/// pg::entry turns it into an ereport with the same fields.
class Error : public std::runtime_error {
  public:
    explicit Error(ErrorReport report) : std::runtime_error(report.message), report_(std::move(report)) {}
    Error(const char* sqlstate, std::string message, std::string hint = {}, std::string detail = {});
    const ErrorReport& report() const { return report_; }
    const std::string& sqlstate() const { return report_.sqlstate; }

  private:
    ErrorReport report_;
};

/// lessons.md: 40001, 40P01, 55P03, 53xxx, 57Pxx, 57014, 08xxx, 25006, and timeouts of
/// idle or long transactions of another server (25P03, 25P04) are retried with back-off and are never
/// `F`.
bool is_transient(const std::string& sqlstate);

}  // namespace onerepl::pg
