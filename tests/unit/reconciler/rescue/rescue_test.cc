// When another controller's pod is freed, and when it is not.
#include "reconciler/rescue/rescue.h"

#include <gtest/gtest.h>

#include <functional>

namespace holdfast::reconciler::testing {
namespace {

using std::chrono::seconds;

// A pod of a Job whose node has been silent for so long.
RescueView silent(Duration silent_for) {
  RescueView view;
  view.pod.owner = {"batch/v1", "Job", "night", "uid-1"};
  view.pod.node = "node-1";
  view.owner_may_be_freed = true;
  view.age = std::chrono::hours(1);
  view.node.silent_for = silent_for;
  return view;
}
RescueView looked_at(Duration silent_for) {
  RescueView view = silent(silent_for);
  view.node.looked = true;
  return view;
}

void expect_action(const RescueView& view, RescueAction action) {
  EXPECT_EQ(decide_rescue(view).action, action);
}

TEST(Rescue, APodWaitsUntilItsNodeWasSilentForItsWindow) {
  const RescueDecision decision = decide_rescue(looked_at(seconds(59)));
  EXPECT_EQ(decision.action, RescueAction::kWait);
  EXPECT_EQ(decision.look_in, seconds(1));
  expect_action(looked_at(seconds(60)), RescueAction::kFree);
  RescueView short_window = looked_at(seconds(15));
  short_window.pod.window = seconds(15);
  expect_action(short_window, RescueAction::kFree);
}

TEST(Rescue, APodThatCameAfterItsNodeFellSilentHasAWindowOfItsOwn) {
  RescueView view = looked_at(seconds(500));
  view.age = seconds(10);
  const RescueDecision decision = decide_rescue(view);
  EXPECT_EQ(decision.action, RescueAction::kWait);
  EXPECT_EQ(decision.look_in, seconds(50));
  view.age = seconds(60);
  expect_action(view, RescueAction::kFree);
}

TEST(Rescue, TheNodeIsReadLiveBeforeAPodIsFreed) {
  expect_action(silent(seconds(60)), RescueAction::kLook);
}

TEST(Rescue, ALiveLookThatShowsARenewalEndsTheVerdict) {
  expect_action(looked_at(seconds(0)), RescueAction::kWait);
}

TEST(Rescue, WhileThePathToTheNodesIsInDoubtNothingIsFreedHoweverLong) {
  RescueView view = looked_at(seconds(100'000));
  view.node.in_doubt = true;
  const RescueDecision decision = decide_rescue(view);
  EXPECT_EQ(decision.action, RescueAction::kHold);
  EXPECT_TRUE(decision.look_in);
}

TEST(Rescue, ANodeWithoutALeaseIsNotJudged) {
  RescueView view = looked_at(seconds(60));
  view.node.silent_for.reset();
  const RescueDecision decision = decide_rescue(view);
  EXPECT_EQ(decision.action, RescueAction::kWait);
  EXPECT_TRUE(decision.look_in) << "it may get one";
}

// With `window`, on a node that Kubernetes has not marked yet.
RescueView unmarked(Duration silent_for, seconds window = kRescueWindow) {
  RescueView view = looked_at(silent_for);
  view.pod.window = window;
  view.node.unmarked = true;
  return view;
}

TEST(Rescue, APodIsFreedOnceItsNodeIsMarkedSoThatTheNextOneGoesElsewhere) {
  const RescueDecision decision = decide_rescue(unmarked(seconds(60)));
  EXPECT_EQ(decision.action, RescueAction::kWait);
  EXPECT_EQ(decision.look_in, kMarkLook);
  expect_action(looked_at(seconds(61)), RescueAction::kFree);
}

TEST(Rescue, ItDoesNotWaitForTheMarkForLong) {
  const RescueDecision decision = decide_rescue(unmarked(std::chrono::milliseconds(69'900)));
  EXPECT_EQ(decision.action, RescueAction::kWait);
  EXPECT_EQ(decision.look_in, std::chrono::milliseconds(100));
  expect_action(unmarked(seconds(70)), RescueAction::kFree);
}

TEST(Rescue, AShortWindowDoesNotWaitForTheMark) {
  expect_action(unmarked(seconds(49), seconds(49)), RescueAction::kFree);
  expect_action(unmarked(seconds(50), seconds(50)), RescueAction::kWait);
}

TEST(Rescue, APodWhoseNodeWasSeenUnmarkedAMomentAgoNeedsNoLookOfItsOwn) {
  RescueView view = unmarked(seconds(60));
  view.node.looked = false;
  expect_action(view, RescueAction::kWait);
}

TEST(Rescue, ANodeThatIsOutOfServiceIsLeftToKubernetes) {
  RescueView view = looked_at(seconds(60));
  view.node.out_of_service = true;
  expect_action(view, RescueAction::kWait);
}

TEST(Rescue, APodThatEndedOrHasNoNodeIsLeftAlone) {
  RescueView ended = looked_at(seconds(60));
  ended.pod.ended = true;
  expect_action(ended, RescueAction::kNone);
  RescueView unbound = looked_at(seconds(60));
  unbound.pod.node.clear();
  expect_action(unbound, RescueAction::kNone);
}

TEST(Rescue, APodOfOursIsLeftAloneWithoutAWord) {
  RescueView view = looked_at(seconds(60));
  view.pod.ours = true;
  view.owner_may_be_freed = false;
  expect_action(view, RescueAction::kNone);
  view.pod.freed = true;
  expect_action(view, RescueAction::kNone);
}

TEST(Rescue, WhatIsFreedIsDeletedWhateverItsNodeDoes) {
  RescueView view = silent(seconds(0));
  view.pod.freed = true;
  view.pod.ended = true;
  view.node.in_doubt = true;
  view.next_turn = seconds(30);
  expect_action(view, RescueAction::kDelete);
  EXPECT_TRUE(decide_rescue(view).look_in) << "the watch may never show the deletion";
  view.pod.is_going = true;
  expect_action(view, RescueAction::kNone);
}

TEST(Rescue, ItWaitsForItsTurnWhenTooManyWereFreed) {
  RescueView view = looked_at(seconds(60));
  view.next_turn = seconds(7);
  const RescueDecision decision = decide_rescue(view);
  EXPECT_EQ(decision.action, RescueAction::kTurn);
  EXPECT_EQ(decision.look_in, seconds(7));
}

struct Refused {
  const char* name;
  RescueRefusal refusal;
  std::function<void(RescueView&)> make;
};
class RescueRefused : public ::testing::TestWithParam<Refused> {};

TEST_P(RescueRefused, OnceItsNodesSilenceCounts) {
  RescueView view = silent(seconds(60));
  GetParam().make(view);
  const RescueDecision decision = decide_rescue(view);
  EXPECT_EQ(decision.action, RescueAction::kRefuse);
  EXPECT_EQ(decision.refusal, GetParam().refusal);
  EXPECT_FALSE(explain(GetParam().refusal, view.pod.owner).empty());
  view.node.silent_for = seconds(14);
  expect_action(view, RescueAction::kWait);
  view.node.silent_for = seconds(60);
  view.node.in_doubt = true;
  expect_action(view, RescueAction::kHold);
}

INSTANTIATE_TEST_SUITE_P(
    All, RescueRefused,
    ::testing::Values(Refused{"Static", RescueRefusal::kStaticPod,
                              [](RescueView& view) { view.pod.is_static = true; }},
                      Refused{"Bare", RescueRefusal::kNoController,
                              [](RescueView& view) { view.pod.owner = {}; }},
                      Refused{"OtherKind", RescueRefusal::kOwnerKind,
                              [](RescueView& view) { view.owner_may_be_freed = false; }},
                      Refused{"Volumes", RescueRefusal::kVolumes,
                              [](RescueView& view) { view.pod.has_claims = true; }},
                      Refused{"BadWindow", RescueRefusal::kWindow,
                              [](RescueView& view) { view.pod.window.reset(); }}),
    [](const auto& one) { return one.param.name; });

TEST(Rescue, TheAnnotationAllowsToFreeAPodWithVolumes) {
  RescueView view = looked_at(seconds(60));
  view.pod.has_claims = view.pod.frees_claims = true;
  expect_action(view, RescueAction::kFree);
}

TEST(Rescue, AWindowIsAWholeNumberOfSecondsWithinItsLimits) {
  EXPECT_EQ(rescue_window(""), seconds(60));
  EXPECT_EQ(rescue_window("15"), seconds(15));
  EXPECT_EQ(rescue_window("86400"), seconds(86'400));
  for (const char* const wrong : {"14", "0", "-60", "86401", "60s", "6e1", " 60", "1.5", "x"}) {
    EXPECT_FALSE(rescue_window(wrong)) << wrong;
  }
}

TEST(Rescue, FreedArePodsOfJobsReplicaSetsAndTheGivenKinds) {
  const std::set<std::string> kinds = {"Workflow", "StatefulSet"};
  EXPECT_TRUE(may_be_freed({"batch/v1", "Job", "", ""}, kinds));
  EXPECT_TRUE(may_be_freed({"apps/v1", "ReplicaSet", "", ""}, kinds));
  EXPECT_TRUE(may_be_freed({"argoproj.io/v1alpha1", "Workflow", "", ""}, kinds));
  EXPECT_FALSE(may_be_freed({"batch.volcano.sh/v1alpha1", "Job", "", ""}, kinds));
  EXPECT_FALSE(may_be_freed({"apps.kruise.io/v1", "ReplicaSet", "", ""}, kinds));
  EXPECT_FALSE(may_be_freed({"ray.io/v1", "RayCluster", "", ""}, kinds));
  EXPECT_FALSE(may_be_freed({"apps/v1", "StatefulSet", "", ""}, kinds)) << "whoever asks for it";
  EXPECT_FALSE(may_be_freed({"holdfast.dev/v1alpha1", "DurableJob", "", ""}, {"DurableJob"}));
}

TEST(RescueAllowance, SoManyAreFreedInAnyMinute) {
  RescueAllowance allowance(3);
  SteadyTime now{};
  for (int second = 0; second < 3; ++second, now += seconds(1)) {
    EXPECT_EQ(allowance.left(8, 8, now), Duration::zero());
    allowance.freed(now);
  }
  EXPECT_EQ(allowance.left(8, 8, now), seconds(57));
  now += seconds(57);
  EXPECT_EQ(allowance.left(8, 8, now), Duration::zero());
  allowance.freed(now);
  EXPECT_EQ(allowance.left(8, 8, now), seconds(1));
}

TEST(RescueAllowance, AReplicasShareGoesWithItsShards) {
  RescueAllowance allowance(60);
  for (int i = 0; i < 15; ++i) allowance.freed(SteadyTime{});
  EXPECT_GT(allowance.left(8, 32, SteadyTime{}), Duration::zero());
  EXPECT_EQ(allowance.left(9, 32, SteadyTime{}), Duration::zero());
  RescueAllowance small(1);
  EXPECT_EQ(small.left(1, 32, SteadyTime{}), Duration::zero()) << "at least one";
}

TEST(RescueAllowance, WhatWasNotFreedAfterAllIsNotCounted) {
  RescueAllowance allowance(1);
  const SteadyTime now{seconds(100)};
  allowance.freed(now);
  EXPECT_GT(allowance.left(1, 1, now), Duration::zero());
  allowance.take_back(now);
  EXPECT_EQ(allowance.left(1, 1, now), Duration::zero());
  allowance.take_back(now);
}

}  // namespace
}  // namespace holdfast::reconciler::testing
