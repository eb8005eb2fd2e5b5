// Which silences are worth a record in a shard's Lease: those that a verdict on a job waits for.
#include "operator/jobs/job_silences.h"

#include <gtest/gtest.h>

namespace holdfast::jobs {
namespace {

using reconciler::Phase;
using std::chrono::seconds;

class SilencesTest : public testing::Test {
 protected:
  SilencesTest() {
    job_.job.status.phase = Phase::kRunning;
    job_.job.status.attempt = 1;
    job_.job.spec.lost_after = seconds(40);
    job_.job.spec.start_deadline = seconds(600);
    job_.job.spec.heartbeat.emplace();
    job_.job.spec.heartbeat->lease_duration = seconds(30);
    reconciler::Run& run = job_.job.status.begun();
    run.attempt = 1;
    run.pod_name = pod_.name = pod_.pod.name = "a-1-abcde";
    lease_.lease.holder = "a-1-abcde/uid";
  }
  codecs::CachedJob job_;
  codecs::CachedPod pod_;
  codecs::CachedHeartbeat lease_;
};

TEST_F(SilencesTest, AJobWaitsForTheNodeOfTheAttemptThatRuns) {
  EXPECT_EQ(wait_for_node(job_, pod_.name, /*missing=*/false), seconds(80))
      << "the breaker may add a window";
  EXPECT_EQ(wait_for_node(job_, "a-0-abcde", /*missing=*/false), std::nullopt);
  EXPECT_EQ(wait_for_node(job_, pod_.name, /*missing=*/true), seconds(40));
  job_.job.status.begun().next_attempt_time = Time{};
  EXPECT_EQ(wait_for_node(job_, pod_.name, false), std::nullopt) << "it has ended";
  EXPECT_EQ(wait_for_node(job_, pod_.name, true), seconds(40)) << "does its pod still live?";
}

TEST_F(SilencesTest, AFinishedJobWaitsForNoNode) {
  job_.job.status.phase = Phase::kSucceeded;
  EXPECT_EQ(wait_for_node(job_, pod_.name, false), std::nullopt);
  EXPECT_EQ(wait_for_node(job_, pod_.name, true), std::nullopt);
}

TEST_F(SilencesTest, AJobThatIsCancelledWaitsForMissingNodesOfAllItsPods) {
  job_.job.status.phase = Phase::kCancelling;
  EXPECT_EQ(wait_for_node(job_, "a-0-abcde", true), seconds(40));
  EXPECT_EQ(wait_for_node(job_, "a-0-abcde", false), std::nullopt);
}

TEST_F(SilencesTest, AnOpenRunWaitsForTheEndOfItsDeletedPod) {
  EXPECT_EQ(wait_for_pod(job_, pod_, /*going=*/true), seconds(40));
  pod_.name = "a-0-abcde";
  EXPECT_EQ(wait_for_pod(job_, pod_, true), std::nullopt) << "of an earlier attempt";
  job_.job.status.phase = Phase::kCancelling;
  EXPECT_EQ(wait_for_pod(job_, pod_, true), seconds(40)) << "now the job waits for all of them";
}

TEST_F(SilencesTest, APodsNextStepIsWaitedForOnceAContainerHasRun) {
  EXPECT_EQ(wait_for_pod(job_, pod_, /*going=*/false), std::nullopt)
      << "its time counts from its binding";
  reconciler::ContainerView container;
  container.started = true;
  pod_.pod.containers.push_back(container);
  ASSERT_TRUE(pod_.pod.started());
  EXPECT_EQ(wait_for_pod(job_, pod_, false), seconds(600));
}

TEST_F(SilencesTest, AHealthyHoldersSilenceIsNotRecorded) {
  EXPECT_EQ(wait_for_lease(job_, lease_, seconds(14), seconds(14)), std::nullopt);
}

TEST_F(SilencesTest, AHoldersSilenceOfHalfItsLeaseIsRecorded) {
  EXPECT_EQ(wait_for_lease(job_, lease_, seconds(15), seconds(0)), seconds(60));
  EXPECT_EQ(wait_for_lease(job_, lease_, seconds(0), seconds(15)), seconds(60))
      << "a process that has just begun goes by the date";
  EXPECT_EQ(wait_for_lease(job_, lease_, seconds(0), std::nullopt), std::nullopt);
}

TEST_F(SilencesTest, WithoutAHolderThatRenewsEachSilenceIsRecorded) {
  lease_.lease.holder.clear();
  EXPECT_EQ(wait_for_lease(job_, lease_, seconds(0), std::nullopt), seconds(60));
  lease_.lease.ended = true;
  EXPECT_EQ(wait_for_lease(job_, lease_, seconds(0), std::nullopt), seconds(80)) << "lostAfter";
}

TEST_F(SilencesTest, TheNextHolderWaitsForTheLongestLeaseOfAnyStage) {
  reconciler::Stage stage;
  stage.spec.heartbeat.emplace();
  stage.spec.heartbeat->lease_duration = seconds(300);
  job_.job.stages.push_back(stage);
  EXPECT_EQ(wait_for_lease(job_, lease_, seconds(15), std::nullopt), seconds(600));
}

TEST_F(SilencesTest, AJobThatHasEndedOrHasNoHeartbeatWaitsForNoLease) {
  lease_.lease.holder.clear();
  job_.job.status.phase = Phase::kFailed;
  EXPECT_EQ(wait_for_lease(job_, lease_, seconds(99), std::nullopt), std::nullopt);
  job_.job.status.phase = Phase::kRunning;
  job_.job.spec.heartbeat.reset();
  EXPECT_EQ(wait_for_lease(job_, lease_, seconds(99), std::nullopt), std::nullopt);
}

}  // namespace
}  // namespace holdfast::jobs
