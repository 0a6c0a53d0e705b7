// Opens bodies: their signature (P10), their compression and the checksums of their messages (P1). While the
// receiver writes what came before, a thread of its own opens those that wait for their turn: that is a third
// of the work of a busy link. Nothing here knows PostgreSQL, and the thread must never meet it.
#pragma once

#include "core/body.h"

#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <variant>
#include <vector>

namespace onerepl::receiver {

/// A body whose signature was right, and what is in it; `frames` point into it.
struct OpenedBody {
    Body body;
    std::vector<FrameResult> frames;
};
using Opened = std::variant<OpenedBody, BodyError>;

/// Opens it here and now. `max_frames`: as decode_body has it.
Opened open_body(ByteView bytes, ByteView key, std::size_t max_frames);

/// A body as it came.
class SealedBody {
  public:
    explicit SealedBody(Bytes bytes) : bytes_(std::move(bytes)) {}
    ByteView bytes() const { return bytes_; }

  private:
    friend class Opener;
    enum class State { sealed, in_work, opened };

    const Bytes bytes_;
    // The opener's, under its mutex.
    Bytes key_;
    std::size_t max_frames_ = 0;
    State state_ = State::sealed;
    std::optional<Opened> opened_;
};

/// All functions are for the one thread that owns it.
class Opener {
  public:
    Opener() = default;
    ~Opener() { stop(); }
    Opener(const Opener&) = delete;
    Opener& operator=(const Opener&) = delete;

    /// `body`, whose turn comes at `round`, may be opened before that, with what the arguments of open_body
    /// would be. It is forgotten when nobody else holds it any more.
    void add(const std::shared_ptr<SealedBody>& body, std::uint64_t round, ByteView key,
             std::size_t max_frames);
    /// It is the turn of `body`: gives what was made of it with this `key`, waiting if it is just being
    /// opened, or opens it. The bodies that were added after it are opened meanwhile and after that.
    Opened take(SealedBody& body, ByteView key, std::size_t max_frames);
    /// Ends the thread. Must have happened before the process ends.
    void stop();

  private:
    std::shared_ptr<SealedBody> next();
    void work_ahead();
    void run();

    std::mutex mutex_;
    std::condition_variable wake_;  // of the thread
    std::condition_variable done_;  // a body is no longer in work
    struct Waiting {
        std::uint64_t round;
        std::weak_ptr<SealedBody> body;
    };
    std::deque<Waiting> waiting_;  // by round
    bool stopping_ = false;
    std::thread thread_;
};

}  // namespace onerepl::receiver
