// The bytes of one connection, whatever carries them: a plain socket now, TLS later.
#pragma once

#include "http/poller.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace onerepl::http {

class Channel {
  public:
    enum class Status : std::uint8_t {
        done,    // `bytes` were moved, at least one
        wait,    // nothing now; try again when the socket is `wait_for`
        closed,  // the peer will send nothing more (reading only)
        failed,  // the connection is lost
    };
    struct Result {
        Status status = Status::failed;
        std::size_t bytes = 0;
        unsigned wait_for = 0;  // readable or writable (TLS may have to read in order to write)
    };

    virtual ~Channel() = default;
    virtual int descriptor() const noexcept = 0;
    virtual Result read(std::span<std::uint8_t> into) noexcept = 0;
    virtual Result write(ByteView bytes) noexcept = 0;
    /// Tells the peer that nothing more will come, so that it reads what was sent before.
    virtual void finish_writing() noexcept = 0;
};

/// Takes the socket over: it is closed with the channel.
std::unique_ptr<Channel> make_plain_channel(int socket);

}  // namespace onerepl::http
