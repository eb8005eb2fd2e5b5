#include "core/wakeup.h"

#include <gtest/gtest.h>

#include <ctime>
#include <thread>

#include "core/steady_now.h"

namespace holdfast {
namespace {

using namespace std::chrono_literals;

SteadyTime boot_time() {
  timespec time{};
  clock_gettime(CLOCK_BOOTTIME, &time);
  return SteadyTime(std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec));
}

// Of the system's clocks only this one counts the time that the machine was suspended.
TEST(SteadyNow, IsTheTimeSinceBoot) {
  const SteadyTime before = boot_time();
  const SteadyTime now = steady_now();
  EXPECT_LE(before, now);
  EXPECT_LE(now, boot_time());
}

TEST(Wakeup, ASignalEndsTheWaitInProgressOrTheNext) {
  Wakeup wakeup;
  wakeup.signal();
  wakeup.wait(std::nullopt);  // comes back
  std::thread other([&] { wakeup.signal(); });
  wakeup.wait(std::nullopt);
  other.join();
}

TEST(Wakeup, ManySignalsAreOne) {
  Wakeup wakeup;
  for (int i = 0; i < 100; ++i) wakeup.signal();
  wakeup.wait(std::nullopt);
  const SteadyTime until = steady_now() + 5ms;
  wakeup.wait(until);
  EXPECT_GE(steady_now(), until) << "a signal of before was still there";
}

TEST(Wakeup, WaitsForATimeAndNotForOneThatIsPast) {
  Wakeup wakeup;
  for (int i = 0; i < 3; ++i) {  // the timer that has rung before does not count
    const SteadyTime until = steady_now() + 5ms;
    wakeup.wait(until);
    EXPECT_GE(steady_now(), until);
  }
  wakeup.wait(steady_now() - 1h);
  wakeup.wait(SteadyTime{});
  wakeup.wait(SteadyTime{} - 1h);
}

}  // namespace
}  // namespace holdfast
