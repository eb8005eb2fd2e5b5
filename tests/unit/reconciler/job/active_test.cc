// A job of many runs: which ones open, end and stop, and what one write says of all of them.
#include <gtest/gtest.h>

#include "tests/unit/reconciler/scenario.h"

namespace holdfast::reconciler::testing {
namespace {

std::vector<std::int64_t> open_indexes(const Status& status) {
  std::vector<std::int64_t> indexes;
  for (const auto& run : status.runs) {
    if (run.open()) indexes.push_back(run.index);
  }
  return indexes;
}
using Indexes = std::vector<std::int64_t>;

TEST(ManyRuns, AsManyOpenAsParallelismAllowsTheLowestIndexFirstInOneWrite) {
  const JobView view = job_of_runs(10, 3, 0);
  const Decision decision = settle(view);
  ASSERT_EQ(all<WriteStatus>(decision).size(), 1u);
  EXPECT_EQ(all<CreatePod>(decision).size(), 3u);
  const Status status = after(view);
  EXPECT_EQ(open_indexes(status), (Indexes{0, 1, 2}));
  EXPECT_EQ(status.attempt, 3);
  EXPECT_EQ(status.runs[2].attempt, 3);
  EXPECT_EQ(all<CreatePod>(decision)[2].run, 2);
}

TEST(ManyRuns, AtMost64AttemptsStandWithoutAPod) {
  JobView view = job_of_runs(1000, 500, 0);
  view.job.status = after(view);
  EXPECT_EQ(view.job.status.runs.size(), 64u);
  view.runs.resize(64);
  for (RunView& run : view.runs) run.observed.own_intent = true;
  for (const auto& run : view.job.status.runs) create_pod_slowly(view, run.attempt);
  EXPECT_TRUE(all<WriteStatus>(settle(view)).empty());
  for (std::size_t position = 0; position < 10; ++position)
    view.runs[position].observed.pod_existed = true;
  EXPECT_EQ(after(view).runs.size(), 74u);
}

TEST(ManyRuns, EveryEndThatIsDueAndTheRunsThatOpenInsteadShareOneWrite) {
  JobView view = job_of_runs(10, 4, 4);
  end_pod(view, 0, 0);
  end_pod(view, 2, 0);
  end_pod(view, 3, 1);
  const Status status = after(view);
  EXPECT_EQ(status.completed.text(), "0,2");
  EXPECT_EQ(status.failures, 1);
  EXPECT_EQ(open_indexes(status), (Indexes{1, 4, 5, 6})) << "a run in back-off holds no slot";
  EXPECT_EQ(status.phase, Phase::kRunning);
  EXPECT_EQ(status.history.size(), 3u);
  EXPECT_EQ(status.history[0].outcome, Outcome::kSucceeded);
}

TEST(ManyRuns, ARunInBackOffOpensAgainBeforeLaterOnesBegin) {
  JobView view = job_of_runs(10, 2, 2);
  end_pod(view, 0, 1);
  view.job.status = after(view);
  view.pods.clear();
  EXPECT_EQ(open_indexes(view.job.status), (Indexes{1, 2}));
  view.job.status.runs[0].next_attempt_time = now() - seconds(1);
  view.job.spec.parallelism = 3;
  view.observed.since_write = seconds(60);
  const Status status = after(view);
  EXPECT_EQ(open_indexes(status)[0], 0);
  EXPECT_EQ(status.runs[0].attempts, 2);
}

TEST(ManyRuns, NoWriteDropsTheNewestEntryOfHistoryAndWhatEndedBadlyIsKeptFirst) {
  JobView view = job_of_runs(100, 50, 50);
  add_history(view, Outcome::kFailed, 10);
  view.job.status.history.back().attempt = 4711;
  for (std::int64_t index = 0; index < 48; ++index) end_pod(view, index, 0);
  end_pod(view, 48, 3);
  end_pod(view, 49, 3);
  const Status status = after(view);
  ASSERT_EQ(status.history.size(), 10u);
  EXPECT_EQ(status.history[0].attempt, 4711);
  EXPECT_EQ(std::count_if(status.history.begin() + 1, status.history.end(),
                          [](const auto& entry) { return entry.outcome == Outcome::kFailed; }),
            2);
}

TEST(ManyRuns, ManyEndsMakeOneEvent) {
  JobView view = job_of_runs(10, 4, 4);
  for (std::int64_t index = 0; index < 4; ++index) end_pod(view, index, 1);
  const auto events = written(view).events;
  EXPECT_EQ(only(events).reason, "AttemptsEnded");
  EXPECT_THAT(events[0].note, HasSubstr("4 attempts ended (4 Failed)"));
}

TEST(ManyRuns, TheEventOfAnEndNamesItsRun) {
  JobView view = job_of_runs(10, 4, 4);
  end_pod(view, 2, 1);
  const auto events = written(view).events;
  EXPECT_EQ(only(events).reason, "AttemptFailed");
  EXPECT_EQ(events[0].note.rfind("run 2, attempt 3 ended", 0), 0u) << events[0].note;
}

TEST(ManyRuns, ALossCostsItsRunOneDisruptionAndTheJobNoFailure) {
  JobView view = job_of_runs(200, 200, 200);
  view.observed.nodes[kNode].silent_for = seconds(41);
  const Decision first = decide(view, now());
  EXPECT_EQ(first.confirm_runs.size(), 200u) << "one round of live looks serves all";
  const Status status = after(view);
  EXPECT_EQ(status.failures, 0);
  EXPECT_EQ(status.disruptions, 200);
  for (const auto& run : status.runs) EXPECT_EQ(run.disruptions, 1);
  EXPECT_EQ(status.phase, Phase::kRunning);
}

TEST(ManyRuns, NewTroubleWaitsForTheNextReconcileAndHoldsUpNoEndThatIsDue) {
  JobView view = job_of_runs(10, 2, 2);
  end_pod(view, 0, 0);
  view.observed.nodes[kNode].silent_for = seconds(41);
  EXPECT_TRUE(decide(view, now()).confirm);
  view.observed.asked = now();
  const Decision decision = decide(view, now());
  EXPECT_FALSE(decision.confirm);
  EXPECT_EQ(all<WriteStatus>(decision).at(0).status.completed.text(), "0");
  EXPECT_EQ(decision.wake_after, Duration::zero());
}

TEST(ManyRuns, FewerAllowedStopTheHighestIndexesWithoutCost) {
  JobView view = job_of_runs(10, 4, 4);
  view.job.spec.parallelism = 2;
  const Status status = after(view);
  EXPECT_EQ(open_indexes(status), (Indexes{0, 1}));
  EXPECT_EQ(status.failures + status.disruptions, 0);
  EXPECT_EQ(status.history.back().reason, "ParallelismReduced");
  EXPECT_EQ(status.runs.size(), 4u);
  EXPECT_EQ(all<DeletePod>(settle(view)).size(), 2u);
}

TEST(ManyRuns, ParallelismZeroPausesTheJobAndMoreGoesOn) {
  JobView view = job_of_runs(10, 2, 2);
  view.job.spec.parallelism = 0;
  view.job.status = after(view);
  EXPECT_EQ(view.job.status.phase, Phase::kPending);
  EXPECT_EQ(view.job.status.waiting->reason, "Paused");
  view.pods.clear();
  view.job.spec.parallelism = 2;
  EXPECT_EQ(open_indexes(after(view)), (Indexes{0, 1}));
}

TEST(ManyRuns, SuspensionKeepsWhatIsCompleted) {
  JobView view = job_of_runs(10, 3, 3);
  end_pod(view, 1, 0);
  view.job.status = after(view);
  view.job.spec.suspend = true;
  const Status status = after(view);
  EXPECT_EQ(status.phase, Phase::kSuspended);
  EXPECT_EQ(status.completed.text(), "1");
  EXPECT_TRUE(open_indexes(status).empty());
}

TEST(ManyRuns, WritesOfOnePhaseAreApartByTheSizeOfTheStatus) {
  JobView view = job_of_runs(10, 4, 4);
  end_pod(view, 0, 0);
  view.observed.since_write = std::chrono::milliseconds(150);
  EXPECT_TRUE(all<WriteStatus>(settle(view)).empty());
  EXPECT_EQ(settle(view).wake_after, std::chrono::milliseconds(50));
  view.job.stored_bytes = 256 * 1024;
  view.observed.since_write = std::chrono::milliseconds(1500);
  EXPECT_EQ(settle(view).wake_after, std::chrono::milliseconds(500));
  view.observed.since_write = seconds(2);
  EXPECT_EQ(after(view).completed.text(), "0");
  view.observed.since_write = seconds(0);
  view.job.spec.cancel = true;
  EXPECT_EQ(after(view).phase, Phase::kCancelling) << "a change of phase waits for nothing";
}

TEST(ManyRuns, SuccessesThatNoOtherRunWaitsForAreCollectedForASecond) {
  JobView view = job_of_runs(4, 4, 4);
  view.observed.since_write = std::chrono::milliseconds(300);
  end_pod(view, 1, 0);
  EXPECT_EQ(rests_for(decide(view, now())), std::chrono::milliseconds(700));
  end_pod(view, 2, 1);
  EXPECT_FALSE(all<WriteStatus>(decide(view, now())).empty()) << "a failure does not wait";
}

// Until it is recorded, the next holder of the shard would call the attempt lost.
TEST(ManyRuns, ARefusedCreationDoesNotWaitForTheLastSuccesses) {
  JobView view = job_of_runs(4, 4, 4);
  view.observed.since_write = std::chrono::milliseconds(300);
  end_pod(view, 1, 0);
  const std::string pod = view.job.status.runs[3].pod_name;
  std::erase_if(view.pods, [&](const PodView& one) { return one.name == pod; });
  view.job.status.runs[3].pod_uid.clear();
  view.job.status.runs[3].node_name.clear();
  view.runs.resize(4);
  view.runs[3].observed.refusal =
      CreationRefusal{CreationRefusal::Kind::kRefused, "quota", seconds(5)};
  EXPECT_FALSE(all<WriteStatus>(decide(view, now())).empty());
}

TEST(ManyRuns, ASuccessThatMakesRoomForAnotherRunIsWrittenAtOnce) {
  JobView view = job_of_runs(5, 4, 4);
  view.observed.since_write = std::chrono::milliseconds(300);
  end_pod(view, 1, 0);
  EXPECT_FALSE(all<WriteStatus>(decide(view, now())).empty());
}

TEST(ManyRuns, ASuccessIsNotWhyAnotherRunWaitsItsBackOff) {
  JobView view = job_of_runs(2, 2, 2);
  view.job.status.runs[0].next_attempt_time = now() + seconds(9);
  std::erase_if(view.pods, [](const PodView& pod) { return pod.attempt == 1; });
  end_pod(view, 1, 0);
  EXPECT_EQ(after(view).phase, Phase::kBackoff);
  EXPECT_EQ(after(view).waiting->message, "no run may open before its back-off is over");
}

TEST(ManyRuns, TheLastSuccessEndsTheJobAtOnce) {
  JobView view = job_of_runs(2, 2, 2);
  view.observed.since_write = std::chrono::milliseconds(300);
  end_pod(view, 0, 0);
  end_pod(view, 1, 0);
  EXPECT_EQ(after(view).phase, Phase::kSucceeded);
}

void lose(JobView& view, std::size_t runs) {
  view.runs.resize(view.job.status.runs.size());
  for (std::size_t position = 0; position < runs; ++position) {
    view.runs[position].observed.pod_existed = view.runs[position].observed.confirmed = true;
  }
  view.pods.erase(view.pods.begin(), view.pods.begin() + static_cast<std::ptrdiff_t>(runs));
}

TEST(ManyRuns, LossesWaitHalfASecondAtMostHoweverLargeTheStatus) {
  JobView view = job_of_runs(10, 4, 4);
  lose(view, 1);
  view.job.stored_bytes = 512 * 1024;
  view.observed.since_write = std::chrono::milliseconds(450);
  EXPECT_TRUE(all<WriteStatus>(settle(view)).empty());
  EXPECT_EQ(settle(view).wake_after, std::chrono::milliseconds(50));
  view.observed.since_write = std::chrono::milliseconds(500);
  EXPECT_EQ(after(view).disruptions, 1);
}

TEST(ManyRuns, AllRunsThatAreLostTogetherHaveTheirNextAttemptsInTheSameWrite) {
  JobView view = job_of_runs(300, 200, 200);
  lose(view, 150);
  const Status status = after(view);
  EXPECT_EQ(status.disruptions, 150);
  EXPECT_EQ(open_indexes(status).size(), 200u);
}

TEST(ManyRuns, ARunThatCannotOpenBesideAnEndAsksForWhatItWaitsFor) {
  JobView view = job_of_runs(10, 2, 2);
  end_pod(view, 0, 0);
  view.observed.may_create = false;
  EXPECT_TRUE(settle(view).awaits_creation);
  EXPECT_EQ(after(view).completed.text(), "0");
  view = job_of_runs(10, 3, 3);
  view.job.spec.pod_replacement = PodReplacementPolicy::kFailed;
  view.job.status.runs[0].next_attempt_time = now();
  view.pods.erase(view.pods.begin());
  end_pod(view, 1, 0);
  EXPECT_EQ(decide(view, now()).confirm_runs, (Indexes{0}));
}

TEST(ManyRuns, IntentsThatThisWriteEndsDoNotCount) {
  JobView view = job_of_runs(200, 64, 64);
  view.runs.resize(64);
  for (RunView& run : view.runs) run.observed.confirmed = true;
  view.pods.clear();
  EXPECT_EQ(open_indexes(after(view)).size(), 64u);
}

TEST(ManyRuns, ALargeJobOpensOneIndexAfterTheOther) {
  JobView view = job_of_runs(10, 4, 1);
  view.job.stored_bytes = 1024 * 1024;
  EXPECT_EQ(open_indexes(after(view)), (Indexes{0}));
  end_pod(view, 0, 0);
  view.observed.since_write = seconds(60);
  EXPECT_EQ(open_indexes(after(view)), (Indexes{1}));
}

TEST(ManyRuns, TextsThatWouldMakeTheStatusTooLargeAreLeftOutAndNotWrittenAgain) {
  JobView view = job_of_runs(1000, 1000, 1000);
  for (auto& run : view.job.status.runs) run.progress = std::string(256, 'x');
  view.observed.since_write = seconds(60);
  end_pod(view, 0, 1);
  view.job.status = after(view);
  EXPECT_TRUE(view.job.status.runs[5].progress.empty());
  EXPECT_FALSE(view.job.status.runs[5].pod_name.empty());
  JobView refused = job_of_runs(1000, 1000, 1000);
  for (std::size_t position = 1; position < 1000; ++position) {
    auto& run = refused.job.status.runs[position];
    run.refused = std::string(1024, 'x');
    run.node_name.clear();
    run.pod_uid.clear();
  }
  refused.pods.resize(1);
  end_pod(refused, 0, 1);
  EXPECT_EQ(after(refused).runs[5].refused, std::string(32, 'x')) << "its pod may not exist";
  JobView few = job_of_runs(1000, 100, 100);
  for (auto& run : few.job.status.runs) run.progress = std::string(256, 'x');
  end_pod(few, 0, 1);
  EXPECT_EQ(after(few).runs[5].progress.size(), 256u);
}

TEST(ManyRuns, WaitingSaysThatABackOffIsWaitedForOnceParallelismIsRaised) {
  JobView view = job_of_runs(2, 1, 1);
  view.job.status.completed.add(1);
  end_pod(view, 0, 1);
  view.job.status = after(view);
  view.pods.clear();
  view.job.spec.parallelism = 0;
  view.observed.since_write = seconds(60);
  view.job.status = after(view);
  ASSERT_EQ(view.job.status.waiting->reason, Reason::kPaused);
  view.job.spec.parallelism = 1;
  EXPECT_EQ(after(view).waiting->reason, Reason::kRetryBackoff);
}

TEST(ManyRuns, ADeadlineThatHasPassedIsReportedAgainSoonAndOtherWordsWaitTenSeconds) {
  JobView view = job_of_runs(10, 2, 2);
  const AnyReason reason(Reason::kPodRunning);
  view.job.status.waiting = Waiting{reason, "old words", "goes on", now() + seconds(5)};
  view.observed.since_write = seconds(2);
  EXPECT_EQ(rests_for(settle(view)), seconds(5));
  view.job.status.waiting->deadline = now() - seconds(1);
  EXPECT_EQ(all<WriteStatus>(settle(view)).size(), 1u);
}

TEST(ManyRuns, ARunInBackOffKeepsNoOtherFromItsTurnToCreateAPod) {
  JobView view = job_of_runs(3, 1, 1);
  end_pod(view, 0, 1);
  view.job.status = after(view);
  view.pods.clear();
  view.job.status.phase = Phase::kBackoff;
  view.job.status.runs.resize(1);
  view.runs.resize(1);
  view.observed.may_create = false;
  EXPECT_TRUE(settle(view).awaits_creation);
}

TEST(ManyRuns, OfFewerAllowedThoseThatEndByThemselvesAreTheFirst) {
  JobView view = job_of_runs(10, 4, 4);
  end_pod(view, 0, 0);
  view.job.spec.parallelism = 3;
  const Status status = after(view);
  EXPECT_EQ(open_indexes(status), (Indexes{1, 2, 3}));
}

TEST(ManyRuns, TheLeaseOfARunThatThisViewDoesNotKnowYetIsLeftAlone) {
  JobView view = job_of_runs(10, 1, 1);
  view.job.spec.heartbeat = Heartbeat{};
  view.job.status.completed.add(5);
  view.leases_over.push_back({5, {}, {}});
  view.leases_over[0].lease.attempt = view.job.status.attempt + 1;
  EXPECT_TRUE(all<DeleteLease>(settle(view)).empty());
  view.leases_over[0].lease.attempt = view.job.status.attempt;
  EXPECT_EQ(all<DeleteLease>(settle(view)).size(), 1u);
}

TEST(ManyRuns, OnlyTheListedIndexesRun) {
  JobView view = job_of_runs(10, 5, 0);
  view.job.spec.indexes = IndexSet::parse("2,4-5", 9);
  EXPECT_EQ(open_indexes(after(view)), (Indexes{2, 4, 5}));
}

TEST(ManyRuns, AnOldPodWithoutAnOwnerHoldsUpItsRunIfThePolicyIsFailed) {
  JobView view = job_of_runs(10, 2, 2);
  view.job.spec.pod_replacement = PodReplacementPolicy::kFailed;
  view.job.status.runs[0].pod_uid.clear();
  view.job.status.runs[0].start_time = view.pods[0].intent = now() - seconds(99) + Duration(4711);
  view.pods[0].owner_uid.clear();
  view.job.status = after(view);
  EXPECT_EQ(view.job.status.history.back().reason, "OwnerRemoved");
  EXPECT_EQ(open_indexes(view.job.status), (Indexes{1, 2}));
  view.job.spec.parallelism = 3;
  EXPECT_EQ(open_indexes(after(view)), (Indexes{1, 2, 3}));
  view.pods.erase(view.pods.begin());
  EXPECT_EQ(open_indexes(after(view)), (Indexes{0, 1, 2}));
}

TEST(ManyRuns, ADeadlineOfARunThatHasEndedIsReplacedWithinASecond) {
  JobView view = job_of_runs(10, 2, 2);
  view.job.status.waiting->deadline = now() + seconds(5);
  view.observed.since_write = seconds(2);
  EXPECT_TRUE(all<WriteStatus>(settle(view)).empty()) << "it is only news";
  view.job.status.waiting->deadline = now() - seconds(1);
  EXPECT_FALSE(after(view).waiting->deadline);
  view.observed.since_write = std::chrono::milliseconds(300);
  EXPECT_LE(settle(view).wake_after, std::chrono::milliseconds(700));
}

TEST(ManyRuns, ARunThatHoldsALeaseHasOneOfItsOwn) {
  JobView view = job_of_runs(3, 2, 2);
  view.job.spec.heartbeat = Heartbeat{};
  view.runs.resize(2);
  for (RunView& run : view.runs) run.observed.own_intent = true;
  const auto leases = all<WriteLease>(settle(view));
  ASSERT_EQ(leases.size(), 2u);
  EXPECT_EQ(leases[1].run, 1);
  EXPECT_EQ(leases[1].holder, pod_of(2) + "/pod-uid-2") << "nobody had it before";
  view.job.status.runs[1].attempts = 2;
  EXPECT_EQ(all<WriteLease>(settle(view))[1].holder, "") << "an earlier attempt may have had it";
}

TEST(ManyRuns, TheLeaseOfARunThatIsOverIsDeleted) {
  JobView view = job_of_runs(3, 2, 2);
  view.job.spec.heartbeat = Heartbeat{};
  view.job.status.completed.add(2);
  view.leases_over.push_back({2, {}, {}});
  EXPECT_EQ(only(all<DeleteLease>(settle(view))).run, 2);
}

}  // namespace
}  // namespace holdfast::reconciler::testing
