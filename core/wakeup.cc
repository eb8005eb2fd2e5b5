#include "core/wakeup.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <cerrno>
#include <cstdint>
#include <system_error>

#include "core/steady_now.h"

namespace holdfast {

SteadyTime steady_now() {
  timespec now{};
  const int read = clock_gettime(CLOCK_BOOTTIME, &now);
  assert(read == 0);
  static_cast<void>(read);
  return SteadyTime(std::chrono::seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec));
}

Wakeup::Wakeup()
    : event_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      timer_(timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK)) {
  if (event_ >= 0 && timer_ >= 0) return;
  const int error = errno;
  if (event_ >= 0) close(event_);
  if (timer_ >= 0) close(timer_);
  throw std::system_error(error, std::generic_category(), "the event loop");
}

Wakeup::~Wakeup() {
  close(event_);
  close(timer_);
}

void Wakeup::signal() {
  const std::uint64_t one = 1;
  // Fails only when 2^64 - 2 signals wait, and then the waiter is awake anyhow.
  static_cast<void>(!write(event_, &one, sizeof one));
}

void Wakeup::wait(std::optional<SteadyTime> until) {
  itimerspec due{};  // zero: never
  if (until) {
    const Duration since_boot = std::max(until->time_since_epoch(), Duration(1));
    due.it_value.tv_sec = since_boot / std::chrono::seconds(1);
    due.it_value.tv_nsec = (since_boot % std::chrono::seconds(1)).count();
  }
  timerfd_settime(timer_, TFD_TIMER_ABSTIME, &due, nullptr);  // forgets that it has rung before
  std::array<pollfd, 2> sources = {{{event_, POLLIN, 0}, {timer_, POLLIN, 0}}};
  poll(sources.data(), sources.size(), -1);
  std::uint64_t signals = 0;
  static_cast<void>(!read(event_, &signals, sizeof signals));
}

}  // namespace holdfast
