// Budgets, history, conditions and the events of an attempt's end.
#include <gtest/gtest.h>

#include "reconciler/backoff.h"
#include "tests/unit/reconciler/scenario.h"

namespace holdfast::reconciler::testing {
namespace {

JobView failed_job(int exit_code = 1) {
  JobView view = running_job();
  view.job.spec.retry_backoff.jitter_percent = 0;
  add_ended_pod(view, 1, exit_code);
  return view;
}

JobView lost_job() {
  JobView view = running_job();
  view.job.spec.retry_backoff.jitter_percent = 0;
  view.job.status.begun().node_name = kNode;
  return view;
}

TEST(Budget, AFailureCostsOneFailureAndALossOneDisruption) {
  EXPECT_EQ(after(failed_job()).failures, 1);
  EXPECT_EQ(after(failed_job()).disruptions, 0);
  EXPECT_EQ(after(lost_job()).failures, 0);
  EXPECT_EQ(after(lost_job()).disruptions, 1);
}

TEST(Budget, ASuccessASuspensionAndACancellationCostNothing) {
  EXPECT_EQ(after(failed_job(0)).failures, 0);
  for (const bool cancel : {false, true}) {
    JobView view = job_with_pod();
    (cancel ? view.job.spec.cancel : view.job.spec.suspend) = true;
    EXPECT_EQ(after(view).failures + after(view).disruptions, 0);
    EXPECT_EQ(after(view).history.back().outcome,
              cancel ? Outcome::kCancelled : Outcome::kSuspended);
  }
}

TEST(Budget, OneFailureMoreThanTheLimitForgivesEndsTheJob) {
  JobView view = failed_job();
  view.job.spec.backoff_limit = 3;
  view.job.status.failures = 2;
  EXPECT_EQ(after(view).phase, Phase::kBackoff);
  view.job.status.failures = 3;
  const Status status = after(view);
  EXPECT_EQ(status.phase, Phase::kFailed);
  EXPECT_EQ(status.failures, 4);
  EXPECT_TRUE(has_condition(status, "Failed", "BackoffLimitExceeded"));
  EXPECT_TRUE(all<CreatePod>(settle(view)).empty());
}

TEST(Budget, OneLossMoreThanTheLimitForgivesEndsTheJob) {
  JobView view = lost_job();
  view.job.spec.disruption_limit = 2;
  view.job.status.disruptions = view.job.status.begun().disruptions = 1;
  EXPECT_NE(after(view).phase, Phase::kFailed);
  view.job.status.disruptions = view.job.status.begun().disruptions = 2;
  EXPECT_EQ(after(view).phase, Phase::kFailed);
  EXPECT_TRUE(has_condition(after(view), "Failed", "DisruptionLimitExceeded"));
}

TEST(Budget, ALimitThatAUserLowersInBackoffEndsTheJobAtOnce) {
  JobView view = job_in(Phase::kBackoff);
  view.job.status.failures = 3;
  view.job.spec.backoff_limit = 3;
  EXPECT_EQ(after(view).phase, Phase::kBackoff);
  view.job.spec.backoff_limit = 2;
  EXPECT_EQ(after(view).phase, Phase::kFailed);
  EXPECT_TRUE(has_condition(after(view), "Failed", "BackoffLimitExceeded"));
}

TEST(Budget, ALimitThatAUserLowersWhileAnAttemptRunsCountsWhenItEnds) {
  JobView view = job_with_pod();
  view.job.status.failures = 3;
  view.job.spec.backoff_limit = 1;
  EXPECT_EQ(after(view).phase, Phase::kRunning);
  view.pods.clear();
  add_ended_pod(view, 1, 0);
  EXPECT_EQ(after(view).phase, Phase::kSucceeded);
}

TEST(Budget, ACancelledAttemptLeadsToCancelledAlsoOnALoweredBudget) {
  JobView view = job_with_pod();
  view.job.status.failures = 3;
  view.job.spec.backoff_limit = 1;
  view.job.spec.cancel = true;
  EXPECT_EQ(after(view).phase, Phase::kCancelling);
}

TEST(Backoff, TheFirstFailureWaitsTheInitialDelayAndLaterOnesMore) {
  JobView view = failed_job();
  EXPECT_EQ(after(view).run().next_attempt_time, now() + seconds(10));
  add_history(view, Outcome::kFailed, 2);
  view.job.status.failures = 2;
  EXPECT_EQ(after(view).run().next_attempt_time, now() + seconds(40));
}

TEST(Backoff, TheFirstLossInARowGoesOnAtOnceAndTheSecondWaits) {
  JobView view = lost_job();
  EXPECT_EQ(after(view).phase, Phase::kRunning);
  add_history(view, Outcome::kFailed, 1);
  EXPECT_EQ(after(view).phase, Phase::kRunning);
  add_history(view, Outcome::kLost, 1);
  EXPECT_EQ(after(view).phase, Phase::kBackoff);
  EXPECT_EQ(after(view).run().next_attempt_time, now() + seconds(10));
  add_history(view, Outcome::kStartTimeout, 1);
  EXPECT_EQ(after(view).run().next_attempt_time, now() + seconds(20));
}

TEST(Backoff, GrowsOnBeyondWhatHistoryShows) {
  JobView view = failed_job();
  view.job.spec.backoff_limit = 100;
  view.job.spec.retry_backoff.initial = seconds(1);
  view.job.spec.retry_backoff.max = seconds(86400);
  add_history(view, Outcome::kFailed, 10);
  view.job.status.runs.front().failures = 12;
  EXPECT_EQ(after(view).run().next_attempt_time, now() + seconds(1 << 12));
  view.job.status.runs.front().failures = 60;
  EXPECT_EQ(after(view).run().next_attempt_time, now() + seconds(86400));
}

TEST(History, KeepsTheLastTenEndedAttemptsOldestFirst) {
  JobView view = running_job(14);
  add_ended_pod(view, 14, 1);
  view.job.spec.backoff_limit = 100;
  add_history(view, Outcome::kFailed, 10);
  const Status status = after(view);
  ASSERT_EQ(status.history.size(), 10u);
  EXPECT_EQ(status.history.front().attempt, 2);
  EXPECT_EQ(status.history.back().attempt, 14);
}

TEST(History, AnEntryRecordsPodNodeReasonExitCodeAndTimes) {
  const Status status = after(failed_job(3));
  const HistoryEntry& entry = only(status.history);
  EXPECT_EQ(entry.attempt, 1);
  EXPECT_EQ(entry.pod_name, pod_of(1));
  EXPECT_EQ(entry.node_name, kNode);
  EXPECT_EQ(entry.outcome, Outcome::kFailed);
  EXPECT_EQ(entry.reason, "Error");
  EXPECT_EQ(entry.exit_code, 3);
  EXPECT_EQ(entry.start_time, now() - seconds(90));
  EXPECT_EQ(entry.end_time, now() - seconds(5));
}

TEST(History, AnEndInTheFutureOfTheApiServerIsNow) {
  JobView view = failed_job();
  view.pods[0].containers[0].terminated->finished = now() + seconds(60);
  EXPECT_EQ(after(view).history[0].end_time, now());
}

TEST(Events, ASuccessMakesOneAsInBatchV1) {
  const auto events = written(failed_job(0)).events;
  EXPECT_EQ(only(events).reason, "Completed");
  EXPECT_EQ(events[0].action, "Finish");
  EXPECT_FALSE(events[0].warning);
}

TEST(Events, TheyHaveTheEndOfTheOutputInOneLine) {
  JobView view = failed_job();
  view.pods[0].containers[0].terminated->message = std::string(2000, 'x') + "\nno input\ngave up";
  const std::string note = written(view).events.at(0).note;
  EXPECT_THAT(note, HasSubstr("container main ended with exit code 1: no input gave up"));
}

TEST(History, ItKeepsTheLastLinesOfTheContainerThatFailed) {
  JobView view = failed_job();
  view.pods[0].containers[0].terminated->message = "Traceback\n  line 7\nno input";
  EXPECT_EQ(after(view).history[0].message,
            "container main ended with exit code 1\nTraceback\n  line 7\nno input");
  EXPECT_EQ(after(failed_job(0)).history[0].message, "") << "a success needs none";
  EXPECT_EQ(after(lost_job()).history[0].message,
            written(lost_job())
                .events[0]
                .note.substr(written(lost_job()).events[0].note.find("): ") + 3));
}

// At 1,000 runs too a status must fit into etcd.
TEST(History, ItsMessagesTakeThirtyKilobytesAtMost) {
  for (const char* const piece : {"x", "<", "\"", "\\", "line\n", "\xE2\x82\xAC"}) {
    JobView view = failed_job();
    std::string& said = view.pods[0].containers[0].terminated->message;
    while (said.size() + 8 < kOutputLimit) said += piece;
    view.pods[0].message = std::string(50'000, '<');
    const std::string message = after(view).history[0].message;
    EXPECT_LE(message.size(), 2304u) << piece;
    EXPECT_GT(message.size(), 400u) << piece;
    std::size_t encoded = 0;
    for (const char c : message) {
      encoded += c == '<' ? 6 : c == '"' || c == '\\' || c == '\n' ? 2 : 1;
    }
    EXPECT_LE(encoded, 3u * 1024) << piece;
  }
}

TEST(Events, AFailureALossAndTheJobsEndEachMakeOne) {
  EXPECT_EQ(written(failed_job()).events.at(0).reason, "AttemptFailed");
  EXPECT_EQ(written(lost_job()).events.at(0).reason, "AttemptLost");
  JobView view = failed_job();
  view.job.spec.backoff_limit = 0;
  const auto events = written(view).events;
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(events[0].action, "Finish");
  EXPECT_EQ(events[1].reason, "BackoffLimitExceeded");
}

TEST(Events, TheJobsDeadlineIsReportedOnceThoughItEndsAnAttempt) {
  JobView view = job_with_pod();
  view.job.spec.active_deadline = seconds(100);
  EXPECT_EQ(only(written(view).events).reason, "DeadlineExceeded");
}

TEST(Events, ATemplatesOwnDeadlineIsAnAttemptThatFailed) {
  JobView view = failed_job();
  view.pods[0].reason = "DeadlineExceeded";
  EXPECT_EQ(written(view).events.at(0).reason, "AttemptFailed");
}

TEST(Events, AnAttemptsEndReportsItsOutcomeAndOrphanClassToMetrics) {
  EXPECT_EQ(written(failed_job()).ended.at(0).outcome, Outcome::kFailed);
  EXPECT_EQ(written(failed_job()).ended.at(0).orphan_class, "");
  EXPECT_EQ(written(lost_job()).ended.at(0).outcome, Outcome::kLost);
  EXPECT_EQ(written(lost_job()).ended.at(0).orphan_class, "pod_vanished");
}

}  // namespace
}  // namespace holdfast::reconciler::testing
