// What the end of a pod means for its attempt.
#include "reconciler/run/verdict.h"

#include <gtest/gtest.h>

#include "tests/unit/reconciler/scenario.h"

namespace holdfast::reconciler::testing {
namespace {

PodView ended(int exit_code) {
  JobView view = running_job();
  return add_ended_pod(view, 1, exit_code);
}

// A failed pod whose container ended `after` the second in which its deletion was asked for.
PodView deleted_then_ended(int exit_code, seconds after) {
  PodView pod = ended(exit_code);
  pod.deletion_grace = seconds(30);
  pod.deletion = *pod.containers[0].terminated->finished - after + pod.deletion_grace;
  return pod;
}

ContainerView container_that_ended(const std::string& name, int exit_code, seconds ago) {
  ContainerView container;
  container.name = name;
  container.started = true;
  Terminated terminated;
  terminated.exit_code = exit_code;
  terminated.reason = exit_code == 0 ? "Completed" : "Error";
  terminated.finished = now() - ago;
  container.terminated = terminated;
  return container;
}

TEST(Verdict, ASucceededPodIsASuccessAlsoWhileItIsBeingDeleted) {
  PodView pod = ended(0);
  EXPECT_EQ(judge_ended_pod(pod).outcome, Outcome::kSucceeded);
  EXPECT_EQ(judge_ended_pod(pod).exit_code, 0);
  EXPECT_EQ(judge_ended_pod(pod).ended, now() - seconds(5));
  delete_pod(pod, seconds(300));
  EXPECT_EQ(judge_ended_pod(pod).outcome, Outcome::kSucceeded);
}

TEST(Verdict, AFailedPodReportsReasonAndExitCodeOfItsContainer) {
  PodView pod = ended(137);
  pod.containers[0].terminated->reason = "OOMKilled";
  const Verdict verdict = judge_ended_pod(pod);
  EXPECT_EQ(verdict.outcome, Outcome::kFailed);
  EXPECT_EQ(verdict.reason, "OOMKilled");
  EXPECT_EQ(verdict.exit_code, 137);
  EXPECT_EQ(verdict.message, "container main ended with exit code 137");
}

TEST(Verdict, WhatAContainerSaidLastIsPassedOn) {
  PodView pod = ended(7);
  pod.containers[0].terminated->message = "no more quota\n";
  EXPECT_EQ(in_one_line(judge_ended_pod(pod)),
            "container main ended with exit code 7: no more quota");
  pod.containers[0].terminated->message = "\n";
  EXPECT_EQ(in_one_line(judge_ended_pod(pod)), "container main ended with exit code 7");
}

TEST(Verdict, AnInitContainerIsCalledOne) {
  PodView pod = ended(4);
  pod.containers[0].init = true;
  EXPECT_EQ(judge_ended_pod(pod).message, "init container main ended with exit code 4");
}

TEST(Verdict, AContainerThatEndedBeforeTheSecondOfItsDeletionHasFailed) {
  EXPECT_EQ(judge_ended_pod(deleted_then_ended(137, seconds(-31))).outcome, Outcome::kFailed);
  EXPECT_EQ(judge_ended_pod(deleted_then_ended(1, seconds(-1))).outcome, Outcome::kFailed);
}

TEST(Verdict, ASlowKubeletMakesNoFailureOfAContainerThatADeletionStopped) {
  EXPECT_EQ(judge_ended_pod(deleted_then_ended(143, seconds(-30))).outcome, Outcome::kLost);
  EXPECT_EQ(judge_ended_pod(deleted_then_ended(137, seconds(-1))).outcome, Outcome::kLost);
}

TEST(Verdict, AContainerThatEndedAfterTheSecondOfItsDeletionIsLost) {
  for (const int exit_code : {1, 137, 143}) {
    const Verdict verdict = judge_ended_pod(deleted_then_ended(exit_code, seconds(1)));
    EXPECT_EQ(verdict.outcome, Outcome::kLost);
    EXPECT_EQ(verdict.exit_code, exit_code);
    EXPECT_EQ(verdict.orphan_class, "pod_vanished");
  }
}

TEST(Verdict, InTheSecondOfItsDeletionTheExitCodeDecides) {
  EXPECT_EQ(judge_ended_pod(deleted_then_ended(1, seconds(0))).outcome, Outcome::kFailed);
  EXPECT_EQ(judge_ended_pod(deleted_then_ended(137, seconds(0))).outcome, Outcome::kLost);
  EXPECT_EQ(judge_ended_pod(deleted_then_ended(143, seconds(0))).outcome, Outcome::kLost);
}

TEST(Verdict, WhenTheKubeletHasTakenTheGraceAwayTheExitCodeDecides) {
  const auto seen_last = [](int exit_code, seconds before, bool out_of_memory = false) {
    PodView pod = ended(exit_code);
    pod.containers[0].terminated->out_of_memory = out_of_memory;
    pod.deletion = *pod.containers[0].terminated->finished + before;
    return judge_ended_pod(pod).outcome;
  };
  EXPECT_EQ(seen_last(143, seconds(1)), Outcome::kLost);
  EXPECT_EQ(seen_last(143, seconds(300)), Outcome::kLost) << "its volumes took their time";
  EXPECT_EQ(seen_last(137, seconds(30)), Outcome::kLost);
  EXPECT_EQ(seen_last(137, seconds(1), true), Outcome::kFailed);
  EXPECT_EQ(seen_last(1, seconds(1)), Outcome::kFailed);
  EXPECT_EQ(seen_last(1, seconds(-1)), Outcome::kLost);
}

TEST(Verdict, AShortGraceMayHideALongerOne) {
  PodView pod = ended(143);
  pod.deletion_grace = seconds(1);
  pod.deletion = *pod.containers[0].terminated->finished + seconds(18);
  EXPECT_EQ(judge_ended_pod(pod).outcome, Outcome::kLost);
  pod.out_of_time = true;
  EXPECT_EQ(judge_ended_pod(pod).outcome, Outcome::kFailed) << "the kubelet says why it was killed";
}

TEST(Verdict, FractionsOfTheSecondOfDeletionDoNotCount) {
  PodView pod = deleted_then_ended(1, seconds(0));
  *pod.containers[0].terminated->finished += std::chrono::milliseconds(900);
  EXPECT_EQ(judge_ended_pod(pod).outcome, Outcome::kFailed);
}

TEST(Verdict, ADeletedPodWhoseContainerReportsNoTimeIsLost) {
  PodView pod = deleted_then_ended(1, seconds(-20));
  pod.containers[0].terminated->finished.reset();
  EXPECT_EQ(judge_ended_pod(pod).outcome, Outcome::kLost);
  pod.containers[0].terminated.reset();
  EXPECT_EQ(judge_ended_pod(pod).outcome, Outcome::kLost);
}

TEST(Verdict, ADisruptionTargetIsLostWithTheReasonOfTheDisruption) {
  PodView pod = ended(1);
  pod.disruption_target = true;
  pod.disruption_reason = "PreemptionByScheduler";
  EXPECT_EQ(judge_ended_pod(pod).outcome, Outcome::kLost);
  EXPECT_EQ(judge_ended_pod(pod).reason, "PreemptionByScheduler");
  EXPECT_EQ(judge_ended_pod(pod).orphan_class, "pod_disrupted");
}

TEST(Verdict, APodThatTheKubeletRejectedIsLost) {
  PodView pod = ended(1);
  pod.containers.clear();
  pod.reason = "OutOfcpu";
  pod.message = "Pod was rejected: Node didn't have enough resource: cpu";
  EXPECT_EQ(judge_ended_pod(pod).outcome, Outcome::kLost);
  EXPECT_EQ(judge_ended_pod(pod).reason, "OutOfcpu");
  EXPECT_EQ(judge_ended_pod(pod).message, pod.message);
}

TEST(Verdict, AFailedPodWithNoReasonAtAllFailedAsError) {
  PodView pod = ended(3);
  pod.containers[0].terminated->reason.clear();
  EXPECT_EQ(judge_ended_pod(pod).reason, "Error");
}

TEST(Verdict, AnEndThatTheKubeletDidNotSeeIsLost) {
  PodView pod = ended(137);
  pod.containers[0].terminated->reason = "ContainerStatusUnknown";
  pod.containers[0].terminated->was_seen = false;
  EXPECT_EQ(judge_ended_pod(pod).outcome, Outcome::kLost);
  EXPECT_EQ(judge_ended_pod(pod).reason, "ContainerStatusUnknown");
}

TEST(Verdict, TheFirstContainerToEndBadlyDecides) {
  PodView pod = ended(0);
  pod.phase = PodPhase::kFailed;
  pod.containers = {container_that_ended("good", 0, seconds(30)),
                    container_that_ended("killed-later", 143, seconds(5)),
                    container_that_ended("first", 7, seconds(20))};
  EXPECT_EQ(judge_ended_pod(pod).exit_code, 7);
  EXPECT_EQ(judge_ended_pod(pod).ended, now() - seconds(20));
}

TEST(Verdict, AnInitContainerThatFailsDecides) {
  PodView pod = ended(0);
  pod.phase = PodPhase::kFailed;
  pod.containers[0].started = false;
  pod.containers[0].terminated.reset();
  pod.containers.push_back(container_that_ended("fetch", 4, seconds(9)));
  pod.containers.back().init = true;
  EXPECT_EQ(judge_ended_pod(pod).outcome, Outcome::kFailed);
  EXPECT_EQ(judge_ended_pod(pod).exit_code, 4);
}

TEST(Verdict, ASidecarSaysNothing) {
  PodView pod = ended(6);
  pod.containers.push_back(container_that_ended("proxy", 143, seconds(60)));
  pod.containers.back().init = true;
  pod.containers.back().sidecar = true;
  EXPECT_EQ(judge_ended_pod(pod).exit_code, 6);

  PodView good = ended(0);
  good.containers.push_back(pod.containers.back());
  good.containers.back().terminated->finished = now();
  EXPECT_EQ(judge_ended_pod(good).outcome, Outcome::kSucceeded);
  EXPECT_EQ(judge_ended_pod(good).ended, now() - seconds(5));
}

TEST(Verdict, ATemplatesOwnDeadlineIsAFailureWithItsReason) {
  PodView pod = ended(0);
  pod.phase = PodPhase::kFailed;
  pod.containers[0].terminated.reset();
  pod.reason = "DeadlineExceeded";
  pod.message = "Pod was active on the node longer than the specified deadline";
  EXPECT_EQ(judge_ended_pod(pod).outcome, Outcome::kFailed);
  EXPECT_EQ(judge_ended_pod(pod).reason, "DeadlineExceeded");
  EXPECT_EQ(judge_ended_pod(pod).message, pod.message);
}

TEST(Verdict, BudgetsAreThoseOfTheDesign) {
  EXPECT_EQ(budget_of(Outcome::kFailed), Budget::kFailures);
  EXPECT_EQ(budget_of(Outcome::kHung), Budget::kFailures);
  EXPECT_EQ(budget_of(Outcome::kDeadlineExceeded), Budget::kFailures);
  EXPECT_EQ(budget_of(Outcome::kLost), Budget::kDisruptions);
  EXPECT_EQ(budget_of(Outcome::kStartTimeout), Budget::kDisruptions);
  EXPECT_EQ(budget_of(Outcome::kSucceeded), Budget::kNone);
  EXPECT_EQ(budget_of(Outcome::kSuspended), Budget::kNone);
  EXPECT_EQ(budget_of(Outcome::kCancelled), Budget::kNone);
}

TEST(Verdict, PhasesAndOutcomesReadBackAsTheyWereWritten) {
  for (int i = 0; i <= static_cast<int>(Phase::kCancelled); ++i) {
    EXPECT_EQ(parse_phase(to_string(static_cast<Phase>(i))), static_cast<Phase>(i));
  }
  for (int i = 0; i <= static_cast<int>(Outcome::kCancelled); ++i) {
    EXPECT_EQ(parse_outcome(to_string(static_cast<Outcome>(i))), static_cast<Outcome>(i));
  }
  EXPECT_FALSE(parse_phase("Locked"));
  EXPECT_FALSE(parse_outcome("Won"));
}

}  // namespace
}  // namespace holdfast::reconciler::testing
