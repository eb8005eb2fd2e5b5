#include "agent/base/agent_loop.h"

#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <system_error>
#include <utility>

#include "agent/base/signals.h"

namespace holdfast::agent {
namespace {

int checked(int descriptor, const char* what) {
  if (descriptor < 0) throw std::system_error(errno, std::generic_category(), what);
  return descriptor;
}

int make_timer() {
  return checked(timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK), "timerfd_create");
}

int make_signals() {
  const sigset_t set = handled_signals();
  return checked(signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK), "signalfd");
}

}  // namespace

AgentLoop::AgentLoop(std::size_t most_lines)
    : most_lines_(most_lines), io_(1), timer_(io_, make_timer()), signals_(io_, make_signals()) {}

void AgentLoop::watch(std::function<void()> due, std::function<void()> signals) {
  wait(timer_, [this, due = std::move(due)] {
    std::uint64_t times = 0;
    static_cast<void>(!::read(timer_.native_handle(), &times, sizeof times));
    due();
  });
  wait(signals_, std::move(signals));
}

void AgentLoop::wait(boost::asio::posix::stream_descriptor& descriptor,
                     std::function<void()> ready) {
  descriptor.async_wait(boost::asio::posix::stream_descriptor::wait_read,
                        [this, &descriptor, ready = std::move(ready)](auto error) {
                          if (error || exit_code_) return;
                          ready();
                          wait(descriptor, ready);
                        });
}

void AgentLoop::wake_at(SteadyTime due) {
  using std::chrono::seconds;
  itimerspec when{};
  // Not zero, because zero disarms the timer.
  const Duration since_boot = std::max(due.time_since_epoch(), Duration(1));
  when.it_value.tv_sec = since_boot / seconds(1);
  when.it_value.tv_nsec = (since_boot % seconds(1)).count();
  timerfd_settime(timer_.native_handle(), TFD_TIMER_ABSTIME, &when, nullptr);
}

std::optional<int> AgentLoop::next_signal() {
  signalfd_siginfo info{};
  if (exit_code_ || ::read(signals_.native_handle(), &info, sizeof info) != sizeof info) {
    return std::nullopt;
  }
  return static_cast<int>(info.ssi_signo);
}

void AgentLoop::say_later(std::string line) {
  if (lines_.size() < most_lines_) lines_.push_back(std::move(line));
}

std::vector<std::string> AgentLoop::take_lines() { return std::exchange(lines_, {}); }

}  // namespace holdfast::agent
