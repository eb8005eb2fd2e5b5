// S23 Told: what a job reports to its targets goes into the outbox by the write that makes it true,
// and leaves it only for a reason.
#include <gtest/gtest.h>

#include "tests/unit/reconciler/rules_outbox.h"
#include "tests/unit/reconciler/scenario.h"

namespace holdfast::reconciler::testing {
namespace {

using std::chrono::hours;
using std::chrono::minutes;

const std::vector<NotifyEvent> kAll = {NotifyEvent::kSucceeded, NotifyEvent::kFailed,
                                       NotifyEvent::kCancelled, NotifyEvent::kStageEnded,
                                       NotifyEvent::kStalled};

void reports(JobView& view, const std::string& name, std::vector<NotifyEvent> events = kAll) {
  view.job.notify.push_back(name);
  view.observed.notify.targets[name] = {TargetView::State::kKnown, std::move(events)};
}

JobView succeeding() {
  JobView view = job_with_ended_pod(0);
  reports(view, "chat");
  return view;
}

OutboxEntry entry(std::int64_t number, NotifyEvent event, Duration age,
                  std::vector<std::string> targets) {
  OutboxEntry entry;
  entry.number = number;
  entry.event = event;
  entry.time = std::chrono::floor<seconds>(now() - age);
  entry.targets = std::move(targets);
  return entry;
}

// An ended job with these events in its outbox.
JobView ended(std::vector<OutboxEntry> outbox) {
  JobView view = job_in(Phase::kSucceeded);
  reports(view, "chat");
  view.job.status.notifications = outbox.empty() ? 0 : outbox.back().number;
  view.job.status.outbox = std::move(outbox);
  return view;
}

void result(JobView& view, DeliveryView::Result result, const std::string& target = "chat",
            std::int64_t number = 1) {
  view.observed.notify.deliveries.push_back({number, target, result, "it answered 500"});
}

bool has_lost(const Status& status) {
  return has_condition(status, "NotificationFailed", "NotDelivered");
}

TEST(Notifications, TheWriteThatEndsTheJobPutsTheEventIntoTheOutbox) {
  const Status status = after(succeeding());
  ASSERT_EQ(status.phase, Phase::kSucceeded);
  EXPECT_EQ(only(status.outbox).number, 1);
  EXPECT_EQ(status.notifications, 1);
  EXPECT_EQ(status.outbox[0].event, NotifyEvent::kSucceeded);
  EXPECT_EQ(status.outbox[0].targets, std::vector<std::string>{"chat"});
}

TEST(Notifications, AFailureSaysWhy) {
  JobView view = job_with_ended_pod(1);
  view.job.spec.backoff_limit = 0;
  reports(view, "chat");
  const Status status = after(view);
  ASSERT_EQ(status.phase, Phase::kFailed);
  ASSERT_EQ(status.outbox.size(), 1U) << "Stalled of a failed job is no event of its own";
  EXPECT_EQ(status.outbox[0].event, NotifyEvent::kFailed);
  EXPECT_EQ(status.outbox[0].reason, "BackoffLimitExceeded");
  EXPECT_FALSE(status.outbox[0].message.empty());
}

TEST(Notifications, ACancelIsReported) {
  JobView view = job_in(Phase::kSuspended);
  view.job.spec.cancel = view.job.cancel = true;
  reports(view, "chat");
  const Status status = after(view);
  ASSERT_EQ(status.phase, Phase::kCancelled);
  EXPECT_EQ(only(status.outbox).event, NotifyEvent::kCancelled);
}

TEST(Notifications, AJobWithoutTargetsHasNoOutbox) {
  JobView view = job_with_ended_pod(0);
  const Status status = after(view);
  EXPECT_TRUE(status.outbox.empty());
  EXPECT_EQ(status.notifications, 0);
  EXPECT_EQ(status.condition("NotificationFailed"), nullptr);
}

TEST(Notifications, ATargetGetsOnlyTheEventsThatItWants) {
  JobView view = job_with_ended_pod(0);
  reports(view, "failures", {NotifyEvent::kFailed});
  EXPECT_TRUE(after(view).outbox.empty());
  reports(view, "chat");
  const Status status = after(view);
  EXPECT_EQ(only(status.outbox).targets, std::vector<std::string>{"chat"});
}

TEST(Notifications, AQueueThatIsMissingIsReportedOnce) {
  JobView view = new_job();
  view.job.queue = QueueRef{"nowhere", 0, ""};
  view.observed.permit = {.admitted = false, .no_queue = true, .waited = seconds(5)};
  reports(view, "chat");
  const Status status = after(view);
  EXPECT_EQ(only(status.outbox).event, NotifyEvent::kStalled);
  EXPECT_EQ(status.outbox[0].reason, "QueueMissing");
  view.job.status = status;
  EXPECT_TRUE(all<WriteStatus>(settle(view)).empty());
}

TEST(Notifications, AStageThatEndsIsReported) {
  JobView view = job_with_ended_pod(0);
  Stage main{kFirstStage, false, false, view.job.spec};
  Stage last{"verify", false, false, view.job.spec};
  view.job.stages = {main, last};
  view.job.status.stages.resize(2);
  view.job.status.stages[0].name = "main";
  view.job.status.stages[0].phase = StagePhase::kRunning;
  view.job.status.stages[0].start_time = now();
  view.job.status.stages[1].name = "verify";
  reports(view, "chat");
  const Status status = after(view);
  EXPECT_EQ(status.stage, 1U);
  EXPECT_EQ(only(status.outbox).event, NotifyEvent::kStageEnded);
  EXPECT_EQ(status.outbox[0].stage, "main");
  EXPECT_EQ(status.outbox[0].reason, "Succeeded");
}

TEST(Notifications, WhatATargetHasTakenLeavesTheOutbox) {
  JobView view = ended({entry(1, NotifyEvent::kSucceeded, seconds(9), {"chat", "second"})});
  view.observed.notify.targets["second"] = {TargetView::State::kKnown, kAll};
  EXPECT_TRUE(all<WriteStatus>(settle(view)).empty());
  result(view, DeliveryView::Result::kTaken);
  const Status status = after(view);
  EXPECT_EQ(only(status.outbox).targets, std::vector<std::string>{"second"});
  view.job.status = status;
  result(view, DeliveryView::Result::kTaken, "second");
  EXPECT_TRUE(after(view).outbox.empty());
  EXPECT_FALSE(has_lost(after(view)));
}

TEST(Notifications, ATargetThatFailsIsGivenUpAfterThreeDays) {
  JobView view = ended({entry(1, NotifyEvent::kSucceeded, hours(71), {"chat"})});
  result(view, DeliveryView::Result::kFailing);
  const Decision waits = settle(view);
  EXPECT_TRUE(all<WriteStatus>(waits).empty());
  view.job.status.outbox[0].time -= hours(1);
  const WriteStatus write = written(view);
  EXPECT_TRUE(write.status.outbox.empty());
  EXPECT_TRUE(has_lost(write.status));
  EXPECT_EQ(only(write.events).reason, "NotificationFailed");
  EXPECT_THAT(write.events[0].note, HasSubstr("it answered 500"));
}

TEST(Notifications, AnEventWhoseTurnNeverComesIsGivenUpAfterThreeDaysAndSixHours) {
  JobView view = ended({entry(1, NotifyEvent::kSucceeded, hours(77), {"chat"})});
  view.observed.live_for = minutes(10);
  view.job.spec.ttl_after_finished = seconds(0);
  const Decision waits = settle(view);
  EXPECT_TRUE(waits.writes.empty());
  EXPECT_EQ(waits.wake_after, Duration(hours(1)));
  view.job.status.outbox[0].time -= hours(1);
  EXPECT_TRUE(after(view).outbox.empty());
  EXPECT_TRUE(has_lost(after(view)));
  EXPECT_EQ(outbox_trouble(view, after(view), now()), "");
}

TEST(Notifications, AnEventOfANewerVersionStaysUntilItsTimeIsOver) {
  JobView view = ended({entry(1, NotifyEvent::kSucceeded, hours(77), {"chat"}),
                        entry(2, NotifyEvent::kSucceeded, seconds(9), {"chat"})});
  view.observed.live_for = minutes(10);
  view.job.status.outbox[0].unknown = "{}";
  result(view, DeliveryView::Result::kTaken, "chat", 2);
  const Status status = after(view);
  EXPECT_EQ(only(status.outbox), view.job.status.outbox[0]);
  view.job.status.outbox[0].time -= hours(1);
  const WriteStatus write = written(view);
  EXPECT_TRUE(write.status.outbox.empty());
  EXPECT_EQ(write.dropped_for, std::vector<std::string>{"chat"});
  EXPECT_THAT(only(write.events).note, Not(HasSubstr("Succeeded")));
}

TEST(Notifications, AReplicaThatIsNewGivesUpNothingWithoutATry) {
  JobView view = ended({entry(1, NotifyEvent::kSucceeded, hours(100), {"chat"})});
  view.observed.live_for = minutes(4);
  EXPECT_EQ(rests_for(settle(view)), Duration(minutes(6)));
}

TEST(Notifications, ATargetThatRefusesIsGivenUpAtOnce) {
  JobView view = ended({entry(1, NotifyEvent::kSucceeded, seconds(9), {"chat"})});
  result(view, DeliveryView::Result::kRefused);
  EXPECT_TRUE(after(view).outbox.empty());
  EXPECT_TRUE(has_lost(after(view)));
}

TEST(Notifications, AnUnknownTargetIsShownAtOnceAndGivenUpAfterTenMinutes) {
  JobView view = job_with_ended_pod(0);
  view.job.notify = {"nobody"};
  const Status status = after(view);
  ASSERT_EQ(status.outbox.size(), 1U) << "it may be a target of a newer configuration";
  EXPECT_TRUE(has_condition(status, "NotificationFailed", "TargetUnknown"));
  view.job.status = status;
  view.pods.clear();
  const Decision waits = settle(view);
  EXPECT_TRUE(all<WriteStatus>(waits).empty());
  ASSERT_TRUE(waits.wake_after);
  EXPECT_LE(*waits.wake_after, minutes(10));
  EXPECT_TRUE(after(view, now() + minutes(10)).outbox.empty());
  EXPECT_TRUE(has_lost(after(view, now() + minutes(10))));
}

// The event may be old: somebody has removed its target by mistake, and may mend that.
TEST(Notifications, ATargetThatIsTakenOutIsNoTroubleAnyMore) {
  JobView view = succeeding();
  view.job.notify = {};
  view.job.status.conditions.push_back(
      {"NotificationFailed", true, "TargetUnknown", "chta", now()});
  const Status status = after(view);
  EXPECT_TRUE(status.outbox.empty());
  EXPECT_FALSE(status.holds("NotificationFailed"));
}

TEST(Notifications, AMissingTargetIsReportedFirstAndGivenUpTenMinutesLater) {
  JobView view = ended({entry(1, NotifyEvent::kSucceeded, hours(2), {"chat"})});
  view.observed.notify.targets.clear();
  view.observed.live_for = hours(1);
  view.job.status = after(view);
  ASSERT_EQ(view.job.status.outbox.size(), 1U);
  EXPECT_TRUE(has_condition(view.job.status, "NotificationFailed", "TargetUnknown"));
  EXPECT_EQ(rests_for(settle(view)), Duration(minutes(10)));
  EXPECT_TRUE(has_lost(after(view, now() + minutes(10))));
}

// The operator may be killed again and again: what counts is on record.
TEST(Notifications, AMissingTargetIsGivenUpByAReplicaHoweverNewItIs) {
  JobView view = ended({entry(1, NotifyEvent::kSucceeded, minutes(3), {"chat"})});
  view.observed.notify.targets.clear();
  view.observed.live_for = seconds(0);
  view.job.status = after(view);
  EXPECT_TRUE(has_lost(after(view, now() + minutes(10))));
  EXPECT_TRUE(after(view, now() + minutes(10)).outbox.empty());
}

// The condition of a loss stays, so it does not say since when a target is not known.
TEST(Notifications, AnUnknownTargetHasItsTenMinutesAlsoAfterALoss) {
  JobView view = ended({entry(1, NotifyEvent::kSucceeded, hours(2), {"chat"})});
  view.job.status.conditions.push_back(
      Condition{"NotificationFailed", true, "NotDelivered", "m", now() - hours(24)});
  view.observed.notify.targets.clear();
  view.observed.live_for = minutes(1);
  EXPECT_EQ(rests_for(settle(view)), Duration(minutes(9)));
  view.observed.live_for = minutes(10);
  EXPECT_TRUE(after(view).outbox.empty());
  view.observed.live_for = seconds(0);
  view.job.status.outbox[0].time = now() - hours(79);
  EXPECT_TRUE(after(view).outbox.empty()) << "replicas that are killed again and again";
}

TEST(Notifications, AnEventWaitsForItsFirstTryForAWeekAtMostHoweverNewTheReplicas) {
  JobView view = ended({entry(1, NotifyEvent::kSucceeded, hours(155), {"chat"})});
  view.observed.live_for = seconds(0);
  EXPECT_TRUE(all<WriteStatus>(settle(view)).empty());
  view.job.status.outbox[0].time -= hours(1);
  EXPECT_TRUE(has_lost(after(view)));
}

TEST(Notifications, WhatAContainerWroteIsNotReported) {
  JobView view = running_job();
  reports(view, "chat");
  view.job.spec.backoff_limit = 0;
  add_ended_pod(view, 1, 1).containers[0].terminated->message = "password=hunter2";
  const Status status = after(view);
  ASSERT_EQ(status.phase, Phase::kFailed);
  EXPECT_THAT(only(status.outbox).message, Not(HasSubstr("hunter2")));
  EXPECT_THAT(status.history[0].message, HasSubstr("hunter2")) << "here it belongs";
}

TEST(Notifications, ATargetThatTheNamespaceMayNotUseIsShown) {
  JobView view = succeeding();
  view.observed.notify.targets["chat"].state = TargetView::State::kForbidden;
  EXPECT_TRUE(has_condition(after(view), "NotificationFailed", "TargetForbidden"));
}

TEST(Notifications, ATargetThatBecomesKnownClearsTheCondition) {
  JobView view = succeeding();
  view.job.status.conditions.push_back(
      {"NotificationFailed", true, "TargetUnknown", "x", now(), false, std::nullopt});
  EXPECT_FALSE(after(view).holds("NotificationFailed"));
  view.job.status.conditions.back().reason = "NotDelivered";
  EXPECT_TRUE(after(view).holds("NotificationFailed")) << "a loss stays on record";
}

TEST(Notifications, TheOutboxDropsTheOldestStageEndedFirstAndReportsIt) {
  JobView view = succeeding();
  std::vector<OutboxEntry> outbox;
  for (std::int64_t number = 1; number <= 32; ++number) {
    const bool is_stage = number == 3 || number == 4;
    outbox.push_back(entry(number, is_stage ? NotifyEvent::kStageEnded : NotifyEvent::kStalled,
                           seconds(100), {"chat"}));
  }
  view.job.status.outbox = outbox;
  view.job.status.notifications = 32;
  const WriteStatus write = written(view);
  ASSERT_EQ(write.status.outbox.size(), 32U);
  EXPECT_EQ(write.status.outbox[2].number, 4);
  EXPECT_EQ(write.status.outbox.back().event, NotifyEvent::kSucceeded);
  EXPECT_TRUE(has_condition(write.status, "NotificationFailed", "OutboxFull"));
  EXPECT_EQ(write.dropped_for, std::vector<std::string>{"chat"});
  EXPECT_EQ(outbox_trouble(view, write.status, now()), "");
}

TEST(Notifications, ATimeToLiveWaitsForTheOutboxAndAUserDoesNot) {
  JobView view = ended({entry(1, NotifyEvent::kSucceeded, seconds(9), {"chat"})});
  view.job.spec.ttl_after_finished = seconds(0);
  EXPECT_TRUE(all<DeleteJob>(settle(view)).empty());
  JobView reported = view;
  reported.job.status.outbox.clear();
  EXPECT_EQ(all<DeleteJob>(settle(reported)).size(), 1U);
  view.job.deleting = true;
  result(view, DeliveryView::Result::kTaken);
  EXPECT_TRUE(settle(view).writes.empty());
}

TEST(Notifications, TextsAreCutToTheirLimit) {
  JobView view = running_job();
  add_ended_pod(view, 1, 0).containers[0].terminated->message = "";
  view.job.spec.backoff_limit = 0;
  reports(view, "chat");
  view.job.status.conditions.clear();
  const Status status = after(view);
  for (const OutboxEntry& one : status.outbox) {
    EXPECT_LE(one.message.size(), kNotifyTextLimit);
    EXPECT_LE(one.reason.size(), kNotifyTextLimit);
  }
  EXPECT_EQ(refused_outbox(view.job.status, status), "");
}

// ---- A job that its outbox holds: Kubernetes deletes it with its batch/v1 Job.

JobView held(std::vector<OutboxEntry> outbox, Duration since_deletion = seconds(1)) {
  JobView view = ended(std::move(outbox));
  view.job.holds_outbox = view.job.deleting = true;
  view.job.deletion = now() - since_deletion;
  return view;
}

bool is_released(const JobView& view) { return all<ReleaseJob>(settle(view)).size() == 1U; }

TEST(Notifications, AJobIsReleasedOnceItIsOverAndItsTargetsAreNotified) {
  JobView view = running_job();
  view.job.holds_outbox = true;
  EXPECT_FALSE(is_released(view)) << "it runs";
  view = ended({entry(1, NotifyEvent::kFailed, seconds(9), {"chat"})});
  view.job.holds_outbox = true;
  EXPECT_FALSE(is_released(view)) << "nobody has told";
  view.job.status.outbox.clear();
  EXPECT_TRUE(is_released(view));
}

TEST(Notifications, ADeletedJobStaysUntilItsTargetsAreNotified) {
  JobView view = held({entry(1, NotifyEvent::kFailed, seconds(9), {"chat"})});
  EXPECT_FALSE(is_released(view));
  result(view, DeliveryView::Result::kTaken);
  const Decision decision = settle(view);
  ASSERT_EQ(all<WriteStatus>(decision).size(), 1U);
  EXPECT_TRUE(all<WriteStatus>(decision)[0].status.outbox.empty());
  EXPECT_TRUE(is_released(held({})));
}

TEST(Notifications, AJobThatIsDeletedBeforeItsEndIsReleasedAtOnce) {
  JobView view = running_job();
  reports(view, "chat");
  view.job.holds_outbox = view.job.deleting = true;
  view.job.deletion = now();
  add_pod(view, 1, PodPhase::kRunning);
  EXPECT_TRUE(is_released(view));
  EXPECT_TRUE(all<CreatePod>(settle(view)).empty());
}

TEST(Notifications, ADeletedJobIsHeldForAnHourAtMostAndInAGoingNamespaceForAMinute) {
  const std::vector<OutboxEntry> outbox = {entry(1, NotifyEvent::kFailed, hours(3), {"chat"})};
  EXPECT_FALSE(is_released(held(outbox, minutes(59))));
  EXPECT_TRUE(is_released(held(outbox, minutes(60))));
  for (const auto& [since, goes] : {std::pair{seconds(59), false}, {seconds(60), true}}) {
    JobView view = held(outbox, since);
    view.observed.namespace_goes = true;
    EXPECT_EQ(is_released(view), goes);
  }
  const Decision waits = settle(held(outbox, minutes(50)));
  ASSERT_TRUE(waits.wake_after);
  EXPECT_LE(*waits.wake_after, seconds(30)) << "nothing else tells that the namespace goes";
}

// Kubernetes deletes its rights with all else in the namespace, in any order.
TEST(Notifications, WhereTheOperatorMayLoseItsRightsADeletedJobIsHeldByNothing) {
  JobView view = held({entry(1, NotifyEvent::kFailed, seconds(9), {"chat"})}, seconds(0));
  view.observed.may_lose_rights = true;
  EXPECT_TRUE(is_released(view));
  view.job.deleting = false;
  EXPECT_TRUE(is_released(view)) << "it was made while the operator watched all namespaces";
}

// Its owner is gone, so the garbage collector would do it, but the outbox holds the job.
TEST(Notifications, ThePodsOfADeletedJobThatIsHeldAreDeleted) {
  JobView view = held({entry(1, NotifyEvent::kFailed, seconds(9), {"chat"})});
  add_ended_pod(view, 1, 1);
  EXPECT_EQ(all<DeletePod>(settle(view)).size(), 1U);
  view.job.orphans = true;
  EXPECT_TRUE(all<DeletePod>(settle(view)).empty());
}

}  // namespace
}  // namespace holdfast::reconciler::testing
