// The private epoll descriptor and its timer.

#include "http/poller.h"

#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <limits>
#include <system_error>

namespace onerepl::http {

namespace {

// Level-triggered epoll gives descriptors their turn, so a full array only means that the rest comes next
// time.
constexpr int events_per_poll = 512;

[[noreturn]] void throw_system_error(const char* what) {
    throw std::system_error(errno, std::generic_category(), what);
}

std::uint32_t to_epoll(unsigned events) {
    return ((events & readable) != 0 ? EPOLLIN : 0U) | ((events & writable) != 0 ? EPOLLOUT : 0U);
}

unsigned from_epoll(std::uint32_t events) {
    if ((events & (EPOLLERR | EPOLLHUP)) != 0) return readable | writable;
    return ((events & EPOLLIN) != 0 ? readable : 0U) | ((events & EPOLLOUT) != 0 ? writable : 0U);
}

}  // namespace

Poller::Poller() {
    epoll_ = epoll_create1(EPOLL_CLOEXEC);
    if (epoll_ < 0) throw_system_error("could not create an epoll descriptor");
    timer_ = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.fd = timer_;
    if (timer_ < 0 || epoll_ctl(epoll_, EPOLL_CTL_ADD, timer_, &event) != 0) {
        const int error = errno;
        if (timer_ >= 0) close(timer_);
        close(epoll_);
        throw std::system_error(error, std::generic_category(), "could not create a timer descriptor");
    }
}

Poller::~Poller() {
    close(timer_);
    close(epoll_);
}

Time Poller::now() {
    timespec moment{};
    clock_gettime(CLOCK_MONOTONIC, &moment);
    return static_cast<Time>(moment.tv_sec) * second + moment.tv_nsec / 1000;
}

void Poller::watch(int descriptor, unsigned events, Watcher& watcher) {
    const auto index = static_cast<std::size_t>(descriptor);
    if (index >= watchers_.size()) watchers_.resize(index + 1, nullptr);
    epoll_event event{};
    event.events = to_epoll(events);
    event.data.fd = descriptor;
    // A library may close a descriptor without telling us, and the number comes again: so try the other
    // operation too.
    const bool known = watchers_[index] != nullptr;
    if (epoll_ctl(epoll_, known ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, descriptor, &event) != 0) {
        const bool other_fits = errno == (known ? ENOENT : EEXIST);
        if (!other_fits || epoll_ctl(epoll_, known ? EPOLL_CTL_ADD : EPOLL_CTL_MOD, descriptor, &event) != 0)
            throw_system_error("could not watch a socket");
    }
    watchers_[index] = &watcher;
}

void Poller::forget(int descriptor) noexcept {
    const auto index = static_cast<std::size_t>(descriptor);
    if (descriptor < 0 || index >= watchers_.size() || watchers_[index] == nullptr) return;
    watchers_[index] = nullptr;
    epoll_ctl(epoll_, EPOLL_CTL_DEL, descriptor, nullptr);
}

void Poller::poll(Time timeout) {
    if (timeout > 0) arm();
    std::array<epoll_event, events_per_poll> events;
    const auto wait = static_cast<int>(std::min<Time>((timeout + millisecond - 1) / millisecond, 3'600'000));
    const int count = epoll_wait(epoll_, events.data(), events_per_poll, wait);
    for (int i = 0; i < count; ++i)
        dispatch(events[static_cast<std::size_t>(i)].data.fd, events[static_cast<std::size_t>(i)].events);
}

void Poller::dispatch(int descriptor, unsigned epoll_events) {
    // Not read: the timer stays readable until the alarm's owner has done its work and has set the alarm
    // anew.
    if (descriptor == timer_) return;
    Watcher* watcher = watchers_[static_cast<std::size_t>(descriptor)];
    if (watcher != nullptr) watcher->ready(descriptor, from_epoll(epoll_events));
}

void Poller::arm() {
    Time next = 0;
    for (const Alarm* alarm : alarms_)
        if (alarm->when_ != 0 && (next == 0 || alarm->when_ < next)) next = alarm->when_;
    // A timer that is set too early only wakes once too often: what is put off all the time costs no call.
    const Time wanted = next != 0 ? next : std::numeric_limits<Time>::max();
    const Time moment = now();
    if (armed_ != 0 && armed_ <= wanted && (armed_ > moment || wanted <= moment)) return;
    if (armed_ == next) return;
    itimerspec setting{};
    setting.it_value.tv_sec = next / second;
    setting.it_value.tv_nsec = next % second * 1000;
    timerfd_settime(timer_, TFD_TIMER_ABSTIME, &setting, nullptr);
    armed_ = next;
}

Alarm::Alarm(Poller& poller) : poller_(poller) {
    poller_.alarms_.push_back(this);
}

Alarm::~Alarm() {
    std::erase(poller_.alarms_, this);
}

void Alarm::set(Time when) {
    when_ = when;
}

void Alarm::set_no_later_than(Time when) {
    if (when_ == 0 || when < when_) set(when);
}

}  // namespace onerepl::http
