// Listening sockets: from "host:port" to descriptors.
#pragma once

#include "http/poller.h"

#include <string>
#include <string_view>
#include <vector>

struct sockaddr;

namespace onerepl::http {

/// A descriptor that is closed with its owner.
class Descriptor {
  public:
    Descriptor() = default;
    explicit Descriptor(int number) : number_(number) {}
    ~Descriptor();
    Descriptor(Descriptor&& other) noexcept : number_(other.release()) {}
    Descriptor& operator=(Descriptor&& other) noexcept;
    int number() const { return number_; }
    explicit operator bool() const { return number_ >= 0; }
    int release() noexcept;

  private:
    int number_ = -1;
};

/// Opens all sockets that `listen` names ("host:port, ..."; see ServerConfig), each with SO_REUSEPORT,
/// close-on-exec and non-blocking. Throws std::invalid_argument if it can't be read, std::system_error if
/// nothing can be bound, or if an address that was named can't.
std::vector<Descriptor> open_listeners(std::string_view listen);

/// Whether `listen` can be read; what it names need not exist. Empty: nowhere, which is well.
bool is_readable_listen(std::string_view listen);

/// "192.0.2.1:50123" or "[2001:db8::1]:50123".
std::string address_text(const sockaddr& address);

/// The port that a socket is bound to; 0 if unknown.
int bound_port(int socket);

}  // namespace onerepl::http
