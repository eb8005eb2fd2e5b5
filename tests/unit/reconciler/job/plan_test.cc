// A status that only a bug can plan never becomes a write.
#include <gtest/gtest.h>

#include <functional>

#include "core/invariant.h"
#include "reconciler/job/phases.h"
#include "reconciler/run/authorship.h"
#include "tests/unit/reconciler/scenario.h"

namespace holdfast::reconciler::testing {
namespace {

// The invariant that the plan of this status breaks; empty: none.
std::string broken_by(const JobView& view, const std::function<void(Status&)>& bug) {
  const std::vector<const PodView*> pods = current_pods(view);
  const Context context{view, view.job, view.job.spec, now(), pods};
  Plan plan(context);
  WriteStatus write{view.job.status};
  bug(write.status);
  try {
    plan.write(write);
  } catch (const BrokenInvariant& broken) {
    EXPECT_TRUE(plan.decision().writes.empty());
    return broken.what();
  }
  EXPECT_EQ(plan.decision().writes.size(), 1u);
  return "";
}

void expect_broken(const char* rule, const JobView& view, const std::function<void(Status&)>& bug) {
  EXPECT_THAT(broken_by(view, bug), HasSubstr(rule));
}

// Running its third attempt, with spent budgets.
JobView third_attempt() {
  JobView view = running_job(3);
  view.job.status.failures = view.job.status.disruptions = 1;
  return view;
}

TEST(Planned, AStatusThatStaysAsItIsBreaksNothing) {
  EXPECT_EQ(broken_by(third_attempt(), [](Status&) {}), "");
  EXPECT_EQ(broken_by(job_in(Phase::kBackoff), [](Status&) {}), "");
  EXPECT_EQ(broken_by(job_in(Phase::kSucceeded), [](Status&) {}), "");
}

TEST(Planned, NoPhaseFollowsThatTheStateMachineDoesNotHave) {
  expect_broken("an edge of the state machine", job_in(Phase::kSucceeded),
                [](Status& status) { status.phase = Phase::kFailed; });
  expect_broken("an edge of the state machine", job_in(Phase::kCancelling),
                [](Status& status) { status.phase = Phase::kPending; });
}

TEST(Planned, WhatNeverFallsDoesNotFall) {
  expect_broken("the attempt", third_attempt(), [](Status& status) { --status.attempt; });
  expect_broken("a budget", third_attempt(), [](Status& status) { --status.failures; });
  expect_broken("a budget", third_attempt(), [](Status& status) { --status.disruptions; });
}

TEST(Planned, AJobHasACompletionTimeOrSomethingThatItWaitsFor) {
  expect_broken("completionTime", job_in(Phase::kSucceeded),
                [](Status& status) { status.completion_time.reset(); });
  expect_broken("completionTime", third_attempt(),
                [](Status& status) { status.completion_time = now(); });
  expect_broken("waits for", third_attempt(), [](Status& status) { status.waiting.reset(); });
  expect_broken("waits for", job_in(Phase::kSucceeded),
                [](Status& status) { status.waiting = third_attempt().job.status.waiting; });
}

TEST(Planned, ARunIsOpenWhileTheJobIsRunningAndNoneIsLeftAtItsEnd) {
  expect_broken("a job is Running", third_attempt(), [](Status& status) { status.runs.clear(); });
  expect_broken("a job is Running", job_in(Phase::kBackoff),
                [](Status& status) { status.runs = third_attempt().job.status.runs; });
  expect_broken("a job that has ended has no runs", job_in(Phase::kSucceeded), [](Status& status) {
    status.runs = third_attempt().job.status.runs;
    status.runs[0].next_attempt_time = now();
  });
}

}  // namespace
}  // namespace holdfast::reconciler::testing
