// The nodes that a job's next pods are kept away from.
#include "reconciler/lost_nodes.h"

#include <gtest/gtest.h>

#include "tests/unit/reconciler/scenario.h"

namespace holdfast::reconciler::testing {
namespace {

using Nodes = std::vector<std::string>;

HistoryEntry lost_on(const std::string& node, Reason reason, Time ended) {
  HistoryEntry entry;
  entry.outcome = Outcome::kLost;
  entry.reason = reason;
  entry.node_name = node;
  entry.end_time = ended;
  return entry;
}

TEST(LostNodes, ThePodAfterALossOnASilentNodeIsKeptAwayFromIt) {
  JobView view = job_before_its_pod();
  view.job.status.history = {lost_on(kNode, Reason::kNodeSilent, now())};
  const auto created = all<CreatePod>(settle(view));
  ASSERT_EQ(created.size(), 1u);
  EXPECT_EQ(created[0].avoid, Nodes{kNode});
}

// One decision records the loss and the next attempt, and creates its pod.
TEST(LostNodes, ALossCountsForThePodThatIsMadeWithIt) {
  JobView view = job_with_pod();
  view.observed.nodes[kNode].silent_for = view.job.spec.lost_after;
  const auto created = all<CreatePod>(settle(view));
  ASSERT_EQ(created.size(), 1u);
  EXPECT_EQ(created[0].avoid, Nodes{kNode});
}

// A policy may forbid such a wish. The pod is worth more.
TEST(LostNodes, APodThatWasRefusedIsTriedAgainWithoutTheWish) {
  JobView view = job_before_its_pod();
  view.job.status.history = {lost_on(kNode, Reason::kNodeSilent, now())};
  view.job.status.begun().refused = "no node affinity here";
  const auto created = all<CreatePod>(settle(view));
  ASSERT_EQ(created.size(), 1u);
  EXPECT_TRUE(created[0].avoid.empty());
}

TEST(LostNodes, OnlyASilenceCountsAgainstANode) {
  for (const Reason reason :
       {Reason::kNodeSilent, Reason::kHolderSilent, Reason::kPodStuckTerminating}) {
    Status status;
    status.history = {lost_on("a", reason, Time{})};
    EXPECT_EQ(lost_nodes(status, Time{}), Nodes{"a"}) << AnyReason(reason).text();
    status.history[0].outcome = Outcome::kFailed;
    EXPECT_TRUE(lost_nodes(status, Time{}).empty());
  }
  Status status;
  status.history = {lost_on("a", Reason::kPodGone, Time{}),
                    lost_on("b", Reason::kPodDeleted, Time{}),
                    lost_on("", Reason::kNodeSilent, Time{}),
                    lost_on("not there any more", Reason::kNodeGone, Time{})};
  EXPECT_TRUE(lost_nodes(status, Time{}).empty());
}

TEST(LostNodes, ANodeIsTrustedAgainAfterAWhile) {
  Status status;
  status.history = {lost_on("a", Reason::kNodeSilent, Time{})};
  EXPECT_FALSE(lost_nodes(status, Time{} + kLostNodeAvoided - seconds(1)).empty());
  EXPECT_TRUE(lost_nodes(status, Time{} + kLostNodeAvoided).empty());
}

TEST(LostNodes, TheLastOnesEachOnce) {
  Status status;
  for (const char* node : {"a", "b", "c", "b", "d"}) {
    status.history.push_back(lost_on(node, Reason::kNodeSilent, Time{}));
  }
  EXPECT_EQ(lost_nodes(status, Time{}), (Nodes{"d", "b", "c"}));
}

}  // namespace
}  // namespace holdfast::reconciler::testing
