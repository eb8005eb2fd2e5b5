// How long a run waits after an end.
#include <gtest/gtest.h>

#include "reconciler/backoff.h"
#include "tests/unit/reconciler/scenario.h"

namespace holdfast::reconciler::testing {
namespace {

TEST(Backoff, GrowsByTheFactorUpToTheMaximum) {
  RetryBackoff backoff;
  backoff.jitter_percent = 0;
  const int expected[] = {10, 20, 40, 80, 160, 320, 360, 360};
  for (int n = 1; n <= 8; ++n) {
    EXPECT_EQ(backoff_delay(backoff, n, kUid, 1), seconds(expected[n - 1])) << n;
  }
  EXPECT_EQ(backoff_delay(backoff, 1000, kUid, 1), seconds(360));
}

TEST(Backoff, JitterShortensByAtMostItsPercentAndIsTheSameOnEveryReplica) {
  RetryBackoff backoff;
  bool differs = false;
  for (int attempt = 1; attempt < 200; ++attempt) {
    const Duration delay = backoff_delay(backoff, 1, kUid, attempt);
    EXPECT_LE(delay, seconds(10));
    EXPECT_GE(delay, seconds(8));
    EXPECT_EQ(delay, backoff_delay(backoff, 1, kUid, attempt));
    differs = differs || delay != backoff_delay(backoff, 1, kUid, attempt + 1);
  }
  EXPECT_TRUE(differs);
  EXPECT_NE(backoff_delay(backoff, 1, kUid, 1), backoff_delay(backoff, 1, "other", 1));
}

TEST(Backoff, CountsOnlyTheEndsInARowOfOneBudget) {
  JobView view = running_job();
  add_history(view, Outcome::kFailed, 3);
  add_history(view, Outcome::kLost, 1);
  add_history(view, Outcome::kHung, 2);
  EXPECT_EQ(ends_in_a_row(view.job.status.history, 0, Budget::kFailures, 5), 2);
  EXPECT_EQ(ends_in_a_row(view.job.status.history, 0, Budget::kDisruptions, 5), 0);
  EXPECT_EQ(ends_in_a_row({}, 0, Budget::kFailures, 5), 0);
}

}  // namespace
}  // namespace holdfast::reconciler::testing
