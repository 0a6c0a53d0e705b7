// Blocks all signals of the calling thread for as long as it lives.
#pragma once

#include <csignal>

namespace onerepl::http {

/// For calls into a library that may start a thread: the thread inherits the mask, and so never runs a signal
/// handler of PostgreSQL, which must run in the process's only own thread.
class SignalBlock {
  public:
    SignalBlock() noexcept {
        sigset_t all;
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &before_);
    }
    ~SignalBlock() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
    SignalBlock(const SignalBlock&) = delete;
    SignalBlock& operator=(const SignalBlock&) = delete;

  private:
    sigset_t before_;
};

}  // namespace onerepl::http
