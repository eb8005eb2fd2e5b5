// A finished job is deleted when its time to live is over, though no timer waits for it that long:
// resyncs come before (operator/jobs/job_reconciler.cc).
#include "tests/simulation/tenancy.h"

namespace holdfast::simulation {
namespace {

constexpr minutes kTimeToLive{45};  // more than a resync's period

using TimeToLive = Tenancy;

TEST_F(TimeToLive, AJobThatRestsForLongIsDeletedInTime) {
  work_lasts = seconds(5);
  bool is_there = false;
  bool is_gone = false;
  run(minutes(50), [&] {
    at(seconds(30), [this] {
      create("team-a", "job",
             {{"ttlSecondsAfterFinished", std::chrono::seconds(kTimeToLive).count()}});
    });
    at(minutes(2), [&] {
      const std::optional<Time> ended = status("team-a", "job").completion_time;
      ASSERT_TRUE(ended);
      const Duration left = *ended + kTimeToLive - world_->gateway().wall_clock();
      world_->scheduler().after(left - seconds(2), [&] {
        is_there = world_->server().find("durablejobs", "team-a", "job") != nullptr;
      });
      // Its time, a reconcile, and the seconds by which the operators' clocks may lag.
      world_->scheduler().after(left + seconds(4), [&] {
        is_gone = world_->server().find("durablejobs", "team-a", "job") == nullptr;
      });
    });
  });
  EXPECT_TRUE(is_there) << "it was deleted too early";
  EXPECT_TRUE(is_gone);
}

}  // namespace
}  // namespace holdfast::simulation
