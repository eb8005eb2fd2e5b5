// An attempt is on record and its pod is not there.
#include <gtest/gtest.h>

#include "tests/unit/reconciler/scenario.h"

namespace holdfast::reconciler::testing {
namespace {

JobView refused_job(Duration retry_in, CreationRefusal::Kind kind) {
  JobView view = running_job();
  view.job.status.begun().start_time = now() - seconds(100);
  view.begun().observed.own_intent = true;
  view.begun().observed.refusal = CreationRefusal{kind, "exceeded quota: small", retry_in};
  return view;
}

TEST(NoPod, TheWriterOfTheIntentCreatesItsPod) {
  JobView view = job_before_its_pod();
  const Decision decision = decide(view, now());
  ASSERT_EQ(decision.writes.size(), 1u);
  EXPECT_EQ(all<CreatePod>(decision).at(0).name, pod_of(1));
  EXPECT_EQ(all<CreatePod>(decision).at(0).attempt, 1);
}

TEST(NoPod, APodWaitsForItsTurnBeforeItsIntentIsWritten) {
  JobView fresh = running_job();
  fresh.job.status = Status();
  fresh.observed.may_create = false;
  EXPECT_TRUE(decide(fresh, now()).writes.empty());
  EXPECT_TRUE(decide(fresh, now()).awaits_creation);
}

TEST(NoPod, ACreationThatIsUnderWayIsNotAskedForAgain) {
  JobView view = job_before_its_pod();
  create_pod_slowly(view, 1);
  EXPECT_TRUE(decide(view, now()).writes.empty());
  view.begun().observed.pod_existed = true;
  EXPECT_FALSE(decide(view, now()).confirm) << "the watch does not show the pod yet";
}

TEST(NoPod, AVerdictWaitsForNoCreation) {
  JobView view = running_job();
  view.begun().observed.pod_existed = true;
  view.observed.may_create = false;
  const WriteStatus write = written(view);
  EXPECT_EQ(write.status.phase, Phase::kBackoff);
  EXPECT_EQ(write.status.disruptions, 1);
  EXPECT_EQ(write.status.run().next_attempt_time, now());
  EXPECT_TRUE(all<CreatePod>(settle(view)).empty());
}

TEST(NoPod, AnothersIntentWaitsSeventeenSecondsSinceItWasFirstSeen) {
  JobView view = running_job();
  view.begun().observed.no_pod_for = seconds(3);
  Decision decision = decide(view, now());
  EXPECT_TRUE(decision.writes.empty());
  EXPECT_FALSE(decision.confirm);
  EXPECT_EQ(decision.wake_after, seconds(2));
  view.begun().observed.no_pod_for = seconds(5);
  EXPECT_EQ(decide(view, now()).wake_after, seconds(12));
  EXPECT_EQ(after(view).waiting->reason, "PodNotCreated");
  EXPECT_EQ(after(view).waiting->deadline, now() + seconds(12));
  view.begun().observed.no_pod_for = seconds(17);
  EXPECT_TRUE(decide(view, now()).confirm);
}

TEST(NoPod, AnothersIntentWaitsAsLongAsATakeOverTakes) {
  JobView view = running_job();
  view.observed.takeover = std::chrono::milliseconds(4500);
  view.begun().observed.no_pod_for = seconds(4);
  EXPECT_EQ(decide(view, now()).wake_after, std::chrono::milliseconds(500));
  view.begun().observed.no_pod_for = seconds(5);
  EXPECT_TRUE(decide(view, now()).confirm);
}

TEST(NoPod, AnothersIntentIsLostAfterItsWaitAndNeverCreatedUnderItsNumber) {
  JobView view = running_job();
  view.begun().observed.no_pod_for = seconds(17);
  const WriteStatus write = written(view);
  EXPECT_EQ(write.ended.at(0).orphan_class, "intent_without_pod");
  EXPECT_EQ(write.ended.at(0).trouble_for, seconds(17));
  EXPECT_EQ(write.status.history.back().outcome, Outcome::kLost);
  EXPECT_EQ(write.status.history.back().reason, "PodNeverCreated");
  EXPECT_EQ(write.status.attempt, 2);
  EXPECT_EQ(all<CreatePod>(settle(view)).at(0).name, pod_of(2));
}

TEST(NoPod, OnesOwnIntentIsCreatedAtOnceAndAfterALapseOnlyWhenALiveLookShowsThatItIsStillDue) {
  JobView view = job_before_its_pod();
  EXPECT_EQ(all<CreatePod>(decide(view, now())).at(0).name, pod_of(1));
  view.begun().observed.took_over = true;
  EXPECT_TRUE(decide(view, now()).confirm);
  EXPECT_EQ(all<CreatePod>(settle(view)).at(0).name, pod_of(1));
}

TEST(NoPod, AnothersIntentWhoseCreationWasRefusedIsTriedAgainUnderItsNumber) {
  JobView view = running_job();
  view.job.status.begun().refused = "exceeded quota";
  EXPECT_TRUE(decide(view, now()).confirm) << "it may have been created and ended meanwhile";
  EXPECT_EQ(all<CreatePod>(settle(view)).at(0).name, pod_of(1));
}

TEST(NoPod, APodThatIsFoundLiveEndsNothing) {
  JobView view = running_job();
  view.begun().observed.no_pod_for = seconds(60);
  view.begun().observed.confirmed = true;
  add_pod(view, 1, PodPhase::kRunning);
  EXPECT_EQ(after(view).attempt, 1);
  EXPECT_EQ(after(view).disruptions, 0);
}

TEST(NoPod, APodThatExistedIsLostAtOnceAfterALiveLook) {
  for (const bool by_memory : {true, false}) {
    JobView view = job_before_its_pod();
    view.begun().observed.pod_existed = by_memory;
    if (!by_memory) view.job.status.begun().node_name = kNode;
    const Decision first = decide(view, now());
    EXPECT_TRUE(first.confirm);
    EXPECT_TRUE(first.writes.empty());
    const WriteStatus write = written(view);
    EXPECT_EQ(write.ended.at(0).orphan_class, "pod_vanished");
    EXPECT_EQ(write.status.history.back().reason, "PodGone");
    EXPECT_EQ(write.status.attempt, 2);
  }
}

TEST(NoPod, ARefusedCreationSpendsNothingSaysWhyAndIsTriedAgain) {
  const JobView view = refused_job(seconds(5), CreationRefusal::Kind::kRefused);
  const WriteStatus write = written(view);
  EXPECT_EQ(write.status.phase, Phase::kRunning);
  EXPECT_EQ(write.status.attempt, 1);
  EXPECT_EQ(write.status.failures + write.status.disruptions, 0);
  EXPECT_EQ(write.status.waiting->reason, "PodCreationRefused");
  EXPECT_EQ(write.status.waiting->message, "exceeded quota: small");
  EXPECT_FALSE(write.status.waiting->deadline);
  EXPECT_EQ(decide(view, now()).wake_after, seconds(5));
  const JobView due = refused_job(seconds(0), CreationRefusal::Kind::kRefused);
  EXPECT_TRUE(decide(due, now()).confirm);
  EXPECT_EQ(all<CreatePod>(settle(due)).at(0).attempt, 1);
}

TEST(NoPod, ALongRefusalIsCutToWhatTheSchemaTakes) {
  JobView view = refused_job(seconds(5), CreationRefusal::Kind::kRefused);
  view.begun().observed.refusal->message = std::string(5000, 'x');
  view.job.status = after(view);
  EXPECT_EQ(view.job.status.run().refused.size(), 1024u);
  EXPECT_TRUE(all<WriteStatus>(settle(view)).empty()) << "and it is written once";
}

TEST(NoPod, ARefusalThatLastsIsReportedOnce) {
  JobView view = refused_job(seconds(5), CreationRefusal::Kind::kRefused);
  view.job.status = after(view);
  EXPECT_TRUE(decide(view, now() + seconds(10)).writes.empty());
}

TEST(NoPod, ATakenNameIsAWaitForThatPodToGo) {
  const JobView view = refused_job(seconds(5), CreationRefusal::Kind::kNameTaken);
  EXPECT_EQ(after(view).waiting->reason, "PodNameTaken");
  EXPECT_EQ(after(view).attempt, 1);
}

TEST(NoPod, ARefusalBeyondTheStartDeadlineIsStalledAndNeverATimeOut) {
  JobView view = refused_job(seconds(5), CreationRefusal::Kind::kRefused);
  view.job.spec.start_deadline = seconds(102);
  EXPECT_EQ(decide(view, now()).wake_after, seconds(2));
  EXPECT_FALSE(after(view).condition("Stalled"));
  view.job.spec.start_deadline = seconds(100);
  EXPECT_TRUE(has_condition(after(view), "Stalled", "PodCreationRefused"));
  EXPECT_EQ(after(view).phase, Phase::kRunning);
}

TEST(NoPod, StalledEndsWhenThePodIsThere) {
  JobView view = refused_job(seconds(5), CreationRefusal::Kind::kRefused);
  view.job.spec.start_deadline = seconds(100);
  view.job.status = after(view);
  view.begun().observed.refusal.reset();
  add_pod(view, 1, PodPhase::kPending).created = now();
  const Status status = after(view);
  EXPECT_FALSE(status.condition("Stalled")->status);
  EXPECT_EQ(status.waiting->reason, "PodStarting");
}

TEST(NoPod, ATemplateThatCanNeverWorkFailsTheJobWithTheServersMessageAndSpendsNothing) {
  JobView view = refused_job(seconds(5), CreationRefusal::Kind::kTemplateInvalid);
  view.begun().observed.refusal->message = "spec.containers[0].image: Required value";
  const WriteStatus write = written(view);
  EXPECT_EQ(write.status.phase, Phase::kFailed);
  EXPECT_TRUE(has_condition(write.status, "Failed", "PodTemplateInvalid"));
  EXPECT_EQ(write.status.condition("Failed")->message, view.begun().observed.refusal->message);
  EXPECT_EQ(write.status.failures + write.status.disruptions, 0);
  EXPECT_EQ(write.events.at(0).reason, "PodTemplateInvalid");
}

// Its third refusal in a row, two minutes after the first one was recorded.
JobView template_in_doubt() {
  JobView view = refused_job(seconds(5), CreationRefusal::Kind::kTemplateRefused);
  view.job.status = after(view, now() - seconds(120));
  view.begun().observed.refusal->in_a_row = 3;
  return view;
}

TEST(NoPod, ATemplateThatIsRefusedOnceFailsNoJob) {
  const JobView view = refused_job(seconds(5), CreationRefusal::Kind::kTemplateRefused);
  const Status status = after(view);
  EXPECT_EQ(status.phase, Phase::kRunning);
  EXPECT_EQ(status.attempt, 1);
  EXPECT_EQ(status.waiting->reason, "PodTemplateRefused");
  EXPECT_EQ(status.waiting->deadline, now() + seconds(120));
  EXPECT_EQ(decide(view, now()).wake_after, seconds(5));
}

TEST(NoPod, ATemplateWhoseRefusalStandsForTwoMinutesAndThreeTriesFailsTheJob) {
  const JobView view = template_in_doubt();
  EXPECT_EQ(after(view, now() - seconds(1)).phase, Phase::kRunning) << "not for two minutes";
  EXPECT_TRUE(has_condition(after(view), "Failed", "PodTemplateInvalid"));
  JobView twice = view;
  twice.begun().observed.refusal->in_a_row = 2;
  EXPECT_EQ(after(twice).phase, Phase::kRunning);
}

TEST(NoPod, ARefusalFromBeforeTheTwoMinutesWereOverIsAskedForOnceMore) {
  JobView view = template_in_doubt();
  view.begun().observed.refusal->age = seconds(20);
  const Decision decision = settle(view);
  EXPECT_TRUE(all<WriteStatus>(decision).empty());
  EXPECT_EQ(all<CreatePod>(decision).size(), 1u);
}

TEST(NoPod, TheTwoMinutesOfATemplateInDoubtSurviveARestart) {
  JobView view = template_in_doubt();
  view.begun().observed.own_intent = false;
  view.begun().observed.refusal.reset();
  EXPECT_EQ(all<CreatePod>(settle(view)).size(), 1u);
  view.begun().observed.refusal = template_in_doubt().begun().observed.refusal;
  view.begun().observed.refusal->in_a_row = 2;
  const Status status = after(view);
  EXPECT_EQ(status.phase, Phase::kRunning);
  EXPECT_EQ(status.waiting->deadline, now() + seconds(5)) << "the third try";
  view.job.status = status;
  view.begun().observed.refusal->in_a_row = 3;
  EXPECT_EQ(after(view, now() + seconds(5)).phase, Phase::kFailed);
}

TEST(NoPod, AnotherRefusalInBetweenTakesTheDoubtAway) {
  JobView view = template_in_doubt();
  view.begun().observed.refusal->kind = CreationRefusal::Kind::kRefused;
  view.job.status = after(view);
  EXPECT_FALSE(view.job.status.waiting->deadline);
  view.begun().observed.refusal->kind = CreationRefusal::Kind::kTemplateRefused;
  EXPECT_EQ(after(view).phase, Phase::kRunning);
  EXPECT_EQ(after(view).waiting->deadline, now() + seconds(120));
}

TEST(NoPod, OnlyTheActiveDeadlineEndsARefusedAttempt) {
  JobView view = refused_job(seconds(5), CreationRefusal::Kind::kRefused);
  view.job.spec.active_deadline = seconds(100);
  EXPECT_EQ(after(view).phase, Phase::kFailed);
  EXPECT_TRUE(has_condition(after(view), "Failed", "DeadlineExceeded"));
  view.job.spec.active_deadline = seconds(103);
  EXPECT_EQ(after(view).phase, Phase::kRunning);
  EXPECT_EQ(after(view).waiting->deadline, now() + seconds(3));
  EXPECT_EQ(decide(view, now()).wake_after, seconds(3));
}

TEST(NoPod, AnIntentCarriesTheMarkOfItsWriter) {
  JobView a = new_job();
  JobView b = new_job();
  b.observed.nonce = 4712;
  EXPECT_NE(after(a).run().start_time, after(b).run().start_time);
  EXPECT_EQ(*after(a).run().start_time - now(), Duration(4711));
}

TEST(NoPod, AnotherOwnersPodOfTheSameNameIsNotAdopted) {
  JobView view = job_before_its_pod();
  PodView& pod = add_pod(view, 1, PodPhase::kSucceeded);
  pod.owner_uid = "someone-else";
  EXPECT_EQ(after(view).phase, Phase::kRunning);
  EXPECT_TRUE(all<DeletePod>(settle(view)).empty());
  EXPECT_TRUE(all<ReleasePod>(settle(view)).empty());
}

}  // namespace
}  // namespace holdfast::reconciler::testing
