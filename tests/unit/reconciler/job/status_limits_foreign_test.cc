// Statuses that the API server accepts but no replica of ours writes: the job goes on, and no later
// write is refused.
#include <gtest/gtest.h>

#include "tests/unit/reconciler/rules.h"
#include "tests/unit/reconciler/scenario.h"

namespace holdfast::reconciler::testing {
namespace {

constexpr std::int64_t kMostCounted = 2'147'483'648;  // the schema's maximum
constexpr seconds kMostSeconds{2'147'483'647};

Status accepted(const JobView& view) {
  const Status next = after(view);
  EXPECT_EQ(refused_by_api(view.job.status, next), "");
  return next;
}

JobView failing_job() {
  JobView view = job_with_ended_pod(1);
  return view;
}

void add_foreign_conditions(JobView& view, int count) {
  for (int i = 0; i < count; ++i) {
    view.job.status.conditions.push_back(
        Condition{"example.com/" + std::to_string(i), true, "Theirs", "m", now()});
  }
}

TEST(ForeignStatus, AnOldEntryOfHistoryStaysAsItIs) {
  JobView view = failing_job();
  HistoryEntry entry;
  entry.reason = AnyReason(std::string(1024, 'r'));
  view.job.status.history.push_back(entry);
  const Status next = accepted(view);
  ASSERT_EQ(next.history.size(), 2u);
  EXPECT_EQ(next.history[0], entry);
}

TEST(ForeignStatus, OurConditionsFindRoomBesideAsManyAsThereMayBe) {
  for (const Phase phase : {Phase::kPending, Phase::kSuspended, Phase::kBackoff}) {
    JobView view = job_in(phase);
    view.job.spec.cancel = true;
    view.job.status.conditions.clear();
    add_foreign_conditions(view, 16);
    const Status next = accepted(view);
    EXPECT_EQ(next.conditions.size(), 16u) << "no more of theirs goes than must";
    EXPECT_TRUE(has_condition(next, "Cancelled", "Cancelled"));
    EXPECT_TRUE(next.condition("Reconciling"));
    EXPECT_TRUE(next.condition("example.com/0")) << "the last ones go";
  }
}

TEST(ForeignStatus, AnotherWriteKeepsTheirsThatFit) {
  JobView view = failing_job();
  view.job.status.conditions.clear();
  add_foreign_conditions(view, 15);
  EXPECT_TRUE(accepted(view).condition("example.com/14"));
}

TEST(ForeignStatus, ABudgetThatIsSpentToTheSchemasLimitEndsTheJob) {
  JobView failing = failing_job();
  failing.job.status.failures = kMostCounted;
  EXPECT_EQ(accepted(failing).phase, Phase::kFailed);
  JobView losing = running_job();
  add_ended_pod(losing, 1, 1).disruption_target = true;
  losing.job.status.disruptions = losing.job.status.begun().disruptions = kMostCounted;
  EXPECT_EQ(accepted(losing).phase, Phase::kFailed);
}

TEST(ForeignStatus, SuspendedSecondsStayWithinTheSchema) {
  JobView view = job_in(Phase::kSuspended);
  view.job.spec.suspend = false;
  view.job.created = now() - std::chrono::hours(1);
  view.job.status.start_time = view.job.created;
  view.job.status.suspended = kMostSeconds - seconds(1);
  view.job.status.conditions = {
      Condition{"Suspended", true, "JobSuspended", "", now() - std::chrono::minutes(5)}};
  EXPECT_EQ(accepted(view).suspended, kMostSeconds);
}

// The API server would refuse it, and the job could never end.
TEST(ForeignStatus, TheWriteThatEndsAJobHasNoRuns) {
  JobView ending = failing_job();
  ending.job.spec.backoff_limit = 0;
  JobView cancelled = job_in(Phase::kBackoff);
  cancelled.job.status.begun().next_attempt_time = now();
  cancelled.job.spec.cancel = true;
  for (const JobView& view : {ending, cancelled}) {
    ASSERT_FALSE(view.job.status.runs.empty());
    const Status next = accepted(view);
    EXPECT_TRUE(is_terminal(next.phase));
    EXPECT_TRUE(next.runs.empty());
  }
}

// The codec would read another one, and each look would write it again.
TEST(ForeignStatus, ADeadlineBeyondTheLatestTimeIsTheLatestTime) {
  JobView view = job_with_pod();
  view.job.spec.active_deadline = kMostSeconds;
  view.job.status.suspended = kMostSeconds;
  view.job.status = accepted(view);
  ASSERT_TRUE(view.job.status.waiting && view.job.status.waiting->deadline);
  EXPECT_LE(view.job.status.waiting->deadline, kLatestTime);
}

}  // namespace
}  // namespace holdfast::reconciler::testing
