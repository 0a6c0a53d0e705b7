// The answer's status line and fields.

#include "http/response_writer.h"

#include <time.h>

#include <array>
#include <cstdio>

namespace onerepl::http {

namespace {

/// "Mon, 30 Nov 2026 08:00:00 GMT"; not by strftime, whose names depend on the locale.
std::string date_text() {
    static constexpr std::array<const char*, 7> days = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
    static constexpr std::array<const char*, 12> months = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                                           "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
    const time_t moment = time(nullptr);
    tm parts{};
    gmtime_r(&moment, &parts);
    std::array<char, 64> text{};
    std::snprintf(text.data(), text.size(), "%s, %02d %s %d %02d:%02d:%02d GMT",
                  days[static_cast<std::size_t>(parts.tm_wday)], parts.tm_mday,
                  months[static_cast<std::size_t>(parts.tm_mon)], parts.tm_year + 1900, parts.tm_hour,
                  parts.tm_min, parts.tm_sec);
    return text.data();
}

}  // namespace

std::string response_head(const Response& response, bool keep_alive) {
    std::string text = "HTTP/1.1 " + std::to_string(response.status) + " ";
    text += reason_phrase(response.status);
    text += "\r\nDate: " + date_text();
    if (!response.content_type.empty()) {
        text += "\r\nContent-Type: " + response.content_type;
        text += "\r\nX-Content-Type-Options: nosniff";
    }
    text += "\r\nContent-Length: " + std::to_string(response.body.size());
    text += "\r\nCache-Control: no-store";
    text += keep_alive ? "\r\nConnection: keep-alive" : "\r\nConnection: close";
    for (const auto& [name, value] : response.headers)
        text.append("\r\n").append(name).append(": ").append(value);
    text += "\r\n\r\n";
    return text;
}

}  // namespace onerepl::http
