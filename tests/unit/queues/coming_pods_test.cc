// For how long a job keeps its permit because a pod of it may still come.
#include "operator/queues/coming_pods.h"

#include <gtest/gtest.h>

#include "reconciler/refusals.h"

namespace holdfast::queues {
namespace {

using reconciler::kCreationLimit;
using std::chrono::seconds;

struct ComingPodsTest : ::testing::Test {
  // Attempt 3 ended at `now` without a trace of its pod.
  ComingPodsTest() {
    job.namespace_ = "media";
    job.name = "encode";
    job.job.status.attempt = 3;
    reconciler::HistoryEntry end;
    end.attempt = 3;
    end.pod_name = "encode-3";
    end.end_time = now;
    job.job.status.history = {end};
  }

  codecs::CachedJob job;
  const Time now = Time{} + seconds(1000);
  const SteadyTime steady = SteadyTime{} + seconds(50);
  ComingPods coming;
};

TEST_F(ComingPodsTest, APodMayComeUntilNoRequestForItCanBeLeft) {
  EXPECT_TRUE(coming.may_come(job, now, steady));
  EXPECT_TRUE(coming.may_come(job, now, steady + kCreationLimit - seconds(1)));
  EXPECT_FALSE(coming.may_come(job, now, steady + kCreationLimit));
}

TEST_F(ComingPodsTest, WhatEndedLongAgoMayCauseNone) {
  EXPECT_FALSE(coming.may_come(job, now + kCreationLimit, steady));
}

TEST_F(ComingPodsTest, ADateInTheFutureMakesNobodyWaitLonger) {
  EXPECT_TRUE(coming.may_come(job, now - seconds(3600), steady));
  EXPECT_FALSE(coming.may_come(job, now, steady + kCreationLimit));
}

TEST_F(ComingPodsTest, TheNextAttemptHasATimeOfItsOwn) {
  EXPECT_TRUE(coming.may_come(job, now, steady));
  job.job.status.attempt = 4;
  job.job.status.history[0].attempt = 4;
  job.job.status.history[0].end_time = now + seconds(60);
  EXPECT_TRUE(coming.may_come(job, now + seconds(60), steady + seconds(60)));
  EXPECT_TRUE(coming.may_come(job, now, steady + seconds(100)));
}

TEST_F(ComingPodsTest, WhoKnowsBetterEndsTheTimeAndThatIsNewsOnce) {
  EXPECT_FALSE(coming.none_comes(job, steady)) << "nobody waited";
  EXPECT_TRUE(coming.may_come(job, now, steady));
  EXPECT_TRUE(coming.none_comes(job, steady));
  EXPECT_FALSE(coming.may_come(job, now, steady));
  EXPECT_FALSE(coming.none_comes(job, steady));
}

TEST_F(ComingPodsTest, AJobWhoseTimeIsOverIsReportedOnce) {
  EXPECT_TRUE(coming.may_come(job, now, steady));
  ComingPods::Look look = coming.look("media", steady + seconds(5));
  EXPECT_TRUE(look.over.empty());
  EXPECT_EQ(look.next, kCreationLimit - seconds(5));
  EXPECT_TRUE(coming.look("proofs", steady + kCreationLimit).over.empty()) << "it is another's";
  look = coming.look("media", steady + kCreationLimit);
  EXPECT_EQ(look.over, std::vector<std::string>{"media/encode"});
  EXPECT_FALSE(look.next);
  EXPECT_TRUE(coming.look("media", steady + kCreationLimit).over.empty());
}

TEST_F(ComingPodsTest, AJobThatIsForgottenIsNotReported) {
  EXPECT_TRUE(coming.may_come(job, now, steady));
  coming.forget(job);
  EXPECT_TRUE(coming.look("media", steady + kCreationLimit).over.empty());
}

}  // namespace
}  // namespace holdfast::queues
