// What kstatus, and so Helm, Argo CD and Flux, read from the conditions: in progress, done, failed.
#include <gtest/gtest.h>

#include "tests/unit/reconciler/scenario.h"

namespace holdfast::reconciler::testing {
namespace {

// The rules of sigs.k8s.io/cli-utils/pkg/kstatus (0.37.2, generic.go) for kinds that it does not
// know: the first of Reconciling and Stalled that is true decides.
std::string kstatus(const Status& status, std::int64_t generation = 1) {
  if (status.observed_generation != generation) return "InProgress";
  for (const Condition& condition : status.conditions) {
    if (condition.type == "Reconciling" && condition.status) return "InProgress";
    if (condition.type == "Stalled" && condition.status) return "Failed";
  }
  return "Current";
}

JobView refused_job() {
  JobView view = job_before_its_pod();
  view.begun().observed.refusal =
      CreationRefusal{CreationRefusal::Kind::kRefused, "no quota", seconds(5)};
  return view;
}

TEST(Kstatus, AJobIsInProgressFromItsFirstStatusOn) {
  const Status status = after(new_job());
  EXPECT_EQ(kstatus(status), "InProgress");
  EXPECT_TRUE(has_condition(status, "Reconciling", "PodStarting"));
}

TEST(Kstatus, ReconcilingSaysWhatTheJobWaitsFor) {
  JobView view = job_with_pod();
  const Status status = after(view);
  EXPECT_TRUE(has_condition(status, "Reconciling", status.waiting->reason.text()));
  EXPECT_EQ(status.condition("Reconciling")->message, status.waiting->message);
  EXPECT_EQ(kstatus(status), "InProgress");
}

TEST(Kstatus, ReconcilingIsNoReasonForAWrite) {
  JobView view = job_with_pod();
  view.job.status = after(view);
  view.job.status.conditions.clear();  // as an earlier operator left it
  EXPECT_TRUE(decide(view, now() + seconds(30)).writes.empty());
}

TEST(Kstatus, ASucceededJobIsDone) {
  JobView view = job_with_ended_pod(0);
  const Status status = after(view);
  EXPECT_EQ(kstatus(status), "Current");
  EXPECT_FALSE(status.condition("Reconciling")->status);
  EXPECT_EQ(status.condition("Reconciling")->reason, "Succeeded");
}

TEST(Kstatus, AFailedJobHasFailed) {
  JobView view = running_job();
  view.job.spec.backoff_limit = 0;
  add_ended_pod(view, 1, 1);
  const Status status = after(view);
  EXPECT_EQ(kstatus(status), "Failed");
  EXPECT_TRUE(has_condition(status, "Stalled", "BackoffLimitExceeded"));
  EXPECT_EQ(status.condition("Stalled")->message, status.condition("Failed")->message);
}

TEST(Kstatus, ASuspendedJobAndACancelledOneAreDone) {
  JobView suspended = new_job();
  suspended.job.spec.suspend = true;
  EXPECT_EQ(kstatus(after(suspended)), "Current");
  EXPECT_EQ(after(suspended).condition("Reconciling")->reason, "Suspended");
  JobView cancelled = new_job();
  cancelled.job.spec.cancel = true;
  EXPECT_EQ(kstatus(after(cancelled)), "Current");
  EXPECT_FALSE(after(cancelled).condition("Stalled"));
}

TEST(Kstatus, AJobThatIsCancellingIsInProgress) {
  JobView view = job_with_pod();
  view.job.spec.cancel = true;
  EXPECT_EQ(kstatus(after(view)), "InProgress");
}

TEST(Kstatus, AJobThatNeedsAPersonHasFailedUntilThatHasPassed) {
  JobView view = refused_job();
  view.job.status = after(view);
  EXPECT_EQ(kstatus(view.job.status), "InProgress");
  view.job.status = after(view, now() + seconds(600));
  EXPECT_TRUE(has_condition(view.job.status, "Stalled", "PodCreationRefused"));
  EXPECT_TRUE(has_condition(view.job.status, "Reconciling", "PodCreationRefused"));
  EXPECT_EQ(kstatus(view.job.status), "Failed") << "kstatus takes the first that is true";
  view.begun().observed.refusal.reset();
  add_pod(view, 1, PodPhase::kRunning).created = now() + seconds(600);
  view.job.status = after(view, now() + seconds(610));
  EXPECT_FALSE(view.job.status.condition("Stalled")->status);
  EXPECT_EQ(kstatus(view.job.status), "InProgress");
}

TEST(Kstatus, AResumedJobIsInProgressAgain) {
  JobView view = job_in(Phase::kSuspended);
  EXPECT_EQ(kstatus(after(view)), "InProgress");
}

}  // namespace
}  // namespace holdfast::reconciler::testing
