// Which shard the status of a job says.
#include <gtest/gtest.h>

#include "tests/unit/reconciler/scenario.h"

namespace holdfast::reconciler::testing {
namespace {

TEST(Shard, TheFirstWriteOfAJobSaysIt) {
  JobView view = new_job();
  view.shard_label = "7-of-32";
  EXPECT_EQ(after(view).shard, "7-of-32");
}

TEST(Shard, AJobThatLacksItIsWrittenForThatAlone) {
  JobView view = running_job();
  add_pod(view, 1, PodPhase::kRunning);
  view.job.status = after(view);
  view.observed.since_write = std::chrono::hours(1);
  ASSERT_TRUE(all<WriteStatus>(decide(view, now())).empty());
  view.shard_label = "7-of-32";
  EXPECT_TRUE(all<WriteStatus>(decide(view, now())).empty()) << "no server would keep it";
  view.selects_shards = true;
  EXPECT_EQ(after(view).shard, "7-of-32");
}

TEST(Shard, WithAnotherNumberOfShardsItIsReplaced) {
  JobView view = running_job();
  add_pod(view, 1, PodPhase::kRunning);
  view.job.status.shard = "3-of-16";
  view.shard_label = "7-of-32";
  view.selects_shards = true;
  view.observed.since_write = std::chrono::hours(1);
  EXPECT_EQ(after(view).shard, "7-of-32");
}

TEST(Shard, ANewJobWaitsForItsFirstWrite) {
  JobView view = new_job();
  view.observed.may_create = false;
  ASSERT_TRUE(all<WriteStatus>(decide(view, now())).empty());
  view.shard_label = "7-of-32";
  view.selects_shards = true;
  EXPECT_TRUE(all<WriteStatus>(decide(view, now())).empty());
}

TEST(Shard, AJobThatHasEndedIsNotWrittenForIt) {
  JobView view = job_in(Phase::kSucceeded);
  view.job.status.settled = true;
  view.shard_label = "7-of-32";
  view.selects_shards = true;
  EXPECT_TRUE(decide(view, now()).writes.empty());
}

TEST(Shard, OfAJobThatBelongsElsewhereTheRightOneIsWrittenAndNothingElseIsDone) {
  JobView view = running_job();
  add_ended_pod(view, 1, 0);
  view.job.status.shard = "3-of-32";
  view.shard_label = "7-of-32";
  view.belongs_elsewhere = true;
  const Decision decision = decide(view, now());
  ASSERT_EQ(decision.writes.size(), 1u);
  const Status status = all<WriteStatus>(decision).at(0).status;
  EXPECT_EQ(status.shard, "7-of-32");
  EXPECT_EQ(status.phase, Phase::kRunning) << "its end is for the holder of its shard";
}

// Somebody has set its shard before the operator looked at it.
TEST(Shard, ANewJobThatBelongsElsewhereStaysNewWithTheRightOne) {
  JobView view = new_job();
  view.job.status.shard = "3-of-32";
  view.shard_label = "7-of-32";
  view.belongs_elsewhere = true;
  const Status status = after(view);
  EXPECT_EQ(status.shard, "7-of-32");
  EXPECT_EQ(status.phase, Phase::kPending);
  EXPECT_EQ(status.attempt, 0);
  ASSERT_TRUE(status.waiting);
  EXPECT_EQ(status.waiting->reason, Reason::kOperatorAwaited) << "which is read as no phase";
}

}  // namespace
}  // namespace holdfast::reconciler::testing
