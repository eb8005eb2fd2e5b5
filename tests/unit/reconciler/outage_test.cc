// Jobs that were lost together in an outage of the API server start again spread over a time that
// grows with their number; a lone loss goes on at once.
#include "reconciler/outage.h"

#include <gtest/gtest.h>

#include "core/agent_protocol.h"
#include "tests/unit/reconciler/scenario.h"

namespace holdfast::reconciler::testing {
namespace {

constexpr seconds kDuration{30};

// Its agent has fenced itself, with so many others.
JobView fenced_job(int lost_together) {
  JobView view = running_job();
  view.job.spec.heartbeat = Heartbeat{kDuration, std::nullopt};
  PodView& pod = add_ended_pod(view, 1, kFencedExitCode);
  pod.containers[0].worker = true;
  pod.containers[0].terminated->message = std::string(kFencedMark) + "it could not renew";
  view.job.spec.retry_backoff.jitter_percent = 0;
  view.begun().observed.lease.lost_together = lost_together;
  return view;
}

LeaseView held_lease(seconds renewed_ago) {
  LeaseView lease;
  lease.attempt = 1;
  lease.holder = lease.granted = pod_of(1) + "/uid";
  lease.renewed = true;
  lease.renewed_at = now() - renewed_ago;
  return lease;
}

HolderCount counted(const LeaseView& lease, const Status& status) {
  HolderCount count;
  count.add(lease, kDuration, status, now());
  return count;
}

TEST(RestartWait, GrowsWithTheNumberUpToTheLongestAndFewStartAtOnce) {
  Duration longest{0};
  for (int job = 0; job < 1000; ++job) {
    const std::string uid = "uid-" + std::to_string(job);
    EXPECT_EQ(restart_wait(kRestartsAtOnce, uid, 1), Duration::zero());
    longest = std::max(longest, restart_wait(1000, uid, 1));
    EXPECT_LT(restart_wait(1'000'000, uid, 1), kLongestSpread);
  }
  EXPECT_LT(longest, seconds(1000 / kRestartsPerSecond));
  EXPECT_GT(longest, seconds(1000 / kRestartsPerSecond - 1));
}

TEST(RestartWait, IsEvenAndTheSameOnEveryReplica) {
  std::vector<int> started(50);
  for (int job = 0; job < 1000; ++job) {
    const std::string uid = "uid-" + std::to_string(job);
    const Duration wait = restart_wait(1000, uid, 3);
    EXPECT_EQ(wait, restart_wait(1000, uid, 3));
    ++started[static_cast<std::size_t>(std::chrono::floor<seconds>(wait).count())];
  }
  EXPECT_LE(*std::max_element(started.begin(), started.end()), 2 * kRestartsPerSecond);
  EXPECT_NE(restart_wait(1000, "a", 3), restart_wait(1000, "b", 3));
  EXPECT_NE(restart_wait(1000, "a", 3), restart_wait(1000, "a", 4));
}

TEST(RestartsSpread, OneThatWasLostWithManyWaitsAndSaysSo) {
  const Status status = after(fenced_job(1000));
  const Duration wait = restart_wait(1000, kUid, 1);
  EXPECT_EQ(status.phase, Phase::kBackoff);
  EXPECT_EQ(status.run().next_attempt_time, now() + wait);
  EXPECT_EQ(status.waiting->deadline, now() + wait);
  EXPECT_EQ(status.waiting->reason, Reason::kRestartsSpread);
  EXPECT_EQ(status.disruptions, 1);
}

TEST(RestartsSpread, ALoneLossGoesOnAtOnce) {
  for (const int lost : {0, 1, kRestartsAtOnce}) {
    EXPECT_EQ(after(fenced_job(lost)).phase, Phase::kRunning) << lost;
  }
}

TEST(RestartsSpread, WhatEndedByItselfWaitsItsBackOffAlone) {
  JobView view = fenced_job(1000);
  view.pods[0].containers[0].terminated->exit_code = 1;
  view.pods[0].containers[0].terminated->message.clear();
  const Status status = after(view);
  EXPECT_EQ(status.run().next_attempt_time, now() + seconds(10));
  EXPECT_EQ(status.waiting->reason, "RetryBackoff");
}

TEST(RestartsSpread, ComesOnTopOfTheBackOffOfALaterLoss) {
  JobView view = fenced_job(1000);
  add_history(view, Outcome::kLost, 1);
  EXPECT_EQ(after(view).run().next_attempt_time, now() + seconds(10) + restart_wait(1000, kUid, 1));
}

// retryBackoff.maxSeconds bounds the back-off, not the spread.
TEST(RestartsSpread, IsNotCutShortByTheLongestBackOff) {
  JobView view = job_in(Phase::kBackoff);
  view.job.spec.retry_backoff.max = seconds(10);
  Status& status = view.job.status;
  status.waiting->reason = Reason::kRestartsSpread;
  view.job.spec.heartbeat = Heartbeat{};
  status.begun().disruptions = status.disruptions = 1;
  status.begun().next_attempt_time = status.waiting->deadline =
      now() + seconds(10) + kLongestSpread;
  EXPECT_TRUE(all<WriteStatus>(settle(view)).empty());
  EXPECT_EQ(after(view, *status.run().next_attempt_time).attempt, 2);
  status.begun().next_attempt_time = now() + std::chrono::years(1);
  EXPECT_EQ(after(view).run().next_attempt_time, now() + seconds(10) + kLongestSpread);
}

TEST(RestartsSpread, StaysThatOfEachRunWhateverTheJobWaitsFor) {
  JobView view = job_of_runs(4, 4, 4);
  view.job.spec.heartbeat = Heartbeat{};
  view.job.spec.retry_backoff.max = seconds(30);
  view.job.status.disruptions = 2;
  for (const std::size_t position : {1u, 2u}) {
    auto& run = view.job.status.runs[position];
    run.disruptions = 1;
    run.next_attempt_time = now() + seconds(60 + 30 * static_cast<std::int64_t>(position));
  }
  std::erase_if(view.pods, [](const PodView& pod) { return pod.attempt == 2 || pod.attempt == 3; });
  view.observed.since_write = seconds(60);
  end_pod(view, 0, 1);
  const Status status = after(view);
  EXPECT_EQ(status.runs[1].next_attempt_time, now() + seconds(90));
  EXPECT_EQ(status.runs[2].next_attempt_time, now() + seconds(120));
}

TEST(HolderCount, AHolderIsLostOnceItHasNotRenewedForTwoThirdsOfTheDuration) {
  const Status status = running_job().job.status;
  EXPECT_EQ(counted(held_lease(seconds(20)), status).held, 1);
  EXPECT_EQ(counted(held_lease(seconds(20)), status).lost, 0);
  EXPECT_EQ(counted(held_lease(seconds(21)), status).lost, 1);
}

TEST(HolderCount, OneThatWaitsForItsNextAttemptStillCounts) {
  Status status = job_in(Phase::kBackoff).job.status;
  EXPECT_EQ(counted(held_lease(seconds(60)), status).held, 0);
  status.waiting->reason = Reason::kRestartsSpread;
  EXPECT_EQ(counted(held_lease(seconds(60)), status).held, 1);
  EXPECT_EQ(counted(held_lease(seconds(60)), status).lost, 1);
}

TEST(HolderCount, WhoOwesNoRenewalDoesNotCount) {
  LeaseView ended = held_lease(seconds(60));
  ended.ended = true;
  LeaseView taken = held_lease(seconds(60));
  taken.holder.clear();
  LeaseView never = held_lease(seconds(60));
  never.renewed = false;
  never.renewed_at.reset();
  for (const LeaseView& lease : {ended, taken, never}) {
    EXPECT_EQ(counted(lease, running_job().job.status).held, 0);
  }
  EXPECT_EQ(counted(held_lease(seconds(60)), running_job(2).job.status).held, 0);
  EXPECT_EQ(counted(held_lease(seconds(60)), job_in(Phase::kSucceeded).job.status).held, 0);
}

TEST(HolderCount, AReplicaTakesTheShardsOfOthersForAsManyAsItsOwn) {
  EXPECT_EQ(in_all_shards(50, 8, 32), 200);
  EXPECT_EQ(in_all_shards(50, 32, 32), 50);
  EXPECT_EQ(in_all_shards(50, 0, 32), 1600) << "it has just lost them";
}

TEST(HolderCount, WhereMostOthersLiveAnOutageWasNotTheCause) {
  EXPECT_EQ((HolderCount{200, 100}).lost_together(), 0);
  EXPECT_EQ((HolderCount{200, 101}).lost_together(), 101);
}

}  // namespace
}  // namespace holdfast::reconciler::testing
