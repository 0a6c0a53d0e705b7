// A request and its answer, as the server's handler sees them.
#pragma once

#include "core/types.h"

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace onerepl::http {

enum class Method : std::uint8_t { get, post };

struct Request {
    Method method = Method::get;
    std::string path;          // without the query, not decoded, e.g. "/onerepl/v1/messages"
    std::string query;         // what follows '?', not decoded
    std::string content_type;  // lower case, without parameters; empty if none was given
    Bytes body;
    std::string peer;  // "192.0.2.1:50123" or "[2001:db8::1]:50123"
};

struct Response {
    int status = 200;
    std::string content_type;  // none if empty
    Bytes body;
    std::vector<std::pair<std::string, std::string>>
        headers;         // further ones; no Content-Length, no Connection
    bool close = false;  // end the connection after it
    bool recognised =
        false;  // the request showed whose it is: his connection, and his address, stand above strangers'
};

/// An answer of plain text; a newline is added.
Response text_response(int status, std::string_view text);

/// The media type of a Content-Type field's value: without parameters and white space.
std::string_view media_type(std::string_view value);

/// A body's memory is set aside at once only up to this: announcing a length must cost nothing.
constexpr std::size_t reserved_at_once = 1024 * 1024;

/// "Not Found" for 404 and so on; "Unknown" for what we never send.
std::string_view reason_phrase(int status);

}  // namespace onerepl::http
