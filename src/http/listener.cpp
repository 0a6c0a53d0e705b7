// Resolves what is to be listened on, and opens the sockets.

#include "http/listener.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <stdexcept>
#include <system_error>
#include <utility>

namespace onerepl::http {

namespace {

constexpr int waiting_connections = 1024;  // the kernel cuts it down to net.core.somaxconn

struct HostAndPort {
    std::string host;  // "*": any
    std::string port;
};

std::string_view trim(std::string_view text) {
    while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
    while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
    return text;
}

[[noreturn]] void refuse(std::string_view text) {
    throw std::invalid_argument("cannot listen on \"" + std::string(text) + "\": not of the form host:port");
}

bool is_port(std::string_view text) {
    if (text.empty() || text.size() > 5 || text.find_first_not_of("0123456789") != std::string_view::npos)
        return false;
    return std::stoi(std::string(text)) <= 65535;
}

HostAndPort parse_one(std::string_view text) {
    const auto colon = text.rfind(':');
    if (colon == std::string_view::npos || colon == 0) refuse(text);
    std::string_view host = text.substr(0, colon);
    const std::string_view port = text.substr(colon + 1);
    if (host.front() == '[') {
        if (host.back() != ']') refuse(text);
        host = host.substr(1, host.size() - 2);
    } else if (host.find(':') != std::string_view::npos) {
        refuse(text);
    }
    if (host.empty() || !is_port(port)) refuse(text);
    return {std::string(host), std::string(port)};
}

using AddressList = std::unique_ptr<addrinfo, decltype(&freeaddrinfo)>;

AddressList resolve(const HostAndPort& place) {
    addrinfo hints{};
    hints.ai_socktype = SOCK_STREAM;
    hints.ai_flags = AI_PASSIVE;
    addrinfo* found = nullptr;
    const char* host = place.host == "*" ? nullptr : place.host.c_str();
    const int result = getaddrinfo(host, place.port.c_str(), &hints, &found);
    if (result != 0)
        throw std::invalid_argument("cannot listen on \"" + place.host + "\": " + gai_strerror(result));
    return {found, freeaddrinfo};
}

void set_on(int socket, int level, int option) {
    const int on = 1;
    setsockopt(socket, level, option, &on, sizeof on);
}

/// No descriptor, and errno, if it can't.
Descriptor open_one(const addrinfo& address) {
    Descriptor listener(socket(address.ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    if (!listener) return {};
    set_on(listener.number(), SOL_SOCKET, SO_REUSEADDR);
    set_on(listener.number(), SOL_SOCKET, SO_REUSEPORT);
    if (address.ai_family == AF_INET6) set_on(listener.number(), IPPROTO_IPV6, IPV6_V6ONLY);
    if (bind(listener.number(), address.ai_addr, address.ai_addrlen) != 0 ||
        listen(listener.number(), waiting_connections) != 0) {
        const int error = errno;
        listener = Descriptor();
        errno = error;
    }
    return listener;
}

/// Where a name stands for several addresses, those of a family that the machine lacks are left out.
void open_all(const HostAndPort& place, std::vector<Descriptor>& listeners) {
    const AddressList addresses = resolve(place);
    const std::size_t before = listeners.size();
    int error = 0;
    for (const addrinfo* address = addresses.get(); address != nullptr; address = address->ai_next) {
        Descriptor listener = open_one(*address);
        if (listener) {
            listeners.push_back(std::move(listener));
        } else if (error == 0 || (errno != EAFNOSUPPORT && errno != EADDRNOTAVAIL)) {
            error = errno;
        }
    }
    const bool only_family_missing = error == EAFNOSUPPORT || error == EADDRNOTAVAIL;
    if (listeners.size() == before || (error != 0 && !only_family_missing))
        throw std::system_error(error, std::generic_category(),
                                "could not listen on " + place.host + " port " + place.port);
}

}  // namespace

Descriptor::~Descriptor() {
    if (number_ >= 0) close(number_);
}

Descriptor& Descriptor::operator=(Descriptor&& other) noexcept {
    if (this != &other) {
        if (number_ >= 0) close(number_);
        number_ = other.release();
    }
    return *this;
}

int Descriptor::release() noexcept {
    return std::exchange(number_, -1);
}

namespace {

std::vector<HostAndPort> parse(std::string_view listen) {
    std::vector<HostAndPort> places;
    for (;;) {
        const auto comma = listen.find(',');
        places.push_back(parse_one(trim(listen.substr(0, comma))));
        if (comma == std::string_view::npos) return places;
        listen.remove_prefix(comma + 1);
    }
}

}  // namespace

std::vector<Descriptor> open_listeners(std::string_view listen) {
    std::vector<Descriptor> listeners;
    for (const HostAndPort& place : parse(listen)) open_all(place, listeners);
    return listeners;
}

bool is_readable_listen(std::string_view listen) {
    try {
        if (!listen.empty()) parse(listen);
        return true;
    } catch (const std::exception&) {
        return false;
    }
}

std::string address_text(const sockaddr& address) {
    char text[INET6_ADDRSTRLEN] = "";
    if (address.sa_family == AF_INET) {
        const auto& internet = reinterpret_cast<const sockaddr_in&>(address);
        inet_ntop(AF_INET, &internet.sin_addr, text, sizeof text);
        return std::string(text) + ":" + std::to_string(ntohs(internet.sin_port));
    }
    if (address.sa_family == AF_INET6) {
        const auto& internet = reinterpret_cast<const sockaddr_in6&>(address);
        inet_ntop(AF_INET6, &internet.sin6_addr, text, sizeof text);
        return "[" + std::string(text) + "]:" + std::to_string(ntohs(internet.sin6_port));
    }
    return "unknown";
}

int bound_port(int socket) {
    sockaddr_storage address{};
    socklen_t size = sizeof address;
    if (getsockname(socket, reinterpret_cast<sockaddr*>(&address), &size) != 0) return 0;
    if (address.ss_family == AF_INET) return ntohs(reinterpret_cast<const sockaddr_in&>(address).sin_port);
    if (address.ss_family == AF_INET6) return ntohs(reinterpret_cast<const sockaddr_in6&>(address).sin6_port);
    return 0;
}

}  // namespace onerepl::http
