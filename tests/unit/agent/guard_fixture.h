// The common part of the Guard's tests: a Guard, a manual clock, and the API server's answers. D is
// 60 s, so that all its parts are whole seconds.
#pragma once

#include <optional>
#include <string>

#include <gtest/gtest.h>

#include "agent/run/guard.h"
#include "core/agent_protocol.h"

namespace holdfast::agent::testing {

using std::chrono::milliseconds;
using std::chrono::seconds;

inline constexpr std::int64_t kAttempt = 3;
inline const std::string kHolder = "job-3-abcde/uid-of-pod";
inline constexpr seconds kDuration{60};
inline constexpr seconds kTerminate{40};  // 2/3 D
inline constexpr seconds kKill{49};       // 49/60 D
inline constexpr seconds kEnd{50};        // 5/6 D

inline LeaseView lease(std::int64_t attempt = kAttempt, const std::string& holder = kHolder,
                       const std::string& uid = "lease-1") {
  return {uid, holder, attempt};
}

inline LeaseRefusal answer(LeaseRefusal::Kind kind, const std::string& why = "because") {
  return {kind, why};
}

// A 429 with Retry-After.
inline LeaseRefusal try_again_in(Duration pause) {
  return {LeaseRefusal::Kind::kNone, "429 Too Many Requests", pause};
}

class GuardTest : public ::testing::Test {
 protected:
  SteadyTime at(Duration since_start) const { return SteadyTime(seconds(1000)) + since_start; }

  void make(std::optional<Duration> progress_deadline = std::nullopt) {
    guard.emplace(GuardSettings{.duration = kDuration,
                                .progress_deadline = progress_deadline,
                                .attempt = kAttempt,
                                .holder = kHolder},
                  random);
  }
  // Reads and renews the Lease at 0, and starts the child.
  void start(std::optional<Duration> progress_deadline = std::nullopt) {
    make(progress_deadline);
    ASSERT_TRUE(guard->begin(at(seconds(0))).get);
    ASSERT_TRUE(guard->answered(at(seconds(0)), lease()).put);
    ASSERT_TRUE(guard->answered(at(seconds(0)), lease()).start_before);
  }
  // Wakes the Guard at each wake_at, until it asks for a renewal.
  Orders next_renewal(SteadyTime& now) {
    for (;;) {
      const SteadyTime next = guard->woke(now).wake_at;
      EXPECT_GT(next, now);
      now = next;
      Orders orders = guard->woke(now);
      if (orders.put || orders.stop != Orders::Stop::kNone) return orders;
    }
  }
  // Sends a renewal at `now`, and acknowledges it at once.
  void renew(SteadyTime now) {
    Orders orders = guard->woke(now);
    ASSERT_TRUE(orders.put);
    guard->answered(now, lease());
    ASSERT_EQ(guard->renewed(), now);
  }

  SeededRandom random{7};
  std::optional<Guard> guard;
};

}  // namespace holdfast::agent::testing
