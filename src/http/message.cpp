// Answers: their plain form, and the words of status codes.

#include "http/message.h"

namespace onerepl::http {

Response text_response(int status, std::string_view text) {
    Response response;
    response.status = status;
    response.content_type = "text/plain; charset=utf-8";
    response.body.reserve(text.size() + 1);
    response.body.assign(text.begin(), text.end());
    response.body.push_back('\n');
    return response;
}

std::string_view media_type(std::string_view value) {
    const auto is_space = [](char character) { return character == ' ' || character == '\t'; };
    value = value.substr(0, value.find(';'));
    while (!value.empty() && is_space(value.front())) value.remove_prefix(1);
    while (!value.empty() && is_space(value.back())) value.remove_suffix(1);
    return value;
}

std::string_view reason_phrase(int status) {
    switch (status) {
        case 200:
            return "OK";
        case 204:
            return "No Content";
        case 400:
            return "Bad Request";
        case 401:
            return "Unauthorized";
        case 403:
            return "Forbidden";
        case 404:
            return "Not Found";
        case 405:
            return "Method Not Allowed";
        case 408:
            return "Request Timeout";
        case 409:
            return "Conflict";
        case 411:
            return "Length Required";
        case 413:
            return "Content Too Large";
        case 415:
            return "Unsupported Media Type";
        case 417:
            return "Expectation Failed";
        case 429:
            return "Too Many Requests";
        case 431:
            return "Request Header Fields Too Large";
        case 500:
            return "Internal Server Error";
        case 501:
            return "Not Implemented";
        case 503:
            return "Service Unavailable";
        case 505:
            return "HTTP Version Not Supported";
        default:
            return "Unknown";
    }
}

}  // namespace onerepl::http
