// Clocks of kubelets and API servers that are fast or slow, and what a process has seen by itself.
#include <gtest/gtest.h>

#include "reconciler/run/sightings.h"
#include "reconciler/run/verdict.h"
#include "tests/unit/reconciler/scenario.h"

namespace holdfast::reconciler::testing {
namespace {

constexpr std::chrono::hours kSkew{1};

// Bound 100 s ago, and seen to start 90 s ago by this process; its kubelet's clock is off by
// `skew`.
JobView started_job(Duration skew) {
  JobView view = running_job();
  view.job.spec.attempt_deadline = seconds(100);
  PodView& pod = add_pod(view, 1, PodPhase::kRunning);
  pod.containers[0].started_at = now() - seconds(90) + skew;
  view.begun().observed.pod.started = now() - seconds(90);
  return view;
}

TEST(PodTimes, AFastKubeletDelaysNoAttemptDeadline) {
  const JobView view = started_job(kSkew);
  EXPECT_EQ(after(view).waiting->deadline, now() + seconds(10));
  EXPECT_EQ(after(view).run().start_time, now() - seconds(90));
  EXPECT_TRUE(after(view, now() + seconds(9)).history.empty());
  EXPECT_EQ(after(view, now() + seconds(10)).history.at(0).outcome, Outcome::kDeadlineExceeded);
}

TEST(PodTimes, AStartThatIsOnRecordDoesNotMoveWhenTheFastClockIsReached) {
  JobView view = started_job(kSkew);
  view.job.spec.attempt_deadline = seconds(3600 + 200);
  view.job.status = after(view);
  view.begun().observed.pod = {};  // another process
  const Time due = now() + seconds(3600 + 200 - 90);
  EXPECT_TRUE(after(view, due - seconds(1)).history.empty());
  EXPECT_EQ(after(view, due).history.size(), 1u);
}

TEST(PodTimes, AStartInTheFutureThatNobodySawCountsAsTheBinding) {
  JobView view = started_job(kSkew);
  view.begun().observed.pod = {};
  view.job.spec.attempt_deadline = seconds(150);
  EXPECT_EQ(after(view).waiting->deadline, now() + seconds(50));
}

TEST(PodTimes, ASlowKubeletCostsAnAttemptThatWaitedForANodeNoTime) {
  JobView view = started_job(-kSkew);
  view.pods[0].created = now() - std::chrono::hours(50);
  view.pods[0].placed = now() - seconds(95);
  EXPECT_EQ(after(view).waiting->deadline, now() + seconds(5));
}

TEST(PodTimes, WhoSawThePodBeforeItsStartIsNotMisledByASlowKubelet) {
  JobView view = started_job(-seconds(60));
  view.pods[0].created = now() - std::chrono::hours(1);
  view.begun().observed.pod.unstarted = now() - seconds(92);
  EXPECT_EQ(after(view).waiting->deadline, now() + seconds(8));
}

TEST(PodTimes, HistoryRecordsTimesThatCanBe) {
  for (const Duration skew : {Duration(kSkew), -Duration(kSkew)}) {
    JobView view = started_job(skew);
    view.pods.clear();
    PodView& pod = add_ended_pod(view, 1, 0);
    pod.containers[0].started_at = now() - seconds(90) + skew;
    pod.containers[0].terminated->finished = now() - seconds(5) + skew;
    const HistoryEntry entry = after(view).history.at(0);
    EXPECT_GE(*entry.start_time, now() - seconds(100));
    EXPECT_LE(*entry.start_time, now());
    EXPECT_GE(*entry.end_time, *entry.start_time);
    EXPECT_LE(*entry.end_time, now());
  }
}

TEST(PodTimes, TheBindingIsBelievedWithinWhatWasSeen) {
  JobView view = running_job();
  PodView& pod = add_pod(view, 1, PodPhase::kPending);
  pod.created = now() - std::chrono::hours(50);
  view.begun().observed.pod.elsewhere = now() - seconds(20);
  view.begun().observed.pod.placed = now() - seconds(10);
  const auto reported = [&](Time placed) {
    view.pods[0].placed = placed;
    return *after(view, now() + seconds(60)).waiting->deadline - seconds(600);
  };
  EXPECT_EQ(reported(now() - seconds(15)), now() - seconds(15));
  EXPECT_EQ(reported(now() + kSkew), now() - seconds(10));
  EXPECT_EQ(reported(now() - kSkew), now() - seconds(20));
}

TEST(Sightings, RecordSinceWhenAPodStandsWhereItDoes) {
  JobView view = running_job();
  PodView pod = add_pod(view, 1, PodPhase::kPending);
  pod.node_name.clear();
  pod.gates = "quota";
  Sightings sightings;
  EXPECT_FALSE(sightings.of(pod).placed);
  sightings.see(pod, now());
  sightings.see(pod, now() + seconds(5));
  EXPECT_EQ(sightings.of(pod).placed, now());
  EXPECT_FALSE(sightings.of(pod).elsewhere);
  pod.gates.clear();
  sightings.see(pod, now() + seconds(7));
  pod.node_name = kNode;
  pod.phase = PodPhase::kRunning;
  sightings.see(pod, now() + seconds(9));
  EXPECT_EQ(sightings.of(pod).placed, now() + seconds(9));
  EXPECT_EQ(sightings.of(pod).elsewhere, now() + seconds(7));
  EXPECT_EQ(sightings.of(pod).started, now() + seconds(9));
}

TEST(Sightings, AreOneLatestPodsAndGoForward) {
  JobView view = running_job(2);
  PodView second = add_pod(view, 2, PodPhase::kRunning);
  PodView first = add_pod(view, 1, PodPhase::kRunning);
  Sightings sightings;
  sightings.see(second, now());
  sightings.see(first, now() + seconds(1));
  EXPECT_FALSE(sightings.of(first).placed) << "an earlier attempt's";
  PodView old = second;
  --old.version;
  old.node_name.clear();
  sightings.see(old, now() + seconds(2));
  EXPECT_EQ(sightings.of(second).placed, now()) << "an older version";
  EXPECT_FALSE(sightings.of(second).elsewhere);
}

TEST(Sightings, WhatCameFirstDecidesWhateverTheClocksSay) {
  JobView view = running_job();
  const PodView runs = add_pod(view, 1, PodPhase::kRunning);
  view.pods.clear();
  for (const Duration skew : {Duration(kSkew), -Duration(kSkew)}) {
    for (const int exit_code : {1, 130, 137, 143}) {
      PodView over = add_ended_pod(view, 1, exit_code);
      over.containers[0].terminated->finished = now() + skew;
      PodView deleted = runs;
      delete_pod(deleted, seconds(0));
      PodView both = over;
      both.deletion = now() + seconds(40);  // the kubelet's, when all is over

      Sightings deletion_first;
      deletion_first.see(runs, now());
      deletion_first.see(deleted, now());
      deletion_first.see(both, now());
      EXPECT_EQ(judge_ended_pod(both, deletion_first.of(both).order).outcome, Outcome::kLost);

      Sightings failure_first;
      failure_first.see(runs, now());
      failure_first.see(over, now());
      failure_first.see(both, now());
      EXPECT_EQ(judge_ended_pod(both, failure_first.of(both).order).outcome, Outcome::kFailed);
      view.pods.clear();
    }
  }
}

TEST(Sightings, WhoSawBothAtOnceSawNeitherFirst) {
  JobView view = running_job();
  PodView both = add_ended_pod(view, 1, 1);
  both.deletion = now();
  Sightings sightings;
  sightings.see(both, now());
  EXPECT_EQ(sightings.of(both).order, EndOrder::kUnknown);
}

// A kubelet that restarts may say for a moment that no container of a pod that runs has started.
void take_back(PodView& pod, bool with_containers) {
  pod.phase = PodPhase::kPending;
  if (!with_containers) return pod.containers.clear();
  ContainerView& main = pod.containers[0];
  main.started = false;
  main.started_at.reset();
  main.waiting_reason = "ContainerCreating";
  main.being_created = true;
}

TEST(TakenBack, WhatHasRunIsNoStartTimeout) {
  for (const bool with_containers : {true, false}) {
    for (const bool on_record : {true, false}) {
      JobView view = running_job();
      view.job.spec.start_deadline = seconds(60);
      PodView& pod = add_pod(view, 1, PodPhase::kRunning);
      if (on_record) view.job.status = after(view);  // and another process goes on
      if (!on_record) view.begun().observed.pod.started = now() - seconds(90);
      take_back(pod, with_containers);
      EXPECT_TRUE(after(view, now() + seconds(5)).history.empty()) << with_containers << on_record;
      EXPECT_FALSE(decide(view, now() + seconds(5)).confirm);
    }
  }
}

TEST(TakenBack, WhatRunsAgainAfterAMomentIsNotReported) {
  JobView view = running_job();
  PodView& pod = add_pod(view, 1, PodPhase::kRunning);
  view.job.status = after(view);
  take_back(pod, true);
  view.begun().observed.still_for = seconds(2);
  EXPECT_TRUE(decide(view, now() + seconds(2)).writes.empty());
  view.begun().observed.still_for = seconds(10);
  EXPECT_EQ(after(view, now() + seconds(10)).waiting->reason, "PodStarting");
}

// Nothing waits for ever for a kubelet that never reports the container again.
TEST(TakenBack, WhatStaysAwayForTheStartDeadlineEnds) {
  for (const bool with_containers : {true, false}) {
    JobView view = running_job();
    PodView& pod = add_pod(view, 1, PodPhase::kRunning);
    view.job.status = after(view);
    take_back(pod, with_containers);
    view.begun().observed.still_for = seconds(599);
    EXPECT_EQ(decide(view, now()).wake_after, seconds(1));
    view.begun().observed.still_for = seconds(600);
    const Status status = after(view);
    EXPECT_EQ(only(status.history).outcome, Outcome::kStartTimeout);
    EXPECT_THAT(status.history[0].message, HasSubstr("had run"));
  }
}

TEST(TakenBack, TheAttemptsTimeGoesOn) {
  JobView view = running_job();
  view.job.spec.attempt_deadline = seconds(100);
  PodView& pod = add_pod(view, 1, PodPhase::kRunning);
  view.begun().observed.pod.started = now() - seconds(90);
  take_back(pod, true);
  EXPECT_TRUE(after(view, now() + seconds(9)).history.empty());
  EXPECT_EQ(after(view, now() + seconds(10)).history.at(0).reason,
            Reason::kAttemptDeadlineExceeded);
}

TEST(TakenBack, AStartThatTheKubeletNeverDatedIsOnRecordAsWell) {
  JobView view = running_job();
  PodView& pod = add_pod(view, 1, PodPhase::kRunning);
  pod.containers.clear();
  view.begun().observed.pod.started = now() - seconds(90);
  EXPECT_EQ(after(view).run().start_time, now() - seconds(90));
}

TEST(TakenBack, WhatWasSeenToRunWasNotSeenUnstartedLater) {
  Sightings seen;
  JobView view = running_job();
  PodView& pod = add_pod(view, 1, PodPhase::kRunning);
  seen.see(pod, now());
  take_back(pod, true);
  ++pod.version;
  seen.see(pod, now() + seconds(1));
  EXPECT_EQ(seen.of(pod).started, now());
  EXPECT_FALSE(seen.of(pod).unstarted);
}

// Nobody saw how it ended, and it is not called a pod that never ran.
TEST(TakenBack, AFailedPodWithoutContainersWasLost) {
  JobView view = running_job();
  PodView& pod = add_pod(view, 1, PodPhase::kRunning);
  view.job.status = after(view);
  take_back(pod, false);
  pod.phase = PodPhase::kFailed;
  const Status status = after(view);
  EXPECT_EQ(status.history.at(0).outcome, Outcome::kLost);
  EXPECT_EQ(status.history.at(0).reason, "ContainerStatusUnknown");
  pod.reason = "DeadlineExceeded";
  pod.out_of_time = true;
  EXPECT_EQ(after(view).history.at(0).outcome, Outcome::kFailed);
}

}  // namespace
}  // namespace holdfast::reconciler::testing
