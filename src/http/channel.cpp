// Bytes over a plain socket.

#include "http/channel.h"

#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>

namespace onerepl::http {

namespace {

Channel::Result after_failure(unsigned wait_for) {
    if (errno == EAGAIN || errno == EWOULDBLOCK) return {Channel::Status::wait, 0, wait_for};
    return {Channel::Status::failed, 0, 0};
}

class PlainChannel final : public Channel {
  public:
    explicit PlainChannel(int socket) : socket_(socket) {}
    ~PlainChannel() override { close(socket_); }
    PlainChannel(const PlainChannel&) = delete;
    PlainChannel& operator=(const PlainChannel&) = delete;

    int descriptor() const noexcept override { return socket_; }

    Result read(std::span<std::uint8_t> into) noexcept override {
        ssize_t count = 0;
        do count = recv(socket_, into.data(), into.size(), 0);
        while (count < 0 && errno == EINTR);
        if (count > 0) return {Status::done, static_cast<std::size_t>(count), 0};
        if (count == 0) return {Status::closed, 0, 0};
        return after_failure(readable);
    }

    Result write(ByteView bytes) noexcept override {
        ssize_t count = 0;
        do count = send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
        while (count < 0 && errno == EINTR);
        if (count >= 0) return {Status::done, static_cast<std::size_t>(count), 0};
        return after_failure(writable);
    }

    void finish_writing() noexcept override { shutdown(socket_, SHUT_WR); }

  private:
    int socket_;
};

}  // namespace

std::unique_ptr<Channel> make_plain_channel(int socket) {
    return std::make_unique<PlainChannel>(socket);
}

}  // namespace onerepl::http
