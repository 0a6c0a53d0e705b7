// An answer in the form in which it goes over the wire.
#pragma once

#include "http/message.h"

namespace onerepl::http {

/// Status line and fields, with Date, Content-Length, Connection and Cache-Control: no-store.
std::string response_head(const Response& response, bool keep_alive);

}  // namespace onerepl::http
