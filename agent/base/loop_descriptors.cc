#include "agent/base/loop_descriptors.h"

#include <sys/signalfd.h>
#include <sys/timerfd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

#include "agent/base/signals.h"

namespace holdfast::agent {
namespace {

int checked(int descriptor, const char* what) {
  if (descriptor < 0) throw std::system_error(errno, std::generic_category(), what);
  return descriptor;
}

}  // namespace

int make_timer() {
  return checked(timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK), "timerfd_create");
}

void set_timer(int timer, SteadyTime due) {
  using std::chrono::seconds;
  itimerspec when{};
  // Not zero, because zero disarms the timer.
  const Duration since_boot = std::max(due.time_since_epoch(), Duration(1));
  when.it_value.tv_sec = since_boot / seconds(1);
  when.it_value.tv_nsec = (since_boot % seconds(1)).count();
  timerfd_settime(timer, TFD_TIMER_ABSTIME, &when, nullptr);
}

int make_signals() {
  const sigset_t set = handled_signals();
  return checked(signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK), "signalfd");
}

}  // namespace holdfast::agent
