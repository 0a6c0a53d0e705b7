// Bodies wait in the order of their turns; thread and owner each take the first that nobody has begun.
#include "receiver/opener.h"

#include "http/signal_block.h"

#include <algorithm>
#include <system_error>
#include <utility>

namespace onerepl::receiver {

namespace {
/// Opened bodies that wait for their turn: each may be as large as onerepl.max_body_size allows.
constexpr int most_ahead = 2;
}  // namespace

Opened open_body(ByteView bytes, ByteView key, std::size_t max_frames) {
    auto decoded = decode_body(bytes, key, max_frames);
    if (const auto* error = std::get_if<BodyError>(&decoded)) return *error;
    OpenedBody opened{std::move(std::get<Body>(decoded)), {}};
    for (FrameReader reader(opened.body.parties, opened.body.frames); !reader.at_end();)
        opened.frames.push_back(reader.next());
    return opened;
}

void Opener::add(const std::shared_ptr<SealedBody>& body, std::uint64_t round, ByteView key,
                 std::size_t max_frames) {
    const std::lock_guard lock(mutex_);
    body->key_.assign(key.begin(), key.end());
    body->max_frames_ = max_frames;
    const auto after = [](std::uint64_t mine, const Waiting& each) { return mine < each.round; };
    waiting_.insert(std::upper_bound(waiting_.begin(), waiting_.end(), round, after), {round, body});
}

Opened Opener::take(SealedBody& body, ByteView key, std::size_t max_frames) {
    {
        std::unique_lock lock(mutex_);
        std::erase_if(waiting_, [&](const auto& each) {
            const auto other = each.body.lock();
            return !other || other.get() == &body;
        });
        work_ahead();
        done_.wait(lock, [&] { return body.state_ != SealedBody::State::in_work; });
        const bool same = std::ranges::equal(body.key_, key) && body.max_frames_ == max_frames;
        if (body.opened_ && same) return std::move(*body.opened_);
    }
    return open_body(body.bytes(), key, max_frames);
}

void Opener::stop() {
    {
        const std::lock_guard lock(mutex_);
        stopping_ = true;
    }
    wake_.notify_one();
    if (thread_.joinable()) thread_.join();
}

/// Under the mutex. A single body at a time is not worth a thread.
void Opener::work_ahead() {
    if (waiting_.empty() || stopping_) return;
    if (thread_.joinable()) return wake_.notify_one();
    try {
        const http::SignalBlock block;
        thread_ = std::thread([this] { run(); });
    } catch (const std::system_error&) {
        // Without it the bodies are opened one after the other.
    }
}

/// The first that is still sealed; none if enough are open. Under the mutex.
std::shared_ptr<SealedBody> Opener::next() {
    int ahead = 0;
    for (const auto& each : waiting_) {
        auto body = each.body.lock();
        if (!body) continue;
        if (body->state_ == SealedBody::State::sealed) return ahead < most_ahead ? body : nullptr;
        ahead++;
    }
    return nullptr;
}

void Opener::run() {
    std::unique_lock lock(mutex_);
    for (;;) {
        std::shared_ptr<SealedBody> body;
        wake_.wait(lock, [&] { return stopping_ || (body = next()); });
        if (stopping_) return;
        body->state_ = SealedBody::State::in_work;
        lock.unlock();
        std::optional<Opened> opened;
        try {
            opened = open_body(body->bytes(), body->key_, body->max_frames_);
        } catch (const std::exception&) {
            // Whoever takes it meets the same, and can tell.
        }
        lock.lock();
        body->opened_ = std::move(opened);
        body->state_ = SealedBody::State::opened;
        done_.notify_one();
    }
}

}  // namespace onerepl::receiver
